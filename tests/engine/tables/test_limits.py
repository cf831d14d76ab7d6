"""Magnitudes of 99 with the limit as their error, and columns of limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.tables.limits import beside, is_limit, limit_base, undetected
from scant.tables.read import inspect_table, read_frame, read_table
from scant.tables.schema import Table

SCHEMA = entry("redshift").table
ROWS = 60


def survey(**changes: Any) -> pd.DataFrame:
    """Magnitudes and errors in two bands; `changes` sets cells, {row: value}, of columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "u": rng.uniform(20, 26, ROWS), "u_err": rng.uniform(0.01, 0.3, ROWS),
        "g": rng.uniform(20, 26, ROWS), "g_err": rng.uniform(0.01, 0.3, ROWS),
        "z": rng.uniform(0.1, 2, ROWS),
    })  # fmt: skip
    for name, cells in changes.items():
        frame[name] = frame.get(name, pd.Series(np.nan, frame.index))
        for row, value in cells.items():
            frame.loc[row, name] = value
    return frame


def read(frame: pd.DataFrame) -> Table:
    return read_table(frame.to_csv(index=False).encode(), SCHEMA, name="own.csv")


def said(table: Table) -> list[str]:
    return [note for note in table.notes if "not detected" in note]


def test_an_error_that_is_a_limit_says_that_nothing_was_detected() -> None:
    values, errors = [99, 99, 99, 98, 99, 24.0], [26.5, 0.1, 99, 26.5, np.nan, 0.1]
    assert undetected(np.array(values), np.array(errors)).tolist() == [True, *[False] * 5]


@pytest.mark.parametrize(
    ("value", "error"),
    [(99, -1), (99, 0), (99, 99), (99, np.nan), (-99, -99), (-9999, 0.1 * 0), (-1, -1),
     (np.inf, np.inf), (np.inf, np.nan), (-np.inf, -np.inf)],
)  # fmt: skip
def test_a_code_with_no_valid_error_was_not_observed(value: float, error: float) -> None:
    at = {2: value, 5: value}
    given = survey(u=at, u_err={2: error, 5: error})
    for table in (read(given), read_frame(given, SCHEMA)):
        for column in ("u", "u_err"):
            assert np.flatnonzero(table.frame[column].isna()).tolist() == [2, 5]
        assert "u_lim" not in table.frame
        (note,) = (n for n in table.notes if "not observed" in n)
        assert f"'u': {value:g} in 2 cells, with no valid error" in note
    given["u_lim"] = 26.5  # given for every row
    table = read(given)
    assert table.frame["u_lim"].dropna().to_dict() == {2: 26.5, 5: 26.5}
    assert "read from the column beside it (26.5)" in said(table)[0]


@pytest.mark.parametrize(("value", "error"), [(99, 0.1), (22.5, -1), (np.inf, 0.1), (0, 0)])
def test_a_number_beside_a_wrong_one_is_left_to_the_checks(value: float, error: float) -> None:
    given = survey(u={2: value}, u_err={2: error})
    if value == 99:  # a note alone: somebody may have measured it
        assert read(given).frame["u"][2] == 99
    else:
        with pytest.raises(BadInput, match="row 4"):
            read(given)


def test_the_limit_stands_apart_and_a_sentence_says_so() -> None:
    at = {3: 99, 7: 99}
    for name, limits in (("26.6", {3: 26.6, 7: 26.6}), ("26.1 to 26.6", {3: 26.1, 7: 26.6})):
        table = read(survey(u=at, u_err=limits))
        for column in ("u", "u_err"):
            assert np.flatnonzero(table.frame[column].isna()).tolist() == [3, 7]
        assert table.frame["u_lim"].dropna().to_dict() == limits
        assert "g_lim" not in table.frame
        assert table.features == ("u", "g")
        assert said(table) == [
            "own.csv, column 'u': 99 in 2 cells was read as 'not detected', and its error was "
            f"read as the limit ({name}): the magnitude is fainter."
        ]


def test_they_are_no_codes_for_missing_values() -> None:
    limits = dict.fromkeys(range(9), 26.6)
    frame = survey(u=dict.fromkeys(limits, 99), u_err=limits)
    preview = inspect_table(frame.to_csv(index=False).encode(), SCHEMA)
    assert preview.questions == ()
    assert not any("stands in" in note for note in preview.warnings)
    frame.loc[:8, "u_err"] = 99.0  # as some write both: nothing says how faint it would be
    (question,) = inspect_table(frame.to_csv(index=False).encode(), SCHEMA).questions
    assert question.about == "missing_codes"
    read(frame.where(frame != 99))


def test_a_table_that_was_read_is_read_again_alike() -> None:
    first = read(survey(u={3: 99}, u_err={3: 26.6}, g={5: np.nan}))
    again = read_frame(first.frame, SCHEMA)
    pd.testing.assert_frame_equal(again.frame, first.frame, check_like=True)
    assert again.features == first.features
    assert said(again) == []


@pytest.mark.parametrize("name", ["u_lim", "lim_u", "u_limit", "u_maglim", "limiting u"])
def test_a_column_of_limits_is_known_by_its_name(name: str) -> None:
    table = read(survey(**{name: {3: 26.6}}, u={3: np.nan}))
    assert table.frame["u_lim"].dropna().to_dict() == {3: 26.6}
    assert table.features == ("u", "g")


def test_99_beside_a_column_of_limits() -> None:
    depths = dict.fromkeys(range(ROWS), 25.5)
    table = read(survey(u={3: 99, 5: 99}, u_err={3: 99, 5: 26.6}, u_lim=depths, g={8: np.nan}))
    assert table.frame["u_lim"].dropna().to_dict() == {3: 25.5, 5: 25.5}
    assert np.flatnonzero(table.frame["u_err"].isna()).tolist() == [3, 5]
    (note,) = said(table)
    assert (
        "99 in 2 cells was read as 'not detected', and the limit was read from the column beside "
        "it (25.5)" in note
    )


def test_limits_of_what_has_no_errors_or_does_not_exist_are_columns_like_others() -> None:
    frame = survey(u_lim={3: 26.6, 4: 26.1}).drop(columns="u_err")
    assert "u_lim" in read(frame).features
    assert not beside("u_lim", ["u", "u_lim"])
    assert beside("u_lim", ["u", "u_err", "u_lim"])
    assert limit_base("u_depth", {"u": "u"}) is None
    assert limit_base("lim_x", {"u": "u"}) is None
    assert limit_base("lim", {"u": "u"}) is None
    assert is_limit("MAG_LIM_u")
    assert not is_limit("climate")


def test_a_row_to_predict_is_read_as_those_that_were_learned_from() -> None:
    trained = read(survey(u={3: 99}, u_err={3: 26.6}))
    query = survey(g={1: 99}, g_err={1: 27.5}).drop(columns="z").to_csv(index=False).encode()
    given = {"purpose": "predict", "features": [*trained.features, "u_err", "g_err"]}
    told = read_table(query, SCHEMA, **given).frame
    assert told["g_lim"].dropna().to_dict() == {1: 27.5}
    assert "u_lim" not in told
    assert np.isnan(told["g"][1])
    assert np.isnan(told["g_err"][1])
