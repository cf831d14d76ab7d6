"""Published tables of averages are read as they are: rates by age and year, hours of fine dust."""

from __future__ import annotations

import numpy as np
import pytest

from scant.studies import entry
from scant.tables.read import inspect_table, read_table, read_tables
from tests.paths import REAL_DATA

TABLE = entry("aggregation").table
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
