"""ECSV, with spaces or commas, at once and piece by piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.tables.formats import files, registry
from scant.tables.pieces import pieces
from scant.tables.read import inspect_table, read_table
from scant.tables.schema import TableSchema

NUMBERS = TableSchema(features=True, missing=True)
HEADER = """# %ECSV 1.0
# ---
# datatype:
# - {name: u, unit: mag, datatype: float64}
# - {name: "band, of sorts", datatype: float64}
# - {name: word, datatype: string}
# schema: astropy-2.0
"""
SPACES = f'{HEADER}u "band, of sorts" word\n1.123 2.5 "a b"\n"" 4.125 ""\n3.0 nan c\n'
COMMAS = SPACES.replace("# ---", "# ---\n# delimiter: ','").partition("u ")[0]
COMMAS += 'u,"band, of sorts",word\n1.123,2.5,a b\n"",4.125,""\n3.0,nan,c\n'


@pytest.mark.parametrize("text", [SPACES, COMMAS], ids=["spaces", "commas"])
def test_it_is_read_without_a_question(text: str, tmp_path: Path) -> None:
    text += "".join(text.splitlines(keepends=True)[-3:]) * 10
    preview = inspect_table(text.encode(), entry("redshift").table, name="x.ecsv")
    assert preview.names == ("u", "band, of sorts", "word")
    assert [q for q in preview.questions if q.about != "mapping"] == []
    read = read_table(text.encode(), NUMBERS, name="x.ecsv", purpose="predict").frame
    np.testing.assert_array_equal(read["u"][:3], [1.123, np.nan, 3])
    np.testing.assert_array_equal(read["band, of sorts"][:3], [2.5, 4.125, np.nan])
    path = tmp_path / "x.ecsv"
    path.write_text(text, encoding="utf-8")
    (piece,) = pieces(path, 10)[1]
    np.testing.assert_array_equal(piece.cells["u"].values, read["u"])
    assert piece.frame["word"].tolist()[:3] == ["a b", "", "c"]


@pytest.mark.parametrize("text", [SPACES, COMMAS], ids=["spaces", "commas"])
def test_a_row_that_is_too_short_is_named_by_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ecsv"
    short = "17.0 18" if text == SPACES else "17.0,18"
    path.write_text(f"{text}{short}\n{text.splitlines()[-1]}\n", encoding="utf-8")
    row = len(text.splitlines()) + 1
    with pytest.raises(BadInput, match=rf"x\.ecsv, row {row}: 2 cells where the header has 3"):
        read_table(path, NUMBERS, purpose="predict")
    with pytest.raises(BadInput, match=rf"x\.ecsv, row {row}: 2 cells where the header has 3"):
        list(pieces(path, 10)[1])


def test_nothing_below_the_comments_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.ecsv"
    for text in (HEADER, f"{HEADER}u v\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=r"x\.ecsv"):
            read_table(path, NUMBERS)
        with pytest.raises(BadInput, match=r"x\.ecsv has no rows"):
            list(pieces(path, 10)[1])


def test_astropy_reads_what_we_write_and_we_what_it_writes(tmp_path: Path) -> None:
    table = pytest.importorskip("astropy.table")
    frame = pd.DataFrame({"u [mag]": [1.5, np.nan, 1 / 3], "n": [1, 2, 3], "s": ["a b", "", '"']})
    files.write((frame[i : i + 1] for i in range(3)), tmp_path / "x.ecsv")
    told = table.Table.read(tmp_path / "x.ecsv")
    assert told["n"].dtype == np.int64
    np.testing.assert_array_equal(told["u [mag]"].filled(np.nan), frame["u [mag]"])
    assert told["s"].filled("").tolist() == frame["s"].tolist()
    for kind in (" ", ","):
        table.Table.from_pandas(frame).write(
            tmp_path / "y.ecsv", delimiter=kind, overwrite=True, format="ascii.ecsv"
        )
        content = registry.read((tmp_path / "y.ecsv").read_bytes(), "y.ecsv")
        assert isinstance(content.table, str)
        read = read_table(tmp_path / "y.ecsv", NUMBERS, purpose="predict")
        np.testing.assert_array_equal(read.frame["u [mag]"], frame["u [mag]"])
        np.testing.assert_array_equal(read.frame["n"], frame["n"])
