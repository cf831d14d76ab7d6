"""Rows of CSV files through Arrow are those that pandas writes, character by character."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.formats import csv_rows

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
