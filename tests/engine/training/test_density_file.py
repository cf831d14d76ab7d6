"""p(z) beside predictions: ensembles of qp, columns, and what a page's ZIP holds."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

import scant
from scant.errors import BadInput
from scant.studies.protocol import FittedStudy
from scant.tables import pieces
from scant.training import density_file
from scant.training.downloads import predict_own, predict_upload
from scant.training.prediction import predict_file
from tests.paths import TEMPLATES
from tests.tiny import fixed

pytestmark = pytest.mark.slow

TINY = {**fixed("redshift"), "stack": True, "n_basis": 2, "max_steps": 2, "restarts": 2}
MANY = 20_000


@pytest.fixture(scope="module", params=["no", "yes"])
def galaxies(request: pytest.FixtureRequest) -> FittedStudy:
    table = TEMPLATES / "redshift.csv"
    run = scant.fit("redshift", table, device="cpu", **{**TINY, "log_target": request.param})
    list(run)
    return run.study


def table() -> pd.DataFrame:
    rows = pd.read_csv(TEMPLATES / "redshift.csv")
    rows.insert(0, "objid", 587722981742084097 + np.arange(len(rows)))
    return rows


def moments(data: h5py.Group) -> tuple[np.ndarray, np.ndarray]:
    w, m, s = (data[name][:].astype(float) for name in ("weights", "means", "stds"))
    mean = (w * m).sum(1)
    return mean, np.sqrt((w * (s**2 + (m - mean[:, None]) ** 2)).sum(1))


def test_an_ensemble_beside_the_predictions(
    galaxies: FittedStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "ROWS", 33)
    rows, out = table(), tmp_path / "out.csv"
    rows.to_csv(tmp_path / "x.csv", index=False)
    made = predict_file(galaxies, tmp_path / "x.csv", out, densities="qp")
    told = pd.read_csv(out)
    assert "out.densities.hdf5" in made.notes[0]
    with h5py.File(tmp_path / "out.densities.hdf5") as file:
        assert file["data"]["means"].dtype == np.float32
        assert file["data"]["means"].shape == (len(rows), 5)
        np.testing.assert_array_equal(file["ancil"]["object_id"][:], rows["objid"])
        mean, std = moments(file["data"])
        np.testing.assert_allclose(file["ancil"]["zmean"][:], mean, rtol=1e-5)
        for name in ("zmode", "zmedian"):
            assert np.isfinite(file["ancil"][name][:]).all()
    known = {str(name) for name in told}
    assert not any(name.startswith("weight_") for name in known)
    if galaxies.settings.log_target != "yes":  # its moments are those of one log-normal
        np.testing.assert_allclose(mean, told["mean"], atol=1e-5)
        np.testing.assert_allclose(std, told["std"], rtol=1e-4)


def test_columns_of_the_predictions(galaxies: FittedStudy, tmp_path: Path) -> None:
    table().to_parquet(tmp_path / "x.parquet")
    made = predict_file(galaxies, tmp_path / "x.parquet", tmp_path / "o.h5", densities="columns")
    with h5py.File(tmp_path / "o.h5") as file:
        told = {name: cells[:] for name, cells in file["table"].items() if name[-2:-1] == "_"}
    own = galaxies.densities(table()).columns()  # type: ignore[attr-defined]
    for name, values in own.items():
        np.testing.assert_allclose(told[name], values)
    assert "| std_5 | deviation of Gaussian 5" in made.dictionary.read_text()
    assert not (tmp_path / "o.densities.hdf5").exists()


def test_rows_without_identifiers_are_counted_from_zero(
    galaxies: FittedStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "ROWS", 33)
    rows = table().drop(columns="objid")
    rows.to_csv(tmp_path / "x.csv", index=False)
    predict_file(galaxies, tmp_path / "x.csv", tmp_path / "out.tsv.gz", densities="qp")
    with h5py.File(tmp_path / "out.densities.hdf5") as file:
        np.testing.assert_array_equal(file["ancil"]["object_id"][:], np.arange(len(rows)))


def test_a_galaxy_takes_120_bytes_at_most(tmp_path: Path, galaxies: FittedStudy) -> None:
    told = galaxies.densities(table())  # type: ignore[attr-defined]
    assert told.weights.shape[1] <= 5
    some = told.rows(np.arange(MANY) % len(told))
    with density_file.MixtureWriter(tmp_path / "x.hdf5") as file:
        rows = pd.DataFrame({"id": np.arange(MANY)})
        for at in range(0, MANY, 5000):
            block = slice(at, at + 5000)
            density_file.add_rows(file, some.rows(block), rows.iloc[block])
    assert (tmp_path / "x.hdf5").stat().st_size < 120 * MANY


def test_downloads_of_a_page_bring_densities(galaxies: FittedStudy) -> None:
    content = table().to_csv(index=False).encode()
    answer = predict_upload(galaxies, "stars.csv", content)
    assert "densities.hdf5" in answer.notes[0]
    own = predict_own(galaxies, str(TEMPLATES / "redshift.csv"), None)
    for packed in (answer.content, own):
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            told = io.BytesIO(archive.read("predictions.densities.hdf5"))
        with h5py.File(told) as file:
            assert file["data"]["weights"].shape == (len(table()), 5)


def test_what_cannot_be_written_is_said(galaxies: FittedStudy, tmp_path: Path) -> None:
    table().to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(BadInput, match="'qp' or 'columns', not as 'fits'"):
        predict_file(galaxies, tmp_path / "x.csv", tmp_path / "o.csv", densities="fits")
    with (
        pytest.raises(BadInput, match="no densities to write"),
        density_file.opened(object(), "qp", tmp_path / "x.hdf5"),
    ):
        pass
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.csv"]
