"""Bad files on the redshift schema: each ends in one sentence that says what, where, got and do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.studies.redshift.simulate import simulate
from scant.tables.read import inspect_table, read_frame, read_table
from tests.engine.files import csv

SCHEMA = entry("redshift").table


@pytest.fixture
def survey() -> pd.DataFrame:
    return simulate(80, seed=3).round(4)


def refused(data: bytes, *parts: str, **how: object) -> str:
    """The sentence with which a file is refused, the same in the wizard and in the reader."""
    with pytest.raises(BadInput) as caught:
        read_table(data, SCHEMA, name="mine.csv", **how)
    message = str(caught.value)
    for word in ("mine.csv", *parts):
        assert word in message, message
    assert "\n" not in message
    preview = inspect_table(data, SCHEMA, name="mine.csv", **how)
    assert preview.problems[0] in message
    return message


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_recognized(survey: pd.DataFrame, delimiter: str) -> None:
    table = read_table(csv(survey, sep=delimiter), SCHEMA)
    pd.testing.assert_frame_equal(table.frame, survey)
    assert any("separated by" in n for n in table.notes)


def test_ambiguous_delimiter() -> None:
    refused(b"a,b;c\n1,2;3\n4,5;6\n", "commas or semicolons")


def test_a_file_that_was_never_filled_is_said_to_be_empty() -> None:
    refused(bytes(9000), "nothing but zero bytes")


def test_duplicate_column_names() -> None:
    refused(b"u,g,u,z\n1,2,3,4\n", "'u'", "columns 1 and 3")


def test_columns_without_a_name_are_row_numbers_empty_or_numbered(survey: pd.DataFrame) -> None:
    numbered = survey.assign(**{"  ": survey["z"] > 0.3, " ": ""}).to_csv()
    table = read_table(numbered.encode(), SCHEMA)
    assert any("column 1 has no name and was left out as a row number" in n for n in table.notes)
    place = survey.shape[1] + 2
    assert any(f"column {place} has no name and is called" in n for n in table.notes)
    assert not any(f"column {place + 1}" in n for n in table.notes)


def test_target_absent(survey: pd.DataFrame) -> None:
    without = csv(survey.drop(columns="z"))
    with pytest.raises(BadInput, match=r"no column 'z'.*\('mag_z' may be 'z'\)"):
        read_table(without, SCHEMA)
    (question,) = inspect_table(without, SCHEMA).questions  # which takes the guess
    assert (question.about, question.column, question.guess) == ("mapping", "z", "mag_z")
    refused(csv(survey), "no column 'mass'", target="mass")


def test_html_in_names_is_text_and_control_characters_go(survey: pd.DataFrame) -> None:
    evil = "<script>alert(1)</script>"
    data = csv(survey.rename(columns={"mag_u": evil, "mag_g": "mag\x07_g\u202e"}))
    table = read_table(data, SCHEMA)
    assert {evil, "mag _g"} <= set(table.features)


def test_ragged_rows_name_the_row() -> None:
    refused(b'u,g,z\n1,2,3\n\n"4\n5",6,7\n8,9\n1,2,3,4\n', "row 5", "2 cells", "2 rows differ")


def test_row_numbers_survive_blank_lines_and_quoted_newlines(survey: pd.DataFrame) -> None:
    text = b"\n\n" + csv(survey.assign(note='"x\ny"')) + b"\n1,2,3,4,5,6,7,8,9,10,oops,n\n"
    refused(text, "row 85", "'oops'")


def test_thousands_separators(survey: pd.DataFrame) -> None:
    survey["flux"] = np.linspace(1_000, 3_000_000, 80).round(2)
    texts = survey.assign(flux=[f"{v:,.2f}" for v in survey["flux"]])
    table = read_table(csv(texts), SCHEMA)
    np.testing.assert_allclose(table.frame["flux"], survey["flux"])
    assert any("thousands" in n for n in table.notes)
    mixed = ["1,5", "1,234,567", *["2,5"] * 78]
    refused(csv(survey.assign(flux=mixed)), "'flux'", "row 2", "'1,5'", "decimal point")


def test_negative_huge_and_odd_numbers(survey: pd.DataFrame) -> None:
    survey["flux"] = np.linspace(-3e13, 5e14, 80)
    cells = ["+1.5", ".5", "7.", "−2", "1E3", "NA", "n/a", " 4 "] * 10
    table = read_table(csv(survey.assign(odd=cells)), SCHEMA)
    np.testing.assert_array_equal(
        table.frame["odd"][:8], [1.5, 0.5, 7.0, -2.0, 1000.0, np.nan, np.nan, 4.0]
    )
    np.testing.assert_allclose(table.frame["flux"], survey["flux"])
    assert any("'flux'" in n and "1e+12" in n for n in table.notes)


def test_several_problems_are_counted(survey: pd.DataFrame) -> None:
    cells = survey.astype(object)
    cells.loc[0, "mag_u"], cells.loc[1, "mag_g"], cells.loc[2, "z"] = "a", "b", "c"
    assert "2 more problems" in refused(csv(cells), "row")
    assert len(inspect_table(csv(cells), SCHEMA).problems) == 3


def test_data_frames_are_checked_likewise(survey: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(read_frame(survey, SCHEMA).frame, survey)
    survey.loc[3, "mag_g"] = np.inf
    with pytest.raises(BadInput, match=r"'mag_g', row 3: got 'inf', which is infinite"):
        read_frame(survey, SCHEMA)
    with pytest.raises(BadInput, match="0 rows"):
        read_frame(survey[:0], SCHEMA)
    with pytest.raises(BadInput, match="twice"):
        read_frame(survey.rename(columns={"mag_u": "z"}), SCHEMA)


def test_a_quote_that_is_never_closed(survey: pd.DataFrame) -> None:
    refused(b'"' + b"a," * 200_000, "row 1", "quotes")
    refused(csv(survey).replace(b"\n2", b'\n"2', 1), "mine.csv")
