"""Bad files on the redshift schema: each ends in one sentence that says what, where, got and do."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.studies.redshift.simulate import simulate
from scant.tables.pieces import pieces
from scant.tables.read import inspect_table, read_frame, read_table

SCHEMA = entry("redshift").table


@pytest.fixture
def survey() -> pd.DataFrame:
    return simulate(80, seed=3).round(4)


def csv(frame: pd.DataFrame, **how: object) -> bytes:
    return frame.to_csv(index=False, **how).encode()


def broken(frame: pd.DataFrame, row: int, column: str, text: str) -> bytes:
    """The table with one cell replaced; `row` as a spreadsheet counts."""
    cells = frame.astype(object)
    cells.loc[row - 2, column] = text
    return csv(cells)


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


@pytest.mark.parametrize("data", [b"", b"\n\n  \r\n", b"\xef\xbb\xbf"])
def test_empty_file(data: bytes) -> None:
    refused(data, "empty")


def test_header_only() -> None:
    refused(b"u,g,r,z\n", "no rows")
    refused(b"u,g,r,z\n,,,\n\n", "no rows")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_recognized(survey: pd.DataFrame, delimiter: str) -> None:
    table = read_table(csv(survey, sep=delimiter), SCHEMA)
    pd.testing.assert_frame_equal(table.frame, survey)
    assert any("separated by" in n for n in table.notes)


def test_decimal_commas(survey: pd.DataFrame) -> None:
    table = read_table(csv(survey, sep=";", decimal=","), SCHEMA)
    pd.testing.assert_frame_equal(table.frame, survey)
    assert any("decimal points" in n for n in table.notes)


def test_ambiguous_delimiter() -> None:
    refused(b"a,b;c\n1,2;3\n4,5;6\n", "commas or semicolons")


@pytest.mark.parametrize(
    "encoding",
    ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
)
def test_encodings(survey: pd.DataFrame, encoding: str, tmp_path: Path) -> None:
    written = csv(survey).decode().encode(encoding)
    table = read_table(written, SCHEMA)
    pd.testing.assert_frame_equal(table.frame, survey)
    (tmp_path / "x.csv").write_bytes(written)
    _, read = pieces(tmp_path / "x.csv", 100)
    assert [len(piece.frame) for piece in read] == [len(survey)]


def test_a_file_that_was_never_filled_is_said_to_be_empty() -> None:
    refused(bytes(9000), "nothing but zero bytes")


def test_latin_1_is_read_with_a_note(survey: pd.DataFrame) -> None:
    named = survey.rename(columns={"mag_u": "größe_u", "mag_u_err": "größe_u_err"})
    table = read_table(named.to_csv(index=False).encode("latin-1"), SCHEMA)
    assert "größe_u" in table.features
    assert any("Latin-1" in n for n in table.notes)


def test_more_columns_than_the_limit_are_refused() -> None:
    head = ",".join(f"c{i}" for i in range(25_001))
    row = ",".join("1.5" for _ in range(25_001))
    refused(f"{head}\n{row}\n{row}\n".encode(), "25,001 columns", "25,000")


def test_cells_that_are_no_numbers(survey: pd.DataFrame) -> None:
    refused(broken(survey, 17, "mag_g", "bright"), "'mag_g'", "row 17", "'bright'", "not a number")
    refused(broken(survey, 5, "z", "0.3?"), "'z'", "row 5", "'0.3?'")
    refused(broken(survey, 5, "z", "1_000"), "'1_000'")


@pytest.mark.parametrize("word", ["inf", "-Infinity", "1e999"])
def test_infinities(survey: pd.DataFrame, word: str) -> None:
    refused(broken(survey, 9, "mag_r", word), "'mag_r'", "row 9", word)


def test_formula_in_a_numeric_column_is_refused(survey: pd.DataFrame) -> None:
    refused(broken(survey, 4, "mag_i", "=cmd|' /C calc'!A0"), "row 4", "=cmd")
    refused(broken(survey, 4, "mag_i", "@SUM(A1)"), "row 4", "@SUM")


def test_constant_columns(survey: pd.DataFrame) -> None:
    table = read_table(csv(survey.assign(airmass=1.0)), SCHEMA)
    assert "airmass" not in table.features
    assert any("'airmass'" in n and "every value is 1" in n for n in table.notes)
    refused(csv(survey.assign(z=0.5)), "'z'", "every value is 0.5")


def test_duplicate_rows_are_noted_and_kept(survey: pd.DataFrame) -> None:
    table = read_table(csv(pd.concat([survey, survey[:3]])), SCHEMA)
    assert len(table.frame) == 83
    assert any("3 rows repeat" in n and "row 82" in n for n in table.notes)


def test_duplicate_column_names() -> None:
    refused(b"u,g,u,z\n1,2,3,4\n", "'u'", "columns 1 and 3")


def test_all_values_missing(survey: pd.DataFrame) -> None:
    table = read_table(csv(survey.assign(mag_u=np.nan, mag_u_err=np.nan)), SCHEMA)
    assert "mag_u" not in table.features
    assert any("'mag_u'" in n and "every cell is empty" in n for n in table.notes)
    refused(csv(survey.assign(z=np.nan)), "'z'", "every cell is empty")
    refused(csv(survey[["z"]]), "no feature column")


def test_target_absent(survey: pd.DataFrame) -> None:
    without = csv(survey.drop(columns="z"))
    with pytest.raises(BadInput, match=r"no column 'z'.*\('mag_z' may be 'z'\)"):
        read_table(without, SCHEMA)
    (question,) = inspect_table(without, SCHEMA).questions  # which takes the guess
    assert (question.about, question.column, question.guess) == ("mapping", "z", "mag_z")
    refused(csv(survey), "no column 'mass'", target="mass")


def test_rows_without_a_target_are_left_out(survey: pd.DataFrame) -> None:
    survey.loc[[0, 7], "z"] = np.nan
    table = read_table(csv(survey), SCHEMA)
    assert len(table.frame) == 78
    assert table.rows[:2].tolist() == [3, 4]
    assert any("2 rows without a value in 'z'" in n and "row 2" in n for n in table.notes)


def test_too_few_rows(survey: pd.DataFrame) -> None:
    refused(csv(survey[:9]), "9 usable rows", "10")


def test_html_in_names_is_text_and_control_characters_go(survey: pd.DataFrame) -> None:
    evil = "<script>alert(1)</script>"
    data = csv(survey.rename(columns={"mag_u": evil, "mag_g": "mag\x07_g\u202e"}))
    table = read_table(data, SCHEMA)
    assert {evil, "mag _g"} <= set(table.features)


def test_size_limit_before_parsing(survey: pd.DataFrame, tmp_path: Path) -> None:
    large = tmp_path / "mine.csv"
    with large.open("wb") as out:
        out.truncate(300_000_000)  # sparse: takes no room
    with pytest.raises(BadInput, match=r"mine\.csv has 300 MB and the limit is 200 MB"):
        read_table(large, SCHEMA)
    refused(csv(survey), "limit", limit_bytes=1000)


def _zip(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "x")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG image"),
        (_zip("readme.md"), "ZIP archive without a table"),
        (_zip("xl/workbook.xml"), "Excel workbook"),
        (np.random.default_rng(0).bytes(5000), "binary"),
        (b"\x01\x02\x03\xfe\xff" * 500, "binary"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b'[{"u": 1}]', "JSON"),
    ],
)
def test_not_a_csv_at_all(data: bytes, kind: str) -> None:
    refused(data, kind)


def test_ragged_rows_name_the_row() -> None:
    refused(b'u,g,z\n1,2,3\n\n"4\n5",6,7\n8,9\n1,2,3,4\n', "row 5", "2 cells", "1 more")


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


def test_sentinels_are_noted_and_can_be_emptied(survey: pd.DataFrame) -> None:
    survey.loc[5:9, "mag_u"] = -99.0
    table = read_table(csv(survey), SCHEMA)
    assert any("-99 stands in 5 cells, first in row 7" in n for n in table.notes)
    emptied = read_table(csv(survey), SCHEMA, missing_codes=(-99.0,))
    assert emptied.frame["mag_u"].isna().sum() == 5


def test_errors_must_be_above_zero(survey: pd.DataFrame) -> None:
    refused(broken(survey, 6, "mag_r_err", "-0.1"), "'mag_r_err'", "row 6", "above zero")
    refused(broken(survey, 6, "mag_r_err", "0"), "'mag_r_err'", "row 6")


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


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no file absent\.csv"):
        read_table(tmp_path / "absent.csv", SCHEMA)


def test_a_quote_that_is_never_closed(survey: pd.DataFrame) -> None:
    refused(b'"' + b"a," * 200_000, "row 1", "quotes")
    refused(csv(survey).replace(b"\n2", b'\n"2', 1), "mine.csv")


@pytest.mark.slow
def test_damaged_files_end_in_sentences_and_never_in_a_crash(survey: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    whole = csv(survey)
    junk = [b'"', b",", b";", b"\n", b"\x00", b"\xff", b"=", b"\t", b"inf", b"_err", b"\r", b"-"]
    refusals = 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(3):
            at = int(rng.integers(100 if rng.random() < 0.5 else len(damaged)))
            damaged[at : at + int(rng.integers(3))] = junk[int(rng.integers(len(junk)))]
        preview = inspect_table(bytes(damaged), SCHEMA)
        assert all("\n" not in problem for problem in preview.problems)
        if preview.problems:
            refusals += 1
            with pytest.raises(BadInput, match=re.escape(preview.problems[0])):
                read_table(bytes(damaged), SCHEMA)
        else:
            read_table(bytes(damaged), SCHEMA)
    assert 50 < refusals < 150
