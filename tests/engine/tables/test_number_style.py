"""Numbers and dates as text, read and written: one style for a whole file."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from scant.studies import entry
from scant.tables.cells import from_text
from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.dates import are_dates, as_numbers
from scant.tables.formats import csv_rows
from scant.tables.number_style import NumberStyle, number_style
from scant.tables.read import inspect_table, read_table

SCHEMA = entry("redshift").table


@pytest.mark.parametrize(
    ("delimiter", "cells", "values", "unsure"),
    [
        (";", ["52.345", "1.234.567"], [52345, 1234567], False),
        (";", ["52.345", "7,5"], [52345, 7.5], False),
        (";", ["52.345", "7.5"], [52.345, 7.5], False),
        (";", ["52.345", "0.123"], [52.345, 0.123], False),
        (";", ["52.345", "987"], [52345, 987], True),
        (";", ["52.345", "61.234"], [52.345, 61.234], True),
        (",", ["52.345", "61.234"], [52.345, 61.234], False),
        (",", ["53,862", "1.5"], [53862, 1.5], False),
        (",", ["53,862", "1,234,567"], [53862, 1234567], False),
        (",", ["53,862", "120"], [53862, 120], True),
        (";", ["53,862", "1,5"], [53.862, 1.5], False),
        ("\t", ["1.234,5", "2"], [1234.5, 2], False),
        (",", ["1 234 567", "1'234.5"], [1234567, 1234.5], False),
        (",", ["−3", "+1e3"], [-3, 1000], False),
    ],
)
def test_what_a_mark_is(
    delimiter: str, cells: list[str], values: list[float], unsure: bool
) -> None:
    text = pa.array(cells)
    style = number_style({"a": text}, delimiter)
    np.testing.assert_array_equal(from_text("a", text, style).values, values)
    assert (style.unsure is not None) == unsure


def test_an_answer_decides() -> None:
    rows = "".join(f"{i}.{100 + i};{i % 9}\n" for i in range(1, 90))
    data = f"u;z\n{rows}".encode()
    (question,) = inspect_table(data, SCHEMA).questions
    assert (question.about, question.guess) == ("decimal", ".")
    assert dict(question.options) == {".": "decimals: 1.101", ",": "thousands: 1101"}
    assert read_table(data, SCHEMA, decimal=".").frame["u"][0] == 1.101
    answered = inspect_table(data, SCHEMA, decimal=",")
    assert answered.questions == ()
    assert answered.columns[0].minimum == 1101


def test_codes_are_asked_about_once_and_emptied_where_they_are_meant() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1, 9, (80, 3)).round(3), columns=["u", "g", "z"])
    frame.loc[:9, "u"], frame.loc[5:9, "g"] = -99, -9999
    data = frame.to_csv(index=False).encode()
    (question,) = inspect_table(data, SCHEMA).questions
    assert question.guess == {"u": (-99.0,), "g": (-9999.0,)}
    read = read_table(data, SCHEMA, missing_codes=question.guess).frame
    assert read[["u", "g"]].isna().sum().tolist() == [10, 5]
    words = frame.astype(object)
    words.loc[:2, "u"] = ["(X)", ".", "*"]
    notes = read_table(words.to_csv(index=False).encode(), SCHEMA).notes
    assert any("'(X)', '*', '.' was read as an empty cell" in note for note in notes)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1970-01-02", "1970-01-03 12:00"], [1, 2.5]),
        (["13.01.1970", "1.2.1970"], [12, 31]),  # the day comes first, as in all of the column
        (["5/6/1970", "5/13/1970"], [125, 132]),
        (["Jan 2, 1970", "Feb-1-1970"], [1, 31]),
        (["06:30", "18:15:00"], [6.5, 18.25]),
    ],
)
def test_dates_and_times_are_numbers(cells: list[str], values: list[float]) -> None:
    column = from_text("day", pa.array([*cells, ""]))
    assert are_dates(column)
    read, _ = as_numbers(column)
    np.testing.assert_allclose(read.values, [*values, np.nan])
    assert not read.bad.any()


def test_words_and_versions_are_no_dates() -> None:
    for cells in (["a", "b"], ["1.5", "2.5"], ["march", "may"], ["1-2", "3-4"]):
        assert not are_dates(from_text("x", pa.array(cells)))


@pytest.mark.parametrize("style", [NumberStyle(), NumberStyle(",", "."), NumberStyle(".", ",")])
def test_a_cell_is_read_alike_among_numbers_and_among_words(style: NumberStyle) -> None:
    """Cells that all are plain numbers are read in a faster way, which must know no others."""
    words = ["1", "-1.5", "1.", ".5", "-.5", "+3", "1e5", "1E-5", "1.500", "1e400", "00.10", "1e"]
    words += ["", "NA", "NaN", "nan", "None", "NULL", "-", "inf", "-Infinity", "0x1A", "1_0"]
    words += ["−3", "1,5", "1 000", "1,000.5", "--5", "1.5f", "1d5", "1..2", "e5", "٣", "true"]
    for word in words:
        alone = from_text("a", pa.array([word]), style)
        among = from_text("a", pa.array([word, "words"]), style)
        for one, other in ((alone.values, among.values), (alone.empty, among.empty)):
            np.testing.assert_array_equal(one[0], other[0], err_msg=word)
        assert alone.bad[0] == among.bad[0], word


ODD = [0.0, -0.0, 1.0, -7.0, 1e-4, 9.999e-5, 1e-5, 5e-324, 1.7e308, 1e10, 12345678901.5, 1e15]
ODD += [1e16, 1e22, 0.1 + 0.2, 1 / 3, np.nan, 100000.0, 123456789012345680.0, -2.5e-17]


def frames() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=2000) * 10.0 ** rng.integers(-308, 308, 2000)
    words = ["plain", "", None, "a,b", 'say "so"', "two\nlines", "ä;ö", "x\ty", "-3", " "]
    numbers = pa.array([1.5, None, 1e-7, 3.0], pa.float64())
    whole = pa.array([1, None, -(2**63), 2**53 + 1], pa.int64())
    return {
        "numbers": pd.DataFrame({"odd": ODD * 100, "wide": wide, "near": rng.normal(size=2000)}),
        "words": pd.DataFrame({"a": words, "b": words[::-1], "n": np.arange(10)}, dtype=object),
        "strings": pd.DataFrame({"a": pd.array(words, "string"), "n": np.arange(10) > 4}),
        "arrow": pd.DataFrame(
            {
                "f": pd.arrays.ArrowExtensionArray(numbers),
                "i": pd.arrays.ArrowExtensionArray(whole),
                "t": pd.arrays.ArrowExtensionArray(pa.array(["a", None, "b;", ","])),
            }
        ),
    }


@pytest.mark.parametrize("name", list(frames()))
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_rows_are_those_of_pandas(name: str, delimiter: str) -> None:
    frame = frames()[name]
    for part in (frame, frame.iloc[1:]):  # a slice of an array has an offset
        made = csv_rows.rows(part, delimiter, ".")
        if name == "words":  # numbers among objects are not for Arrow
            assert made is None
            made = csv_rows.rows(part[["a", "b"]], delimiter, ".")
            part = part[["a", "b"]]
        assert made == part.to_csv(sep=delimiter, index=False, header=False).encode()


def test_decimal_commas_and_numbers_that_read_back() -> None:
    frame = frames()["numbers"]
    made = csv_rows.rows(frame, ";", ",")
    assert made == frame.to_csv(sep=";", decimal=",", index=False, header=False).encode()
    cells = list(csv.reader(io.StringIO(made.decode()), delimiter=";"))
    back = [float(row[1].replace(",", ".")) for row in cells]
    np.testing.assert_array_equal(back, frame["wide"])


def test_what_is_neither_number_nor_text_is_left_to_pandas() -> None:
    dates = pd.DataFrame({"d": pd.to_datetime(["2020-01-01"]), "x": [1.0]})
    mixed = pd.DataFrame({"d": ["a", 1.5], "x": [1.0, 2.0]})
    single = pd.DataFrame({"x": [""]})
    for frame in (dates, mixed, single, mixed[:0]):
        assert csv_rows.rows(frame, ",", ".") is None


@pytest.mark.parametrize("kind", [object, "string", pd.ArrowDtype(pa.string())])
def test_only_formulas_get_an_apostrophe(kind: object) -> None:
    words = ["=1+1", " =x", "-3", "-3e5", "+a", "@b", "--", "x=1", None, "＝1", "\tz", "-٣"]
    quoted = ["'=1+1", "' =x", "-3", "-3e5", "'+a", "'@b", "--", "x=1", None, "'＝1", "'\tz", "-٣"]
    made = safe_for_spreadsheet(pd.DataFrame({"w": pd.array(words, kind), "n": range(12)}))
    assert [None if pd.isna(w) else w for w in made["w"]] == quoted
