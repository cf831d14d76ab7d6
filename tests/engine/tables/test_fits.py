"""FITS tables: what astropy writes is read, what we write astropy reads, and files that are bad."""

from __future__ import annotations

import builtins
import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.tables.formats import files, fits_writing, registry
from scant.tables.pieces import pieces
from scant.tables.read import inspect_table, read_table

astropy_fits = pytest.importorskip("astropy.io.fits")
astropy_table = pytest.importorskip("astropy.table")
ID = 2**60 + 1  # more digits than a float has


def fits_of(*hdus: Any) -> bytes:
    out = io.BytesIO()
    astropy_fits.HDUList([astropy_fits.PrimaryHDU(), *hdus]).writeto(out)
    return out.getvalue()


def catalogue(rows: int = 30) -> np.ndarray:
    kind = [("id", "<i8"), ("u", ">f4"), ("name", "S5"), ("flux", ">f8", (3,)), ("star", "?")]
    made = np.zeros(rows, [*kind, ("nights", "<i2"), ("big", "<u8"), ("ft", "c8")])
    made["id"], made["u"] = ID + np.arange(rows), np.arange(rows) / 4
    made["name"], made["flux"] = b"a b", np.arange(3 * rows).reshape(-1, 3)
    made["star"][1], made["nights"] = True, np.arange(rows)
    made["big"] = np.uint64(2**63 + 1)
    return made


def read(data: bytes) -> tuple[pd.DataFrame, tuple[str, ...]]:
    content = registry.read(data, "x.bin")
    assert isinstance(content.table, pd.DataFrame)
    return content.table, content.notes


def changed(data: bytes, card: str, value: object) -> bytes:
    """The file with another value in a header of its first table."""
    at = data.index(f"{card:8s}= ".encode(), 2880)
    return data[:at] + f"{card:8s}= {value:>20}".ljust(80).encode() + data[at + 80 :]


def test_columns_of_all_kinds_become_numbers_and_words() -> None:
    hdu = astropy_fits.BinTableHDU(catalogue())
    hdu.header["TNULL6"] = 7
    frame, notes = read(fits_of(hdu))
    assert list(frame) == [
        "id", "u", "name", "flux_1", "flux_2", "flux_3", "star", "nights", "big",
    ]  # fmt: skip
    assert notes == ("x.bin, column 'ft': each row holds complex numbers; it was left out.",)
    assert frame["id"].tolist() == [ID + i for i in range(30)]
    assert frame["big"].tolist() == [2**63 + 1] * 30
    assert frame["u"].tolist() == [i / 4 for i in range(30)]
    assert all(frame[c].to_numpy().dtype.isnative for c in ("id", "u", "flux_2"))
    assert frame["flux_2"].tolist() == [3.0 * i + 1 for i in range(30)]
    assert set(frame["name"]) == {"a b"}
    assert frame["star"].astype(int).tolist()[:3] == [0, 1, 0]
    assert frame["nights"].isna().tolist() == [i == 7 for i in range(30)]


def test_what_is_masked_is_empty_and_ids_keep_their_digits() -> None:
    rows = {"id": ID + np.arange(30), "u": np.arange(30) / 7, "z": np.arange(30) / 11}
    rows["n"] = np.arange(30)
    table = astropy_table.Table(rows, masked=True)
    table["u"].mask[3], table["n"].mask[4] = True, True
    out = io.BytesIO()
    table.write(out, format="fits")
    read = read_table(out.getvalue(), entry("redshift").table, name="x.fits")
    assert np.flatnonzero(read.frame["u"].isna()).tolist() == [3]
    assert np.flatnonzero(read.frame["n"].isna()).tolist() == [4]
    assert read.ignored["id"].tolist() == [str(ID + i) for i in range(30)]


def test_lists_bits_and_spectra() -> None:
    lists = np.array([np.arange(i) for i in range(5)], dtype=object)
    column = astropy_fits.Column
    hdu = astropy_fits.BinTableHDU.from_columns([
        column("a", "J", array=np.arange(5)),
        column("lists", "PJ()", array=lists),
        column("bits", "2X", array=np.ones((5, 2), dtype=bool)),
        column("spectrum", "300E", array=np.zeros((5, 300))),
        column("cube", "6E", dim="(3,2)", array=np.arange(30.0).reshape(5, 2, 3)),
        column("words", "6A", dim="(3,2)", array=np.array([["ab", "c"]] * 5)),
    ])  # fmt: skip
    frame, notes = read(fits_of(hdu))
    assert list(frame) == [
        "a", "bits_1", "bits_2", *(f"cube_{i}" for i in range(1, 7)), "words_1", "words_2",
    ]  # fmt: skip
    assert frame["cube_5"].tolist() == [4, 10, 16, 22, 28]
    assert frame["words_2"].tolist() == ["c"] * 5
    assert [n.partition(": ")[2] for n in notes] == [
        "each row holds a list of its own length; it was left out.",
        "each row holds 300 values; it was left out.",
    ]


def test_scaled_numbers_and_their_nulls() -> None:
    column = astropy_fits.Column("v", "I", null=2, array=np.arange(30))
    data = fits_of(astropy_fits.BinTableHDU.from_columns([column]))
    end = b"END".ljust(80)
    cards = b"TSCAL1  =                  0.5".ljust(80) + b"TZERO1  =                  5.0".ljust(
        80
    )
    at = data.index(end, 2880)
    frame, _ = read(data[:at] + cards + end + data[at + 240 :])
    np.testing.assert_array_equal(frame["v"][:4], [5, 5.5, np.nan, 6.5])


def test_an_ascii_table() -> None:
    column = astropy_fits.Column
    hdu = astropy_fits.TableHDU.from_columns([
        column("n", "I6", array=np.arange(5), ascii=True, null="3"),
        column("v", "D14.6", array=np.arange(5) / 7, ascii=True),
        column("word", "A5", array=["D1", "r s", "t", "", "u"], ascii=True),
    ])  # fmt: skip
    frame, _ = read(fits_of(hdu))
    assert frame["n"].tolist() == ["0", "1", "2", "", "4"]
    np.testing.assert_allclose(frame["v"].astype(float), np.arange(5) / 7, rtol=1e-5)
    assert frame["word"].tolist() == ["D1", "r s", "t", "", "u"]


def test_one_of_several_tables_is_chosen() -> None:
    rows, hdu = catalogue(), astropy_fits.BinTableHDU
    image = astropy_fits.ImageHDU(np.zeros((9, 9)))
    data = fits_of(image, hdu(rows[:0], name="NONE"), hdu(rows[:20], name="A"), hdu(rows, name="A"))
    preview = inspect_table(data, entry("redshift").table, name="x.fits")
    (question,) = [q for q in preview.questions if q.about == "part"]
    assert [answer for answer, _ in question.options] == ["A", "A (4)"]
    assert preview.n_rows == 20
    assert inspect_table(data, entry("redshift").table, part="A (4)").n_rows == 30


GOOD = fits_of(astropy_fits.BinTableHDU(catalogue()))
BAD = {
    "rows cut off": (GOOD[:-2880], "is cut off: its header promises 30 rows"),
    "header cut off": (GOOD[:4000], "without a table"),
    "the beginning of one": (GOOD[:100], "damaged or not a FITS file"),
    "an image": (fits_of(astropy_fits.ImageHDU(np.zeros((9, 9)))), "without a table"),
    "rows by the billion": (changed(GOOD, "NAXIS2", 10**9), "promises 1,000,000,000 rows"),
    "more rows than a file can have": (changed(GOOD, "NAXIS2", 10**18), "FITS"),
    "fewer than no rows": (changed(GOOD, "NAXIS2", -5), "FITS"),
    "rows that are too short": (changed(GOOD, "NAXIS1", 10), "of rows that have 10"),
    "rows of words": (changed(GOOD, "NAXIS1", "'abc'"), "damaged or not a FITS file"),
    "columns by the billion": (changed(GOOD, "TFIELDS", 10**9), "without a table"),
    "columns that are not there": (changed(GOOD, "TFIELDS", 900), "damaged or not a FITS file"),
    "cells by the million": (changed(GOOD, "TFORM2", "'9999999E'"), "columns take"),
    "a type that is none": (changed(GOOD, "TFORM2", "'Z'"), "damaged or not a FITS file"),
    "a name twice": (changed(GOOD, "TTYPE2", "'id'"), "FITS|twice"),
    "too many parts": (fits_of() + fits_of(astropy_fits.ImageHDU())[2880:] * 1100, "parts"),
    "noise": (b"SIMPLE  = " + np.random.default_rng(0).bytes(9999), "damaged or not a FITS file"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_sentence(kind: str, tmp_path: Path) -> None:
    data, sentence = BAD[kind]
    with pytest.raises(BadInput, match=sentence) as caught:
        read_table(data, entry("redshift").table, name="x.fits")
    assert "x.fits" in str(caught.value)
    assert "\n" not in str(caught.value)
    (tmp_path / "x.fits").write_bytes(data)
    with pytest.raises(BadInput, match=sentence):
        list(pieces(tmp_path / "x.fits", 100)[1])


def test_without_astropy_a_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("astropy"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    said = r'x\.fits .*astropy is needed: pip install "scant-gp\[astro\]"'
    with pytest.raises(BadInput, match=said):
        read_table(GOOD, entry("redshift").table, name="x.fits")
    with pytest.raises(BadInput, match=said):
        files.write(pd.DataFrame({"a": [1.0]}), tmp_path / "x.fits")


def test_astropy_reads_what_is_written_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fits_writing, "MAX_BYTES", 1000)  # so that words that grow move many blocks
    rng = np.random.default_rng(0)
    words = ["a" * int(n) for n in rng.integers(0, 5, 100)] + ["", "longer words", "x" * 70]
    frame = pd.DataFrame({
        "id": ID + np.arange(103), "u [mag]": rng.normal(size=103), "β": rng.normal(size=103),
        "word": words, "small": rng.normal(size=103).astype(np.float32), "yes": words[0] == "",
    })  # fmt: skip
    frame["n"] = pd.array(np.arange(103), dtype="Int64").copy()
    frame.loc[5, "n"], frame.loc[6, "u [mag]"] = pd.NA, np.nan
    files.write((frame[i : i + 17] for i in range(0, 103, 17)), tmp_path / "x.fits")
    with astropy_fits.open(tmp_path / "x.fits") as opened:
        opened.verify("exception")
        assert opened[1].header["NAXIS2"] == 103
        assert opened[1].columns["small"].format == "E"
    told = astropy_table.Table.read(tmp_path / "x.fits")
    assert told.colnames == ["id", "u [mag]", "_", "word", "small", "yes", "n"]
    assert told["id"].tolist() == frame["id"].tolist()
    assert [str(w) for w in told["word"].filled("")] == words
    np.testing.assert_array_equal(np.ma.filled(told["u [mag]"], np.nan), frame["u [mag]"])
    assert told["n"].mask.tolist() == frame["n"].isna().tolist()
    assert (tmp_path / "x.fits").stat().st_size % 2880 == 0


def test_a_long_table_is_read_and_written_in_constant_memory(tmp_path: Path) -> None:
    made = pd.DataFrame(np.zeros((5000, 8)), columns=list("abcdefgh"))
    peaks = []
    for count in (10, 40):
        files.write((made for _ in range(count)), tmp_path / "in.fits")
        tracemalloc.start()
        rows: Iterator[pd.DataFrame] = (p.frame for p in pieces(tmp_path / "in.fits", 10)[1])
        files.write(rows, tmp_path / "out.fits")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (tmp_path / "out.fits").stat().st_size > 5000 * 64 * count
    assert peaks[1] < 1.2 * peaks[0]
