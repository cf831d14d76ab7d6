"""The redshift study on simulated galaxies: it learns, repeats itself, answers, and refuses."""

import numpy as np
import pandas as pd
import pytest
import torch

import scant
from scant.errors import BadInput
from scant.events import Finished, Fitted, Note, Progress, Snapshot, Started, State
from scant.models.gpz.change_of_basis import in_coordinates
from scant.models.gpz.model import GPz
from scant.studies import entry
from scant.studies.redshift.growth import narrow
from scant.studies.redshift.settings import FIXED
from scant.studies.redshift.study import bands_of, stages_to
from scant.training.api import restore

SMALL = FIXED | {
    "training_size": 300,
    "validation_size": 80,
    "test_size": 200,
    "n_basis": 8,
    "max_steps": 30,
    "restarts": 2,
}


@pytest.fixture(scope="module")
def finished():
    run = scant.fit("redshift", device="cpu", **SMALL)
    return run, list(run)


@pytest.mark.slow
def test_a_run_says_what_the_catalog_promises(finished):
    _, events = finished
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert events[-1].state in (State.CONVERGED, State.HIT_LIMIT)
    promised = entry("redshift")
    shown = next(e for e in events if isinstance(e, Snapshot))
    assert set(shown.arrays) == {a.name for a in promised.snapshot}
    assert set(events[-1].report.arrays) == {a.name for a in promised.report}
    for spec in promised.report:
        assert events[-1].report.arrays[spec.name].ndim == len(spec.shape.split()), spec.name


def test_it_beats_the_line_and_reports_baselines(finished):
    _, events = finished
    result = {(m.method, m.name): m.value for m in events[-1].report.metrics}
    assert result["this run", "RMSE"] < result["linear regression", "RMSE"]
    assert (
        result["this run", "mean log-likelihood"] > result["random forest", "mean log-likelihood"]
    )
    assert 85 < result["this run", "coverage of the 95% interval"] <= 100


def test_the_objective_rises_within_a_restart(finished):
    _, events = finished
    first = [e for e in events if isinstance(e, Progress) and e.restart == 0]
    assert first[-1].elbo > first[0].elbo
    assert {e.restart for e in events if isinstance(e, Progress)} == {0, 1}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(finished):
    _, events = finished
    again = list(scant.fit("redshift", device="cpu", **SMALL))
    assert [(e.step, e.elbo, e.score) for e in events if isinstance(e, Progress)] == [
        (e.step, e.elbo, e.score) for e in again if isinstance(e, Progress)
    ]
    assert events[-1].report.metrics == again[-1].report.metrics


def test_a_restored_study_predicts_the_same(finished):
    run, events = finished
    blob = next(e.blob for e in events if isinstance(e, Fitted))
    again = restore("redshift", run.study.settings.values(), blob, "cpu")
    table = run.study.held.copy()
    table.loc[::3, table.columns[1]] = np.nan
    pd.testing.assert_frame_equal(run.study.predict(table), again.predict(table))
    for question, query in (("without", {"off": []}), ("density", {"row": 3})):
        ours, theirs = run.study.explore(question, **query), again.explore(question, **query)
        assert all(np.array_equal(ours[k], theirs[k]) for k in ours)


def test_predictions_keep_rows_and_add_the_parts_of_the_deviation(finished):
    run, _ = finished
    table = run.study.held.iloc[::-1].assign(note="kept")
    prediction = run.study.predict(table)
    assert list(prediction.index) == list(table.index)
    assert (prediction["note"] == "kept").all()
    parts = (
        prediction["std_model"] ** 2 + prediction["std_noise"] ** 2 + prediction["std_input"] ** 2
    )
    assert np.allclose(prediction["std"] ** 2, parts)
    assert (prediction["std_input"] == 0).all()


def test_a_missing_band_widens_the_answer_and_is_told_apart(finished):
    run, _ = finished
    band = run.study.features.bands[1]
    whole, less = run.study.explore("without", off=[]), run.study.explore("without", off=[band])
    assert (whole["std_input"] == 0).all()
    assert less["std_input"].mean() > 0.005
    assert less["metrics"][0] > whole["metrics"][0]


def test_a_density_integrates_to_one_and_has_the_mean_of_the_prediction(finished):
    run, _ = finished
    result = run.study.explore("density", row=5, off=[run.study.features.bands[0]])
    width = result["grid"][1] - result["grid"][0]
    without = run.study.explore("without", off=[run.study.features.bands[0]])
    assert 0.9 < result["density"].sum() * width < 1.02
    mean = (result["grid"] * result["density"]).sum() / result["density"].sum()
    assert mean == pytest.approx(without["z_mean"][5], abs=0.03)
    assert (result["components"].sum(0) <= result["density"] + 1e-9).all()


def test_exploring_refuses_what_it_cannot_answer(finished):
    run, _ = finished
    with pytest.raises(BadInput, match="no band 'x'"):
        run.study.explore("without", off=["x"])
    with pytest.raises(BadInput, match="At least one band"):
        run.study.explore("without", off=list(run.study.features.bands))
    with pytest.raises(BadInput, match="no test row"):
        run.study.explore("density", row=10**6)
    with pytest.raises(BadInput, match="no question 'why'"):
        run.study.explore("why")


def test_a_table_without_any_feature_is_refused_by_name(finished):
    run, _ = finished
    with pytest.raises(BadInput, match="none of the features"):
        run.study.predict(pd.DataFrame({"height": [1.0]}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {"covariance": "GL"},
        {"covariance": "VD", "start": "direct", "combine": "best"},
        {"features": "as given", "robust": "no", "heteroscedastic": False, "joint_mean": False},
        {"errors": "as noise", "n_basis": 4, "max_steps": 9, "restarts": 1},
        {"errors": "ignore", "weights": "balanced"},
        {"weights": "normalised"},
        {"log_target": "yes"},
    ],
)
def test_every_setting_runs_to_a_usable_end(values):
    *_, last = scant.fit("redshift", device="cpu", **{**SMALL, "max_steps": 12, **values})
    assert last.state.usable
    result = {m.name: m.value for m in last.report.metrics if m.method == "this run"}
    assert np.isfinite(list(result.values())).all()
    assert result["RMSE"] < 0.5


@pytest.mark.slow
def test_rows_with_missing_values_can_be_learned_from(finished):
    table = finished[0].study.held.copy()
    table.loc[::2, finished[0].study.features.bands[0]] = np.nan
    values = {**SMALL, "training_size": 90, "validation_size": 30, "test_size": 60, "restarts": 1}
    run = scant.fit("redshift", table, device="cpu", **values)
    events = list(run)
    assert any("left out of training" in e.text for e in events if isinstance(e, Note))
    run = scant.fit("redshift", table, device="cpu", incomplete="use", **{**values, "max_steps": 6})
    *_, last = run
    assert last.state.usable
    assert len(run.study.learn) > 100


@pytest.mark.slow
def test_balanced_weights_lower_the_error_where_galaxies_are_rare():
    values = {**SMALL, "training_size": 800, "restarts": 1, "max_steps": 60, "n_basis": 4}
    held = {}
    for weights in ("normal", "balanced"):
        run = scant.fit("redshift", device="cpu", weights=weights, **values)
        *_, last = run
        y, mean = last.report.arrays["z_true"], last.report.arrays["z_mean"]
        rare = y > np.quantile(y, 0.93)
        held[weights] = np.abs((mean - y)[rare]).mean()
    assert held["balanced"] < held["normal"]


def test_too_few_rows_are_refused():
    with pytest.raises(BadInput, match="rows"):
        scant.fit("redshift", pd.DataFrame({"z": range(9), "r": range(9)}), device="cpu")


def test_bands_are_the_numeric_columns_that_are_no_errors():
    table = pd.DataFrame({"z": [1.0], "r": [1.0], "r_err": [0.1], "odd_err": [2.0], "name": ["a"]})
    assert bands_of(table, "z") == ["r", "odd_err"]
    with pytest.raises(BadInput, match="no column 'y'"):
        bands_of(table, "y")


def test_stages_end_in_the_structure_that_was_asked_for():
    for covariance in ("GL", "VL", "GD", "VD", "GC", "VC"):
        assert stages_to(covariance, "coarse to fine")[-1] == covariance
        assert stages_to(covariance, "direct") == (covariance,)


@pytest.mark.parametrize("covariance", ["GL", "VL", "GD", "VD", "GC", "VC"])
def test_other_coordinates_tell_the_same_function(covariance):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    T = torch.randn(3, 3, generator=generator, dtype=torch.float64) + 2 * torch.eye(3)
    y = torch.sin(X[:, 0])
    model = GPz(3, 5, covariance)
    model.init_from_data(X @ T.T, y, generator)
    model.fit_posterior(X @ T.T, y, mixture=None)
    ours, theirs = in_coordinates(model, T).predict(X), model.predict(X @ T.T)
    assert torch.allclose(ours.mean, theirs.mean, atol=1e-9)
    assert torch.allclose(ours.model_variance, theirs.model_variance, atol=1e-9)
    assert torch.allclose(ours.noise_variance, theirs.noise_variance, atol=1e-9)
    assert (
        narrow(in_coordinates(model, torch.eye(3, dtype=torch.float64)).gamma, covariance).shape
        == model.gamma.shape
    )


def test_the_estimate_grows_with_the_work():
    result = entry("redshift")
    assert result.estimate is not None
    small, large = (
        result.estimate(result.settings.parse({"n_basis": m}), 5000, 11, {}) for m in (10, 100)
    )
    assert 0 < small[0] < large[0]
    assert 0 < small[1] < large[1]
    few = result.estimate(result.settings.parse({}), 100, 11, {})
    assert few[0] < result.estimate(result.settings.parse({}), 5000, 11, {})[0]


def test_models_of_gaps_are_in_the_estimate_as_they_will_be_fitted():
    result = entry("redshift")
    assert result.estimate is not None
    bands = [f"mag_{band}" for band in "ugriz"]
    names = {name: {} for name in ("z", *bands, *(f"{band}_err" for band in bands))}

    def seconds(counts=names, **values):
        return result.estimate(result.settings.parse(values), 2000, len(names), counts)[0]

    none = seconds(missing="integrate")
    # 30 choices of five bands: 3 s of growth, and 1 s beside, each.
    assert seconds() - none == pytest.approx(30 * (3.0 + 0.8 + 1e-4 * 1600), rel=0.01)
    assert seconds() == seconds({})  # every other column is taken for an error
    assert seconds(gap_seconds=50.0) - none == pytest.approx(50, rel=0.05)
    for values in ({"stack": False}, {"weights": "balanced"}, {"features": "as given"}):
        assert seconds(**values) == pytest.approx(seconds(missing="integrate", **values))


def test_rivals_know_their_error_and_gaps(finished):
    _, events = finished
    report = events[-1].report
    result = {(m.method, m.name): m.value for m in report.metrics}
    missing = report.arrays["missing"]
    for k, name in enumerate(("random forest", "gradient boosting"), 2):
        assert np.isfinite(result[name, "CRPS"])
        assert missing[k, 0] == pytest.approx(result[name, "RMSE"])  # fewer than 500 rows
        assert missing[4 + k, 0] == pytest.approx(result[name, "mean log-likelihood"])
        assert missing[8 + k, 0] == pytest.approx(result[name, "CRPS"])
        assert (missing[8 + k] > 0).all()
    assert missing[9, 0] == pytest.approx(result["this run", "CRPS"])
    told = [(p.kind, p.start) for p in report.verdict.parts if p.contest.score == "CRPS"]
    assert {kind for kind, _ in told} == {"all", "truth", "missing"}
    assert [count for kind, count in told if kind == "missing"] == [1, 2, 3, 4]
