"""The publication's experiments on views: every model is scored on the same splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression

from scant.metrics import nmse
from scant.models.dfgp.model import DFGP
from scant.models.dfgp.output import LinearOutput, RBFOutput
from scant.models.fitc import FITC
from scant.models.student_t import StudentT
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.trainer import Trainer
from scant.studies.multiview import models, own_methods, published_methods, reproduce
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.published import SETTINGS, SURVIVAL
from scant.studies.multiview.settings import MultiviewSettings
from scant.studies.multiview.simulate import cell_events, so2
from scant.studies.published import Stated, printed, values
from scant.training.api import fit
from tests.engine.studies.studying import gathered
from tests.paths import REAL_DATA

SO2 = REAL_DATA / "so2_beijing_standin"


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEPS", "SGP_STEPS", "EXACT_STEPS"):
        monkeypatch.setattr(own_methods, name, 2)
    monkeypatch.setattr(reproduce, "ROWS", 60)
    for stated in (SETTINGS, SURVIVAL):
        monkeypatch.setitem(stated, "max_steps", Stated(2, ""))
    hours, candidates = so2.hourly(0, 400), cell_events.candidates(0, 3, 24)
    monkeypatch.setattr(so2, "hourly", lambda: hours)
    monkeypatch.setattr(cell_events, "candidates", lambda: candidates)


@pytest.mark.usefixtures("brief")
def test_every_model_is_scored_in_its_experiment() -> None:
    runs = reproduce.reproduce(quick=True, data=None, fit=fit)
    result = gathered("multiview", runs, reproduce.compared)
    every = ("SO2, as published", "SO2, ln(1 + y)", "survival, as published")
    names = {name: {"DFGP", "DFGP-WP", "SGP", "Student-t"} for name in every}
    names["SO2, ln(1 + y), 30 inducing inputs"] = {"DFGP", "DFGP-WP", "SGP"}
    names["cell events, as published"] = {"DFGP", "DFGP-WP", "SVM, averaged kernels"}
    names["cell events, ours"] = {*names["cell events, as published"], "SGP, all features"}
    assert set(result["experiment"]) == set(names)
    for experiment, methods in names.items():
        part = result[(result["experiment"] == experiment) & result["ours"].notna()]
        assert set(part["method"]) == methods
        compared = part["metric"].str.startswith("p of ")
        assert len(part) == 2 * len(methods) + compared.sum()
        assert compared.any()
        assert "DFGP" not in set(part.loc[compared, "method"])
        assert part.loc[compared, "ours"].between(0, 1).all()
        assert np.isfinite(part.loc[~compared, ["ours", "spread"]].to_numpy(float)).all()
    beside = result[result["published"].notna()]
    assert beside["experiment"].str.endswith(", as published").all()
    published = beside.set_index(["method", "metric"])["published"]
    assert published["DFGP", "NMSE"] == 0.59
    assert published["MKGP", "F1"] == 0.70
    printed_ones = [p for name in names for p in printed("multiview", name)]
    assert len(published) == len(printed_ones)
    scored = result["ours"].notna() & ~result["metric"].str.startswith("p of ")
    assert (result.loc[scored, "repeats"] > 1).all()


@pytest.mark.usefixtures("brief")
def test_splits_are_shared_and_repeatable() -> None:
    table = so2.ahead(so2.hourly())
    once, again, other = (reproduce.regression_scores(table, seed) for seed in (0, 0, 1))
    assert once == again
    assert once != other


def test_models_as_published_have_the_settings_of_the_preset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: list[Any] = []

    def note(trainer: Trainer, steps: int) -> list[float]:
        assert isinstance(trainer, AdamLBFGS)
        assert (trainer.adam >= steps, trainer.rate, trainer.horizon) == (True, 0.05, None)
        assert steps == 100
        trained.append(trainer.model)
        return []

    for module in (models, published_methods):
        monkeypatch.setattr(module, "maximize", note)
    x, y = torch.randn(30, 4).double(), torch.randn(30).double()
    s = MultiviewSettings(**values(SURVIVAL))
    for method in published_methods.METHODS:
        published_methods.moments(s, method, x, y, x, 0)
    published_methods.event_probability(
        "DFGP", [x, x, x[:, :2]], (y > 0).double(), [x, x, x[:, :2]]
    )
    network, wishart, sparse, process, events = trained
    assert isinstance(sparse, FITC)
    assert (len(sparse.inducing), sparse.covar_module.base_kernel.lengthscale.numel()) == (10, 1)
    assert isinstance(process, StudentT)
    assert float(process.df.detach()) == pytest.approx(12)
    assert len(process.log_lengthscale) == 1
    for model, neurons, views in ((network, 12, 1), (wishart, 12, 1), (events, 3, 3)):
        assert isinstance(model, DFGP)
        assert model.kind == "published"
        hidden = model.hidden_layer
        assert hidden.inducing.shape[:2] == (neurons, 10)
        assert not isinstance(hidden.inducing, torch.nn.Parameter)
        assert hidden.log_lengthscale.shape == (views, 1)  # a kernel for each view, isotropic
    for output in (network.output, events.output):
        assert isinstance(output, RBFOutput)
        assert (len(output.lengthscale), len(output.inducing)) == (1, 10)
        assert float(output.outputscale) == 1
        assert not output.log_variance.requires_grad
    assert isinstance(wishart.output, LinearOutput)
    assert torch.equal(wishart.output.precision, torch.ones(12).double())
    assert not wishart.output.log_weight.requires_grad


def test_survival_is_learned_from_a_quarter_of_the_patients_and_scored_by_patient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patient = np.repeat(np.arange(40), 3)
    time = np.linspace(5, 80, 40)
    event = np.arange(40) % 4 > 0
    names = [str(p) for p in range(40)]
    observed = MultiviewData(
        "survival", ["features"], ["a"], np.zeros(1, int), np.zeros((120, 1)), time[patient], [],
        event[patient], patient, names, patient, names,
    )  # fmt: skip
    # Off by as much above as below in the rows of a patient, so that his mean is off by 2.
    x = (time[patient] + np.tile([-8.0, 2.0, 12.0], 40))[:, None]
    learned: list[int] = []

    def told(s: Any, method: str, x: Any, y: Any, new: Any, seed: int) -> Any:
        learned.append(len(y))
        owners = {int(np.abs(time - value).argmin()) for value in y.tolist()}
        assert event[list(owners)].all()
        held_out = {int(np.abs(time - v).argmin()) for v in new[1::3, 0].numpy() - 2}
        assert len(held_out) == 30
        assert not owners & held_out
        assert len(y) == 3 * len(owners)
        everyone.append(sorted(held_out))
        return new[:, 0].numpy(), np.ones(len(new))

    everyone: list[list[int]] = []
    monkeypatch.setattr(published_methods, "moments", told)
    result = published_methods.survival_scores(observed, x, 3)
    assert {method for method, _, _ in result} == set(published_methods.METHODS)
    assert all(one == everyone[0] for one in everyone)
    assert 0 < learned[0] <= 30
    test = np.array(everyone[0])
    died = test[event[test]]
    scores = {metric: value for method, metric, value in result if method == "DFGP"}
    assert scores["NMSE by patient"] == pytest.approx(nmse(time[died], time[died] + 2))
    assert 0 < scores["RMSE of the survival curve"] < 0.5
    other = published_methods.survival_scores(observed, x, 4)
    assert everyone[-1] != everyone[0]
    assert other != result


@pytest.mark.usefixtures("brief")
def test_tissue_is_made_once_by_the_first_run_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    tissue = (object(), object())
    monkeypatch.setattr(published_methods, "tissue", lambda: made.append(1) or tissue)
    asked: list[Any] = []
    monkeypatch.setattr(
        published_methods, "survival_scores", lambda *given: asked.append(given) or []
    )
    runs = list(reproduce.reproduce(quick=True, data=None, fit=fit))
    assert not made
    survival = [run for run in runs if run.key.startswith(reproduce.SURVIVAL)]
    for run in survival:
        assert list(run.scores()) == []
    assert asked == [(*tissue, repeat) for repeat in range(2)]
    assert made == [1]


def test_tissue_has_the_publications_components() -> None:
    observed, x = published_methods.tissue()
    assert (len(observed.features), observed.names) == (738, ["features"])
    assert (len(observed.patients), x.shape[1]) == (77, 50)
    covariance = np.cov(x.T)
    spread = covariance.diagonal()
    assert np.abs(covariance - np.diag(spread)).max() < 1e-9 * spread.max()
    assert (np.diff(spread) <= 0).all()


@pytest.mark.skipif(not SO2.is_dir(), reason="SCANT_REAL_DATA names no folder so2_beijing_standin")
def test_real_levels_are_predicted_better_than_by_a_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("Student-t", "SGP"):
        monkeypatch.delitem(reproduce.REGRESSIONS, method)
    monkeypatch.setitem(reproduce.REGRESSIONS, "plane", _plane)
    table = pd.read_parquet(SO2 / "so2_24h_ahead.parquet").drop(columns="time")
    result = reproduce.regression_scores(table.rename(columns={"so2_plus24h": "y"}), 0)
    scores = {(method, metric): value for method, metric, value in result}
    for method in ("DFGP", "DFGP-WP"):
        for metric in ("NMSE", "NLPD of ln(1 + y)"):
            assert scores[method, metric] < scores["plane", metric], (method, metric)


def _plane(x: Any, y: Any, new: Any, inducing: int, seed: int) -> Any:
    fitted = LinearRegression().fit(x.numpy(), y.numpy())
    variance = float(np.var(y.numpy() - fitted.predict(x.numpy())))
    mean = torch.as_tensor(fitted.predict(new.numpy()))
    return mean, torch.full_like(mean, variance)
