"""Scant as a pair of stages of RAIL, and our scores against the evaluators of RAIL and qp."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest
from scipy.special import ndtr

from scant import metrics
from scant.errors import BadInput
from scant.metrics import pit_ks
from scant.predictive.mixture_scores import mixture_scores
from tests.paths import REAL_DATA

qp = pytest.importorskip("qp", reason="the extra 'astro' is not installed")
pytest.importorskip("rail.core", reason="the extra 'astro' is not installed")

from qp.metrics.concrete_metric_classes import CDELossMetric  # noqa: E402
from qp.metrics.pit import PIT  # noqa: E402
from rail.core.data import DataStore, TableHandle  # noqa: E402
from rail.evaluation.dist_to_point_evaluator import DistToPointEvaluator  # noqa: E402
from rail.evaluation.metrics.cdeloss import CDELoss  # noqa: E402
from rail.evaluation.metrics.pointestimates import (  # noqa: E402
    PointBias,
    PointOutlierRate,
    PointSigmaIQR,
    PointSigmaMAD,
)
from rail.evaluation.point_to_point_evaluator import PointToPointEvaluator  # noqa: E402

from scant.rail import ScantEstimator, ScantInformer, photometry, unpacked  # noqa: E402

GALAXIES = REAL_DATA / "photoz_rail" / "test_dc2_training_9816.hdf5"
QUICK = {"max_steps": 30, "restarts": 1, "covariance": "GD", "missing": "integrate"}
LEARNED, ASKED, SCORED = 1000, 500, 100
Table = dict[str, dict[str, np.ndarray]]


class Estimated(NamedTuple):
    """What the stages made of galaxies, and what they were asked of."""

    handle: Any
    ensemble: Any
    test: Any
    model: Path
    truth: np.ndarray


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Evaluators write where they are called."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def estimated(tmp_path_factory: pytest.TempPathFactory) -> Estimated:
    if not GALAXIES.is_file():
        pytest.skip("SCANT_REAL_DATA names no photoz_rail galaxies")
    folder = tmp_path_factory.mktemp("rail")
    with h5py.File(GALAXIES) as file:
        every = {name: cells[:] for name, cells in file["photometry"].items()}
    order = np.random.default_rng(0).permutation(len(every["id"]))

    def handle(name: str, rows: np.ndarray) -> Any:
        table = {"photometry": {column: cells[rows] for column, cells in every.items()}}
        path = str(folder / f"{name}.hdf5")
        made = DataStore().add_data(name, table, TableHandle, path=path)
        made.write()
        return made

    train = handle("train", order[:LEARNED])
    test = handle("test", order[LEARNED : LEARNED + ASKED])
    assert (test.data["photometry"]["mag_u_lsst"] == 99).any()
    informer = ScantInformer.make_stage(
        name="inform", model=str(folder / "model.scant"), n_basis="20", device="cpu",
        settings={**QUICK, "stack": False},
    )  # fmt: skip
    model = informer.inform(train)
    estimator = ScantEstimator.make_stage(
        name="estimate", model=model, output=str(folder / "out.hdf5"), chunk_size=200, id_col="id",
        device="cpu",
    )  # fmt: skip
    told = estimator.estimate(test)
    truth = test.data["photometry"]["redshift"]
    return Estimated(told, qp.read(told.path), test, Path(model.path), truth)


def of_double_precision(ensemble: Any, rows: int) -> Any:
    """The first mixtures; a file has single precision, with which qp would compute on."""
    w, m, s = (part[:rows] for part in parts(ensemble))
    return qp.Ensemble(qp.mixmod, data={"weights": w, "means": m, "stds": s})


def parts(ensemble: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = ensemble.objdata
    w, m, s = (np.asarray(data[name], dtype=float) for name in ("weights", "means", "stds"))
    return w / w.sum(1, keepdims=True), m, s


def test_every_galaxy_gets_a_density_and_points(estimated: Estimated) -> None:
    ensemble, galaxies = estimated.ensemble, estimated.test.data["photometry"]
    assert (ensemble.npdf, ensemble.gen_class.name) == (ASKED, "mixmod")
    np.testing.assert_array_equal(ensemble.ancil["id"], galaxies["id"])
    for name in ("zmode", "zmean", "zmedian"):
        error = metrics.normalized_error(estimated.truth, np.ravel(ensemble.ancil[name]))
        assert metrics.sigma_iqr(error) < 0.07, name


def test_the_model_is_no_pickle_and_opens_by_itself(estimated: Estimated) -> None:
    content = estimated.model.read_bytes()
    with pytest.raises((pickle.UnpicklingError, EOFError, ValueError)):
        pickle.loads(content)
    study = unpacked(content, "cpu")
    config = ScantEstimator.make_stage(name="again", model="None").config
    told = study.densities(photometry(estimated.test.data["photometry"], config))
    np.testing.assert_allclose(
        told.mode(), np.ravel(estimated.ensemble.ancil["zmode"]), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(BadInput, match="no file of ScantInformer"):
        unpacked(b"\x80\x04 something else", "cpu")


def test_bands_without_a_detection_get_limits() -> None:
    config = ScantInformer.make_stage(name="limits").config
    full = {b: np.full(4, 24.0) for b in config.bands}
    full |= {e: np.full(4, 0.1) for e in config.err_bands}
    full["mag_u_lsst"] = np.array([24.0, 99.0, 99.0, -99.0])
    full["mag_err_u_lsst"] = np.array([0.1, 27.2, np.nan, -99.0])
    told = photometry(full, config)
    np.testing.assert_array_equal(told["mag_u_lsst"], [24.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(told["mag_u_lsst_err"], [0.1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(told["mag_u_lsst_lim"], [np.nan, 27.2, 27.79, np.nan])
    assert "mag_g_lsst_lim" not in told


def test_point_scores_are_those_of_rail(estimated: Estimated) -> None:
    mode = np.ravel(estimated.ensemble.ancil["zmode"])
    error = metrics.normalized_error(estimated.truth, mode)
    own = {
        "point_bias": float(np.median(error)),  # RAIL's bias is the median
        "point_stats_iqr": metrics.sigma_iqr(error),
        "point_outlier_rate": metrics.outlier_rate(error),
        "point_stats_sigma_mad": metrics.sigma_mad(error),
    }
    evaluator = PointToPointEvaluator.make_stage(
        name="points", metrics=list(own), force_exact=True, hdf5_groupname="photometry"
    )
    summary = evaluator.evaluate(estimated.handle, estimated.test)["summary"].data
    classes = (PointBias, PointSigmaIQR, PointOutlierRate, PointSigmaMAD)
    for (name, value), kind in zip(own.items(), classes, strict=True):
        assert value == pytest.approx(float(summary[name][0]), abs=1e-6), name
        assert value == pytest.approx(kind(mode, estimated.truth).evaluate(), abs=1e-6), name


def test_cde_loss_is_that_of_rail_on_a_fine_grid(estimated: Estimated) -> None:
    """RAIL's is a sum over a grid, and takes the density at the grid's point next to the truth."""
    some = of_double_precision(estimated.ensemble, SCORED)
    truth = estimated.truth[:SCORED]
    w, m, s = parts(some)
    own = mixture_scores(w, m, s, truth, False).cde.mean()
    low, high = (m - 9 * s).min(), (m + 9 * s).max()
    grid = np.union1d(np.arange(low, high, s.min() / 60), truth)
    assert own == pytest.approx(CDELossMetric(eval_grid=grid).evaluate(some, truth), abs=1e-6)
    assert own == pytest.approx(CDELoss(some, grid, truth).evaluate().statistic, abs=1e-6)


def test_cde_loss_of_the_evaluator_stage_has_the_error_of_its_grid(estimated: Estimated) -> None:
    own = mixture_scores(*parts(estimated.ensemble), estimated.truth, False).cde.mean()
    found = []
    for points in (301, 3001):
        grid = np.linspace(-0.5, 3.5, points)
        evaluator = DistToPointEvaluator.make_stage(
            name=f"cde{points}", metrics=["cdeloss"], force_exact=True,
            hdf5_groupname="photometry", metric_config={"cdeloss": {"eval_grid": grid.tolist()}},
        )  # fmt: skip
        made = evaluator.evaluate(estimated.handle, estimated.test)["summary"].data
        found.append(abs(float(made["cdeloss"][0]) - own))
    assert found[1] < 0.3 * found[0]
    assert found[1] < 0.01


def test_pit_and_its_distance_are_those_of_qp(estimated: Estimated) -> None:
    w, m, s = parts(estimated.ensemble)
    own = (w * ndtr((estimated.truth[:, None] - m) / s)).sum(1)
    theirs = PIT(estimated.ensemble, estimated.truth)
    np.testing.assert_allclose(own, theirs.pit_samps, atol=1e-6)
    assert pit_ks(own) == pytest.approx(theirs.evaluate_PIT_KS().statistic, abs=1e-6)


def test_crps_is_the_integral_over_the_distribution_of_qp(estimated: Estimated) -> None:
    """Neither RAIL nor qp has a CRPS: this is its definition, on their distribution function."""
    some, truth = of_double_precision(estimated.ensemble, 20), estimated.truth[:20]
    w, m, s = parts(some)
    own = mixture_scores(w, m, s, truth, False).crps
    low = min((m - 9 * s).min(), truth.min()) - 0.1
    high = max((m + 9 * s).max(), truth.max()) + 0.1
    grid = np.union1d(np.arange(low, high, s.min() / 60), truth)
    for row, below in enumerate(some.cdf(grid)):
        at = int(np.searchsorted(grid, truth[row]))
        left = np.trapezoid(below[: at + 1] ** 2, grid[: at + 1])
        right = np.trapezoid((1 - below[at:]) ** 2, grid[at:])
        assert own[row] == pytest.approx(left + right, abs=1e-6)
