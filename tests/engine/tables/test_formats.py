"""Every format of files: the same table from each, written and read; and hostile files."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import openpyxl
import pandas as pd
import pytest

import scant
from scant.data_sources.open import open_table
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.protocol import FittedStudy
from scant.tables.formats import files, packed, registry
from scant.tables.read import inspect_table, read_table
from scant.tables.schema import TableSchema
from scant.training.prediction import predict_file
from tests.engine.files import packed as zipped

ENTRY = entry("redshift")


PACKED = ("", ".gz", ".zip", ".zst")
ENDINGS = [f"{kind}{packed}" for kind in ("csv", "tsv", "fwf", "jsonl") for packed in PACKED]
ENDINGS += ["txt", "csv.bz2", "parquet", "parquet.zip", "feather", "feather.gz", "h5", "h5.zst"]
ENDINGS += ["xlsx", "xlsx.gz", "ecsv", "ecsv.gz", "fits", "fits.gz"]


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(70, 3)).round(3), columns=["u", "g [mag]", "z"])
    numbers.loc[3, "u"] = np.nan
    return numbers.assign(word=[f"w{i}" for i in range(70)])


@pytest.fixture(scope="module")
def fitted() -> FittedStudy:
    numbers = np.random.default_rng(1).normal(size=(70, 3))
    table = pd.DataFrame(numbers, columns=["u", "g [mag]", "z"])
    run = scant.fit("redshift", table, device="cpu", own=False, n_basis=2, max_steps=2, restarts=1)
    list(run)
    return run.study


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_is_the_same_in_every_format_and_wherever_it_is_read(
    ending: str, frame: pd.DataFrame, fitted: FittedStudy, tmp_path: Path
) -> None:
    if ending.startswith("fits"):
        pytest.importorskip("astropy")
    path, out = tmp_path / f"mine.{ending}", tmp_path / f"told.{ending}"
    files.write(frame, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    own = frame[["u", "g [mag]", "z"]]
    content = path.read_bytes()
    preview = inspect_table(content, ENTRY.table, name=path.name)  # as the page does
    assert (preview.n_rows, preview.features, preview.problems) == (70, ("u", "g [mag]"), ())
    read = read_table(content, ENTRY.table, name="mine", mapping=preview.mapping)  # by its bytes
    pd.testing.assert_frame_equal(read.frame, own, check_exact=True)
    opened = open_table(ENTRY, path, ENTRY.settings())  # as the terminal and a notebook do
    pd.testing.assert_frame_equal(opened, own, check_exact=True)
    assert predict_file(fitted, path, out).rows == 70
    told = read_table(out, TableSchema(features=True, missing=True), purpose="predict").frame
    pd.testing.assert_frame_equal(told[list(own)], own, check_exact=True)
    wanted = fitted.predict(own)[["mean", "std", "lo80"]]
    pd.testing.assert_frame_equal(told[list(wanted)], wanted, rtol=1e-9)


@pytest.mark.parametrize("codes", [[-99], {"u": [-99.0], "g [mag]": [-99]}])
def test_codes_for_missing_values_empty_cells(codes: Any, tmp_path: Path) -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=list("ugz"))
    rows = rows.rename(columns={"g": "g [mag]"})
    coded = rows.copy()
    coded.iloc[5:9, 0] = coded.iloc[7:9, 1] = -99
    rows.iloc[5:9, 0] = rows.iloc[7:9, 1] = np.nan
    coded.to_csv(tmp_path / "coded.csv", index=False)
    for data in (tmp_path / "coded.csv", coded):
        read = open_table(ENTRY, data, ENTRY.settings(), missing_codes=codes)
        pd.testing.assert_frame_equal(read, rows)
        assert not any("-99" in note for note in read.attrs["notes"])
    with pytest.raises(BadInput, match=r"coded\.csv has no column 'y', for which a code"):
        open_table(ENTRY, tmp_path / "coded.csv", ENTRY.settings(), missing_codes={"y": [-99]})
    coded["u"] = [f"1,{i:03d}" for i in range(80)]
    coded.to_csv(tmp_path / "coded.csv", index=False)
    for mark, value in ((",", 1.007), (".", 1007)):
        read = open_table(ENTRY, tmp_path / "coded.csv", ENTRY.settings(), decimal=mark)
        assert read["u"][7] == value


def test_pieces_are_written_one_after_another(frame: pd.DataFrame, tmp_path: Path) -> None:
    for ending in ("csv", "parquet", "jsonl", "xlsx", "feather", "h5", "ecsv"):
        path = tmp_path / f"mine.{ending}"
        files.write((frame[i : i + 30] for i in range(0, 70, 30)), path)
        assert len(read_table(path, ENTRY.table).frame) == 70
    with pytest.raises(BadInput, match=r"mine\.sav: no table is written with this ending"):
        files.write(frame, tmp_path / "mine.sav")

    def broken() -> object:
        yield frame
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        files.write(broken(), tmp_path / "half.csv")  # type: ignore[arg-type]
    assert not (tmp_path / "half.csv").exists()


def test_sheets_members_and_groups_are_chosen(frame: pd.DataFrame, tmp_path: Path) -> None:
    book, archive, group = (tmp_path / name for name in ("b.xlsx", "b.zip", "b.h5"))
    with pd.ExcelWriter(book) as writer:
        for name, rows in (("few", 65), ("many", 70)):
            frame[:rows].to_excel(writer, sheet_name=name, index=False)
    with zipfile.ZipFile(archive, "w") as out:
        for name, rows in (("few.csv", 65), ("many.csv", 70)):
            out.writestr(name, frame[:rows].to_csv(index=False))
    with h5py.File(group, "w") as made:
        for name, rows in (("few", 65), ("many", 70)):
            for column in ("u", "z"):
                made[f"{name}/{column}"] = frame[column].to_numpy()[:rows]
    for path, part in ((book, "many"), (archive, "many.csv"), (group, "many")):
        preview = inspect_table(path, ENTRY.table)
        (question,) = [q for q in preview.questions if q.about == "part"]
        assert len(question.options) == 2
        assert question.guess.startswith("few")
        assert preview.n_rows == 65
        assert len(read_table(path, ENTRY.table, part=part).frame) == 70
        assert len(open_table(ENTRY, f"{path}#{part}", ENTRY.settings())) == 70
        with pytest.raises(BadInput, match=r"has no .* 'other'; it has few"):
            read_table(path, ENTRY.table, part="other")


def test_hdf5_of_other_programs(frame: pd.DataFrame) -> None:
    for store in (
        lambda f: f.create_dataset("t", data=frame[["u", "z"]].to_records(index=False)),
        lambda f: f.create_dataset("m", data=frame[["u", "z"]].to_numpy()),
        lambda f: (
            f.create_dataset("d/block0_items", data=np.array([b"u", b"z"])),
            f.create_dataset("d/block0_values", data=frame[["u", "z"]].to_numpy()),
            f.create_dataset("d/axis0", data=np.array([b"u", b"z"])),
        ),
    ):
        content = registry.read(_hdf5(store), "mine.h5")
        np.testing.assert_array_equal(content.table.to_numpy(), frame[["u", "z"]].to_numpy())


def test_an_address_is_refused_and_nothing_is_fetched() -> None:
    for word in ("https://example.org/a.csv", "s3://bucket/a.parquet", "file:///etc/passwd"):
        with pytest.raises(BadInput, match="is an address, and nothing is fetched from one"):
            open_table(ENTRY, word, ENTRY.settings())


def _hdf5(store: Callable[[h5py.File], object]) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w") as opened:
        store(opened)
    return out.getvalue()


def _parquet(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.to_parquet(out)
    return out.getvalue()


def _workbook(*rows: list[object]) -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(out)
    return out.getvalue()


def _linked(f: h5py.File) -> None:
    f["a"] = h5py.ExternalLink("/etc/passwd", "/x")
    f["b"] = h5py.SoftLink("/a")


def _external(f: h5py.File) -> None:
    f.create_dataset("t", (10, 2), "f8", external=[("/etc/passwd", 0, 160)])


ROWS = b"u,z\n" + b"1,2\n3,4\n" * 40
HOSTILE = {
    "gzip cut off": (gzip.compress(ROWS)[:-12], "damaged or cut off"),
    "gzip of nothing": (gzip.compress(b""), "an empty file"),
    "gzip bomb": (gzip.compress(b"1,2\n" * 50_000), "unpacks to more than"),
    "zip bomb": (zipped({"a.csv": b"1,2\n" * 50_000}), "unpacks to more than"),
    "zip cut off": (zipped({"a.csv": ROWS})[:60], "damaged ZIP"),
    "packed too often": (gzip.compress(gzip.compress(gzip.compress(ROWS))), "more than 2 times"),
    "a formula": (_workbook(["u", "z"], [1, 2], ["=A2*2", 3]), "row 3, column 1: a formula"),
    "an empty sheet": (_workbook(), "is empty"),
    "a workbook cut off": (_workbook(["u", "z"], [1, 2])[:900], "cannot be read|damaged"),
    "nested Parquet": (_parquet(pd.DataFrame({"a": [[1], [2]]})), "column 'a': .*list"),
    "Parquet cut off": (_parquet(pd.DataFrame({"a": [1.0]}))[:80], "cannot be read as Parquet"),
    "Parquet of one long word": (
        _parquet(pd.DataFrame({"a": pd.Categorical(["x" * 1000] * 3000)})), "MB of words"),
    "HDF5 without a table": (_hdf5(lambda f: f.create_dataset("a", data=3)), "holds no table"),
    "HDF5 of links": (_hdf5(_linked), "holds no table"),
    "HDF5 of another file": (_hdf5(_external), "lie in another file"),
    "HDF5 without bytes": (
        _hdf5(lambda f: f.create_dataset("a", (4_000_000, 100), "f8", chunks=True)), "cells"),
    "JSON lines of lists": (b'{"a": [1]}\n{"a": [2]}\n', "column 'a'"),
    "JSON lines of two kinds": (b'{"a": 1}\n{"a": "x"}\n', "cannot be read as JSON lines"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_end_in_a_sentence(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, sentence = HOSTILE[kind]
    monkeypatch.setattr(packed, "LIMIT_BYTES", 100_000)
    monkeypatch.setattr(files.columnar, "LIMIT_BYTES", 1_000_000)
    with pytest.raises(BadInput, match=sentence) as caught:
        read_table(data, ENTRY.table, name="mine.bin")
    assert "mine.bin" in str(caught.value)
    assert "\n" not in str(caught.value)
    (problem,) = inspect_table(data, ENTRY.table, name="mine.bin").problems
    assert problem in str(caught.value)


def test_a_group_of_columns_and_matrices_beside_them(frame: pd.DataFrame) -> None:
    def survey(f: h5py.File) -> None:
        f["photometry/id"] = np.arange(70) + 2**60
        f["photometry/mag"] = frame[["u", "g [mag]"]].to_numpy()
        f["photometry/mag_err"] = np.full((70, 2), 0.1)
        f["photometry/redshift"] = frame["z"].to_numpy()
        f["about/version"] = 3

    preview = inspect_table(_hdf5(survey), ENTRY.table)
    assert [q for q in preview.questions if q.about == "part"] == []
    read = read_table(_hdf5(survey), ENTRY.table)
    assert read.features == ("mag_1", "mag_2")
    assert {"mag_1_err", "mag_2_err", "z"} < set(read.frame)
    assert read.ignored["id"].tolist() == [str(2**60 + i) for i in range(70)]
    np.testing.assert_array_equal(read.frame["mag_2"], frame["g [mag]"])


@pytest.mark.parametrize("ending", ["hdf5", "fits", "pq", "h5"])
@pytest.mark.parametrize("grouped", [True, False])
def test_what_tables_io_writes(ending: str, grouped: bool, tmp_path: Path) -> None:
    tables_io = pytest.importorskip("tables_io")
    columns = {"id": np.arange(70), "mag_g_lsst": np.arange(70) / 7, "redshift": np.arange(70) / 9}
    tables_io.write({"photometry": columns} if grouped else columns, str(tmp_path / "x"), ending)
    (path,) = tmp_path.iterdir()
    read = read_table(path, ENTRY.table)
    assert read.features == ("mag_g_lsst",)
    np.testing.assert_array_equal(read.frame["z"], columns["redshift"])
    assert read.ignored["id"].tolist() == [str(i) for i in range(70)]


def test_a_damaged_workbook_is_called_one() -> None:
    with pytest.raises(BadInput, match="is a damaged workbook; save it again"):
        read_table(zipped({"a.csv": ROWS})[:60], ENTRY.table, name="mine.xlsx")
