"""Columns of intervals become bounds; what their ends mean is told by neighbors, or asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.tables.intervals import CLOSED
from scant.tables.read import inspect_table, read_frame, read_table, read_tables
from tests.paths import REAL_DATA

TABLE = entry("aggregation").table


def csv(**columns: Any) -> bytes:
    n = len(next(iter(columns.values())))
    frame = pd.DataFrame({**columns, "rate": np.arange(n) ** 1.5})
    return frame.to_csv(index=False).encode()


def read(**columns: Any) -> pd.DataFrame:
    preview = inspect_table(csv(**columns), TABLE)
    assert not preview.problems
    assert not preview.questions
    return read_table(csv(**columns), TABLE).frame


@pytest.mark.parametrize(
    ("header", "cells", "lo", "hi"),
    [
        ("age", ["15-19", "20-24", "25-29", "30-34"], [15, 20, 25, 30], [20, 25, 30, 35]),
        ("year", ["1990-1995", "1995–2000", "2000-2005", "2005-10"], [1990, 1995, 2000, 2005],
         [1995, 2000, 2005, 2010]),
        ("Age group", ["0-4", "5-9", "10 to 14", "15+"], [0, 5, 10, 15], [5, 10, 15, 20]),
        ("age", ["<15", "15-19", "20-24", "25-29"], [0, 15, 20, 25], [15, 20, 25, 30]),
        ("age", ["Y15-19", "Y20-24", "Y25-29", "Y_GE30"], [15, 20, 25, 30], [20, 25, 30, 35]),
        ("season", ["1998-99", "1999-00", "2000-01", "2001-02"], [1998, 1999, 2000, 2001],
         [1999, 2000, 2001, 2002]),
        ("dose", ["[0,1.5)", "[1.5,3)", "[3,4)", "[4,6)"], [0, 1.5, 3, 4], [1.5, 3, 4, 6]),
        ("depth", ["0.5-1", "1-2.5", "2.5-4", "6-8"], [0.5, 1, 2.5, 6], [1, 2.5, 4, 8]),
        ("age", ["15", "16", "17-18", "19-20", "21-22"], [15, 16, 17, 19, 21],
         [16, 17, 19, 21, 23]),
    ],
)  # fmt: skip
def test_intervals_are_bounds(
    header: str, cells: list[str], lo: list[float], hi: list[float]
) -> None:
    frame = read(**{header: cells})
    name = "age" if header == "Age group" else header
    assert frame[f"{name}_lo"].tolist() == lo
    assert frame[f"{name}_hi"].tolist() == hi


def test_ranges_of_dates_are_days() -> None:
    weeks = [f"2020-01-{d:02d} to 2020-01-{d + 6:02d}" for d in (1, 8, 15, 22)]
    frame = read(week=weeks)
    assert np.diff(frame["week_lo"]).tolist() == [7, 7, 7]
    assert (frame["week_hi"] - frame["week_lo"]).tolist() == [7, 7, 7, 7]  # its last day belongs
    notes = read_table(csv(week=weeks), TABLE).notes
    assert any("days since 1970-01-01" in n and "end of its last day" in n for n in notes)


def test_months_and_words_are_no_intervals() -> None:
    months = read(month=["2020-01", "2020-02", "2020-03", "2020-04"])
    assert "month_lo" not in months
    codes = read(
        code=["9-1", "8-2", "7-3", "6-4"],
        start=[0, 1, 2, 3],
        end=[1, 2, 3, 4],
    )
    assert "code_lo" not in codes


def test_what_nothing_tells_is_asked_and_can_be_answered() -> None:
    data = csv(age=["15-19", "30-34", "45-49", "60-64"])
    (question,) = inspect_table(data, TABLE).questions
    assert question.about == CLOSED
    assert question.guess == {"age": True}  # of five years
    assert [label for _, label in question.options] == [
        "Yes: 15-19 reaches up to 20",
        "No: 15-19 reaches up to 19",
    ]
    for answer, end in (({"age": True}, 20), ({"age": False}, 19)):
        assert read_table(data, TABLE, closed=answer).frame["age_hi"][0] == end


def test_a_cell_that_is_no_interval_is_named() -> None:
    ages = [f"{a}-{a + 4}" for a in range(0, 75, 5)]
    with pytest.raises(
        BadInput, match=r"column 'age', row 17: got 'elsewhere', which is not an interval"
    ):
        read_table(csv(age=[*ages, "elsewhere"]), TABLE)


def test_what_was_decided_is_remembered_for_tables_to_predict() -> None:
    frame = pd.DataFrame({"age": ["15-19", "20-24", "25-29", "30-34"], "rate": [1.0, 2, 4, 3]})
    assert read_frame(frame, TABLE).reading[CLOSED] == {"age": True}


def test_intervals_of_pandas_are_taken() -> None:
    cut = pd.cut(pd.Series(range(1, 9)), [0, 2, 4, 6, 8])
    frame = read_frame(pd.DataFrame({"age": cut, "rate": np.arange(8) ** 1.5}), TABLE).frame
    assert frame["age_hi"].tolist() == [2, 2, 4, 4, 6, 6, 8, 8]


BIRTHS = REAL_DATA / "fertility" / "asfr_5x5.csv"
DUST = REAL_DATA / "pm25_kampala"


@pytest.mark.skipif(not BIRTHS.is_file(), reason="SCANT_REAL_DATA names no folder fertility")
def test_orders_of_births_are_tasks() -> None:
    preview = inspect_table(BIRTHS, TABLE)
    assert not preview.problems
    assert [q.column for q in preview.questions] == ["y"]  # shown with all four as the answer
    frame = read_table(BIRTHS, TABLE).frame
    assert len(frame) == 4 * 104
    assert set(frame["task"]) == {f"asfr_order{k}" for k in (1, 2, 3, 4)}
    assert np.unique(frame["age_hi"] - frame["age_lo"]).tolist() == [5]


@pytest.mark.skipif(not DUST.is_dir(), reason="SCANT_REAL_DATA names no folder pm25_kampala")
def test_hours_of_a_monitor_are_one_task_and_gaps_are_left_out() -> None:
    path = DUST / "makerere_bam_hourly_2020.csv"
    preview = inspect_table(path, TABLE)
    assert not preview.problems
    assert not preview.questions
    table = read_table(path, TABLE)
    assert len(table.frame) == 1034
    assert table.features == ("time_lo", "time_hi")
    np.testing.assert_allclose(table.frame["time_hi"] - table.frame["time_lo"], 1 / 24)
    assert any("days since 1970-01-01" in note for note in table.notes)


@pytest.mark.skipif(not DUST.is_dir(), reason="SCANT_REAL_DATA names no folder pm25_kampala")
def test_two_instruments_are_two_tasks() -> None:
    names = ("paper_osiris_3h_means_72h", "paper_pms5003_windows_72h")
    table = read_tables([DUST / f"{name}.csv" for name in names], TABLE)
    assert table.frame["task"].value_counts().to_dict() == dict(zip(names, (24, 657)))
    assert table.features == ("h_lo", "h_hi")
