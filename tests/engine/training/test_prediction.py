"""A file predicted piece by piece: as it came, with the study's columns behind."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import scant
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.protocol import FittedStudy
from scant.tables import pieces
from scant.tables.column_matching import with_identifiers
from scant.tables.csv_parser import parse
from scant.tables.formats import columnar, files, registry
from scant.tables.read import read_table
from scant.training import downloads
from scant.training.downloads import predict_own, predict_upload
from scant.training.prediction import predict_file
from tests.engine.studies.mitosis.nuclei import clouds
from tests.paths import TEMPLATES
from tests.tiny import fixed

pytestmark = pytest.mark.slow

TINY = {**fixed("redshift"), "n_basis": 2, "max_steps": 2, "restarts": 1}


@pytest.fixture(scope="module")
def galaxies() -> FittedStudy:
    run = scant.fit("redshift", TEMPLATES / "redshift.csv", device="cpu", **TINY)
    list(run)
    return run.study


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of few rows, so that a short table has many of them."""
    monkeypatch.setattr(pieces, "ROWS", 33)
    monkeypatch.setattr(pieces, "_CHARACTERS", 6000)
    monkeypatch.setattr(columnar, "BLOCK", 12_000)


def table() -> pd.DataFrame:
    rows = pd.read_csv(TEMPLATES / "redshift.csv", dtype=str, keep_default_na=False)
    rows.insert(0, "objid", [f"{i:09d}" for i in range(len(rows))])
    return rows.assign(note=["a, b", "two\nlines", "", "=1+1"] * (len(rows) // 4))


def by_numbers(study: FittedStudy, rows: pd.DataFrame) -> pd.DataFrame:
    return study.predict(rows[study.inputs].replace("", "nan").astype(float))


def test_a_frame_tells_what_a_file_tells(galaxies: FittedStudy, tmp_path: Path) -> None:
    new = pd.read_csv(TEMPLATES / "redshift.csv").drop(columns=galaxies.inputs[0])
    new.to_csv(tmp_path / "new.csv", index=False)
    own = scant.predict(galaxies, new)
    made = predict_file(galaxies, tmp_path / "new.csv", tmp_path / "out.csv")
    notes = own.attrs["notes"]
    assert list(made.notes) == [text.replace("the table", "new.csv") for text in notes]
    assert notes == ["the table lacks mag_u; all its cells are taken as missing."]


PIECES = ["csv", "csv.gz", "csv.zst", "tsv.bz2", "tsv", "csv.zip", "jsonl", "jsonl.gz", "parquet"]
PIECES += ["feather", "h5"]


@pytest.mark.parametrize("kind", [*PIECES, "parquet.gz", "fwf", "xlsx"])
def test_pieces_come_to_the_same_as_the_whole(
    galaxies: FittedStudy, tmp_path: Path, small: None, kind: str
) -> None:
    rows, file, out = table(), tmp_path / f"x.{kind}", tmp_path / f"out.{kind}"
    if kind == "fwf":
        rows = rows.drop(columns=["note"]).replace("", "NA")
    files.write(rows, file)
    shares: list[float] = []
    made = predict_file(galaxies, file, out, lambda share, _: shares.append(share))
    told = as_text(out)
    if kind.startswith(("csv", "tsv", "xlsx")):
        rows["note"] = rows["note"].replace("=1+1", "'=1+1")  # to a spreadsheet a formula
    assert made.rows == len(rows) > 10 * len(galaxies.inputs)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    if kind in PIECES:
        assert len(shares) > 5
    pd.testing.assert_frame_equal(told[list(rows)].astype(object), rows.astype(object))
    whole = by_numbers(galaxies, rows.replace("NA", ""))
    for column in ("mean", "std", "lo95", "outside"):
        values = told[column].replace({"True": "1", "False": "0"}).astype(float)
        np.testing.assert_allclose(values, whole[column], rtol=1e-6)
    words = (tmp_path / "columns.md").read_text()
    assert "| objid | as given | as given |" in words
    assert "| hi80 | upper end of the interval" in words
    assert sorted(f.name for f in tmp_path.iterdir()) == sorted([file.name, out.name, "columns.md"])


def as_text(path: Path) -> pd.DataFrame:
    """The cells of a table in any format, as they stand in it."""
    content = registry.read(path, path.name).table
    if isinstance(content, pd.DataFrame):
        return content.astype(str)
    raw = parse(str(content), path.name, 99)
    return pd.DataFrame({n: c.to_pylist() for n, c in zip(raw.names, raw.columns)})


@pytest.mark.parametrize("kind", ["jsonl", "feather", "h5", "parquet"])
def test_long_numbers_of_objects_keep_their_digits(
    galaxies: FittedStudy, tmp_path: Path, small: None, kind: str
) -> None:
    rows = table()[galaxies.inputs].apply(pd.to_numeric)
    rows["objid"] = 1237651539800195139 + np.arange(len(rows))
    rows["seen"] = [None] * 100 + ["2024-01-02"] * (len(rows) - 100)
    rows["count"] = [1] * (len(rows) - 1) + [2.5]
    files.write(rows, tmp_path / f"x.{kind}")
    predict_file(galaxies, tmp_path / f"x.{kind}", tmp_path / f"out.{kind}")
    told = registry.read(tmp_path / f"out.{kind}", "out").table
    assert told["objid"].tolist() == rows["objid"].tolist()
    assert told["count"].tolist() == rows["count"].tolist()
    assert str(told["seen"].iloc[-1]).startswith("2024-01-02")


def test_one_of_several_tables_is_predicted(galaxies: FittedStudy, tmp_path: Path) -> None:
    rows, book, archive = table().drop(columns="note"), tmp_path / "b.xlsx", tmp_path / "b.zip"
    with pd.ExcelWriter(book) as writer:
        rows[:5].to_excel(writer, sheet_name="few", index=False)
        rows[:9].to_excel(writer, sheet_name="more", index=False)
    with zipfile.ZipFile(archive, "w") as out:
        for name, count in (("few.csv", 5), ("more.jsonl", 9)):
            files.write(rows[:count], tmp_path / name)
            out.write(tmp_path / name, name)
    for source in (f"{book}#more", f"{archive}#more.jsonl"):
        assert predict_file(galaxies, source, tmp_path / "out.csv").rows == 9
    made = predict_file(galaxies, archive, tmp_path / "out.csv")
    assert made.rows == 5
    assert any("b.zip holds 2 tables; few.csv was read" in note for note in made.notes)
    with pytest.raises(BadInput, match=r"b\.xlsx has no sheet 'most'; it has few, more"):
        predict_file(galaxies, f"{book}#most", tmp_path / "out.csv")
    with pytest.raises(BadInput, match="is an address, and nothing is fetched from one"):
        predict_file(galaxies, "https://example.org/a.csv", tmp_path / "out.csv")


def test_decimal_commas_come_back_as_they_went(
    galaxies: FittedStudy, tmp_path: Path, small: None
) -> None:
    file, out = tmp_path / "de.csv", tmp_path / "told.csv"
    rows = table().drop(columns="note")
    german = rows.apply(lambda column: column.str.replace(".", ",", regex=False))
    german["zero"] = "-0,5"
    german.to_csv(file, index=False, sep=";", encoding="cp1252")
    predict_file(galaxies, file, out)
    told = pd.read_csv(out, sep=";", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(told[list(german)].astype(object), german.astype(object))
    told = pd.read_csv(out, sep=";", decimal=",")
    np.testing.assert_allclose(told["mean"], by_numbers(galaxies, rows)["mean"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_late_mistake_is_named_and_leaves_what_was_there(
    galaxies: FittedStudy, tmp_path: Path, small: None, kind: str
) -> None:
    file, out = tmp_path / f"x.{kind}", tmp_path / f"out.{kind}"
    rows = table()
    rows.loc[150, "mag_r"] = "bright"
    rows.to_csv(file, index=False) if kind == "csv" else rows.to_parquet(file)
    out.write_text("precious")
    with pytest.raises(BadInput, match=rf"x\.{kind}, column 'mag_r', row 152: got 'bright'"):
        predict_file(galaxies, file, out)
    assert out.read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_predicted_is_one_sentence(galaxies: FittedStudy, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    table().to_csv(file, index=False)
    with pytest.raises(BadInput, match="is the table itself"):
        predict_file(galaxies, file, file)
    with pytest.raises(BadInput, match=r"end in one of \.arrow"):
        predict_file(galaxies, file, tmp_path / "out.xyz")
    with pytest.raises(BadInput, match="cannot be written"):
        predict_file(galaxies, file, tmp_path / "no" / "out.csv")
    with pytest.raises(BadInput, match="There is no file"):
        predict_file(galaxies, tmp_path / "y.csv", tmp_path / "out.csv")
    file.write_bytes(gzip.compress(table().to_csv(index=False).encode())[:-100])
    packed = file.rename(tmp_path / "x.csv.gz")
    with pytest.raises(BadInput, match=r"x\.csv\.gz is damaged or cut off"):
        predict_file(galaxies, packed, tmp_path / "out.csv")
    other = tmp_path / "other.csv"
    pd.DataFrame({"height": [1.0, 2.0], "width": [2.0, 3.0]}).to_csv(other, index=False)
    with pytest.raises(BadInput, match=r"other\.csv lacks the column 'mag_u'"):
        predict_file(galaxies, other, tmp_path / "out.csv")
    (tmp_path / "columns.md").write_text("mine")
    good = tmp_path / "good.csv"
    table().to_csv(good, index=False)
    made = predict_file(galaxies, good, tmp_path / "out.csv")
    assert (tmp_path / "columns.md").read_text() == "mine"
    assert made.dictionary.name == "out.csv.columns.md"


def test_an_upload_comes_back_as_a_zip_in_its_own_format(galaxies: FittedStudy) -> None:
    content = table().to_csv(index=False).encode()
    answer = predict_upload(galaxies, "../../a\\..x.csv", content)
    assert answer.rows == len(table())
    with zipfile.ZipFile(io.BytesIO(answer.content)) as made:
        names = ["predictions.csv", "columns.md", "predictions.densities.hdf5"]
        assert made.namelist() == names
        told = pd.read_csv(made.open("predictions.csv"), dtype={"objid": str})
    assert told["objid"].tolist() == table()["objid"].tolist()
    with pytest.raises(BadInput, match="end in one of"):
        predict_upload(galaxies, "x.pdf", content)


def test_what_is_packed_small_and_is_large_is_refused(
    galaxies: FittedStudy, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "UPLOADED_ROWS", 50)
    packed = gzip.compress(table().to_csv(index=False).encode())
    with pytest.raises(BadInput, match="over 50 rows"):
        predict_upload(galaxies, "x.csv.gz", packed)
    endless = gzip.compress(b"mag_u,mag_g\n1,2\n3," + b"0" * 20_000)
    with pytest.raises(BadInput, match="a line of over"):
        predict_upload(galaxies, "x.csv.gz", endless)


def test_patients_are_predicted_from_all_their_rows_wherever_they_stand(
    tmp_path: Path, small: None
) -> None:
    run = scant.fit("multiview", "survival", device="cpu", max_steps=3, baselines=False, repeats=1)
    list(run)
    rows = run.table.groupby("patient").head(3).sample(60, random_state=0)
    rows.drop(columns=["time", "event"]).to_csv(tmp_path / "x.csv", index=False)
    predict_file(run.study, tmp_path / "x.csv", tmp_path / "out.csv")
    told = pd.read_csv(tmp_path / "out.csv", dtype={"patient": str})
    assert (told.groupby("patient")["median"].nunique() == 1).all()
    whole = run.study.predict(rows)
    for column in ("median", "lo80", "std_model"):
        np.testing.assert_allclose(told[column], whole[column], rtol=1e-5)
    assert "time" in {c.name for c in entry("multiview").table.columns}


def test_class_shares_are_estimated_from_the_whole_file(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = clouds({"few": 60, "many": 240}).sort_values("label")
    run = scant.fit("mitosis", rows, device="cpu", max_steps=3, classifier="GP", time_budget=5)
    list(run)
    new = rows.drop(columns="label")
    new.to_csv(tmp_path / "x.csv", index=False)
    predict_file(run.study, tmp_path / "x.csv", tmp_path / "out.csv")
    told, whole = pd.read_csv(tmp_path / "out.csv"), run.study.predict(new)
    np.testing.assert_allclose(told["p(few)"], whole["p(few)"], rtol=1e-5)
    assert any("likeliest for its rows" in limit for limit in run.study.limits())
    monkeypatch.setattr(downloads, "UPLOADED_ROWS", 50)
    with pytest.raises(BadInput, match="over 50 rows"):
        predict_upload(run.study, "x.csv", new.to_csv(index=False).encode())


def stored(rows: pd.DataFrame, study: str) -> bytes:
    """A table as the wizard stores it."""
    schema = entry(study).table
    read = read_table(rows.to_csv(index=False).encode(), schema)
    return with_identifiers(read, schema).to_parquet(index=False)


def own_predictions(study: FittedStudy, upload: bytes) -> pd.DataFrame:
    with zipfile.ZipFile(io.BytesIO(predict_own(study, "upload:1", upload))) as made:
        words = made.read("columns.md").decode()
        told = pd.read_csv(made.open("predictions.csv"))
    assert all(f"| {name} |" in words for name in told)
    return told


def test_predictions_of_an_own_table_tell_its_rows_by_their_identifiers(
    galaxies: FittedStudy,
) -> None:
    rows = table().drop(columns="note")
    told = own_predictions(galaxies, stored(rows, "redshift"))
    assert told["objid"].tolist() == [*range(len(rows))]
    np.testing.assert_allclose(told["mean"], by_numbers(galaxies, rows)["mean"])


@pytest.mark.parametrize(
    ("study", "columns", "quick"),
    [
        ("aggregation", ["task", "age_lo", "age_hi", "year_lo"], {}),
        ("genes", ["output", "replica", "x"], {"baselines": False}),
    ],
)
def test_an_own_table_without_a_split_has_predictions_of_all_its_rows(
    study: str, columns: list[str], quick: dict[str, bool]
) -> None:
    rows = pd.read_csv(TEMPLATES / f"{study}.csv").drop(columns="test", errors="ignore")
    rows = rows[::2].reset_index(drop=True)
    upload = stored(rows, study)
    data = pd.read_parquet(io.BytesIO(upload))
    run = scant.fit(study, data, device="cpu", own=False, max_steps=2, **quick)
    list(run)
    told = own_predictions(run.study, upload)
    pd.testing.assert_frame_equal(told[columns], rows[columns], check_dtype=False)
    assert {"train", "test"} <= set(told["role"])
    assert {"mean", "std_y", "lo95", "hi95", "outside"} <= set(told)
