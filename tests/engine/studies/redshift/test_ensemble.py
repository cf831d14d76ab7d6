"""The ensemble of GPz and plain GPs: moments, mixture, missing values, storage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor

import scant
from scant.deadline import Deadline
from scant.ensemble import Contracted, Rescaled, describe
from scant.events import Fitted
from scant.models.anchored_gp import AnchoredGP
from scant.models.nearest_gp import LONG, QUICK, NearestGP
from scant.predictive import MixturePredictive
from scant.studies.redshift.ensemble import NAMES, GPzEnsemble
from scant.studies.redshift.fold import Fold, Rows
from scant.studies.redshift.members import (
    EQUAL,
    MARGINAL,
    MEMBERS,
    NEAREST,
    EnsembleMember,
    fit_members,
)
from scant.studies.redshift.target import MAX_LOG_STD, Target
from scant.training.api import Fit, restore


def table(n: int = 80, seed: int = 0, noise: float = 0.3) -> pd.DataFrame:
    """A straight line, and an input that tells nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) * [1, 20]
    return pd.DataFrame(x, columns=["a", "b"]).assign(y=3 + x[:, 0] + rng.normal(0, noise, n))


def fitted(frame: pd.DataFrame, **values: object) -> tuple[Fit, list[object]]:
    run = scant.fit(
        "redshift", frame, device="cpu", target="y", own=False, restarts=2, patience=4, **values
    )
    return run, list(run)


@pytest.fixture(scope="module")
def straight() -> tuple[Fit, list[object]]:
    return fitted(table())


@pytest.mark.slow
def test_predictions_are_an_average_whose_weights_add_up_to_one(
    straight: tuple[Fit, list[object]],
) -> None:
    run, events = straight
    ensemble = run.study.posterior.ensemble
    assert sum(ensemble.average.weights.values()) == pytest.approx(1)
    assert {"GPz", *ensemble.beside} == {"GPz", *ensemble.average.used}
    end = events[-1]
    assert describe(ensemble.average, "GPz") == end.report.limits[0]


def test_parts_of_the_deviation_add_up(straight: tuple[Fit, list[object]]) -> None:
    run, _ = straight
    frame = table(30, seed=1)
    frame.loc[::4, "b"] = np.nan
    np.testing.assert_allclose(run.study.posterior.predict(frame).weights.sum(1), 1)
    out = run.study.predict(frame)
    each = out["std_model"] ** 2 + out["std_noise"] ** 2 + out["std_input"] ** 2
    assert np.allclose(out["std"] ** 2, each)
    missing = frame["b"].isna()
    assert (out.loc[missing, "std_input"] > 0).all()
    assert (out.loc[~missing, "std_input"] == 0).all()


def test_moments_are_averages_and_disagreement_is_not_rescaled(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    scales = Rescaled((0.2, 0.0, 0.5, 0.0, 0.0, 0.3, 0.0))
    made = run.study.posterior.ensemble
    shapes = dict.fromkeys(made.average.used, scales)
    average = replace(made.average, shape=Contracted(), method_shapes=shapes)
    x = torch.randn(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) / 3
    mixed = replace(made, average=average).predict(x)
    gpz, z = GPzEnsemble(made.models).predict(x), (x @ made.T.T).numpy()
    told = {"GPz": gpz}
    for name, model in made.beside.items():
        told[name] = MEMBERS[name].predict(model, z, gpz, made.low, made.high, made.parts)
    pairs = [(weight, told[name]) for name, weight in average.weights.items() if weight]
    wider = 0.2 * 0.5**2 + 0.5 + 0.3 * 2.8**2
    mean = sum(w * m.mean for w, m in pairs)
    between = sum(w * (m.mean - mean) ** 2 for w, m in pairs)
    apart = (m.weights * (m.means - m.mean[:, None]) ** 2 for _, m in pairs)
    within = sum(
        w * (wider * (m.variance - a.sum(1)) + a.sum(1)) for (w, m), a in zip(pairs, apart)
    )
    np.testing.assert_allclose(mixed.mean, mean)
    np.testing.assert_allclose(mixed.variance, within + between)
    sources = mixed.model_variance + mixed.noise_variance + mixed.input_variance
    np.testing.assert_allclose(sources, mixed.variance)


def test_the_mean_of_a_logarithm_s_wide_component_does_not_explode() -> None:
    weights, means = np.full((2, 2), 0.5), np.zeros((2, 2))
    wide = MixturePredictive(weights, means, np.array([[0.5, 1.0], [0.5, 400.0]]))
    wide = wide.with_sources(np.ones(2), np.array([1.0, 3.0]))
    log = Target(0.0, 1.0, positive=True).restore(wide)
    np.testing.assert_array_equal(log.variances, [[0.5, 1.0], [0.5, MAX_LOG_STD**2]])
    np.testing.assert_allclose(log.noise_variance / log.variance, [0.5, 0.75])
    value = Target(0.0, 1.0, positive=False).restore(wide)
    np.testing.assert_array_equal(value.variances, wide.variances)


def test_rows_with_missing_values_are_asked_of_gpz_alone(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    frame = table(5, seed=2).assign(b=np.nan)
    posterior = run.study.posterior
    x = posterior.features.inputs(frame)
    alone = GPzEnsemble(posterior.ensemble.models).predict(x)
    variance = alone.variance * posterior.target.scale**2
    np.testing.assert_allclose(posterior.predict(frame).variance, variance)


def test_scores_are_of_the_mixture(straight: tuple[Fit, list[object]]) -> None:
    run, events = straight
    posterior = run.study.posterior
    scored = posterior.score(run.study.data.held)
    x = posterior.features.inputs(run.study.data.held)
    parts = posterior.ensemble.predict(x)
    y = posterior.target.standardize(torch.tensor(scored.y)).numpy()[:, None]
    std, weights = np.sqrt(parts.variances), parts.weights
    density = (weights * norm.pdf(y, parts.means, std)).sum(1) / posterior.target.scale
    assert np.allclose(np.exp(scored.log_density), density)
    assert np.allclose(scored.pit, (weights * norm.cdf(y, parts.means, std)).sum(1))
    metrics = {m.name: m.value for m in events[-1].report.metrics if m.method == "this run"}  # type: ignore[attr-defined]
    assert metrics["mean log-likelihood"] == pytest.approx(np.log(density).mean())


def test_gps_are_believed_beyond_the_targets_and_lines_are_not() -> None:
    ends = {m.shape: m.bounds(-1.0, 11.0) for m in MEMBERS.values()}
    assert ends["linear"] == (-1, 11)
    assert ends["rbf"] == ends["rough"] == ends[MARGINAL] == (-10, 20)


def test_far_from_all_rows_no_mean_is_farther_than_a_range_from_the_targets(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    learned = run.study.data.learn["y"]
    beyond = 1.01 * (learned.max() - learned.min())
    out = run.study.predict(pd.DataFrame({"a": [-1e3, 1e3], "b": [0.0, 0.0]}))
    assert out["mean"].between(learned.min() - beyond, learned.max() + beyond).all()


def test_a_restored_stack_predicts_the_same(straight: tuple[Fit, list[object]]) -> None:
    run, events = straight
    blob = next(e.blob for e in events if isinstance(e, Fitted))
    again = restore("redshift", run.study.settings.values(), blob, "cpu")
    frame = table(20, seed=3)
    frame.loc[::5, "a"] = np.nan
    pd.testing.assert_frame_equal(run.study.predict(frame), again.predict(frame))


@pytest.mark.slow
@pytest.mark.parametrize(
    "values", [{"stack": False}, {"weights": "balanced"}, {"errors": "as noise", "n_basis": 3}]
)
def test_without_a_stack_gpz_is_alone(values: dict[str, object]) -> None:
    run, _ = fitted(table(40).assign(a_err=0.1), max_steps=4, **values)
    assert run.study.posterior.ensemble.average is None


@pytest.mark.slow
def test_targets_that_are_noise_are_predicted_by_their_mean() -> None:
    rng = np.random.default_rng(5)
    run, _ = fitted(table(90).assign(y=rng.normal(7, 2, 90)))
    asked = table(200, seed=9)
    error = run.study.predict(asked)["mean"] - rng.normal(7, 2, 200)
    assert (error**2).mean() < 1.15 * 2**2


@pytest.mark.slow
def test_logarithms_are_stacked_as_targets_are() -> None:
    frame = table(60).assign(y=lambda t: np.exp(2 * t["y"]))
    run, _ = fitted(frame, log_target="yes", n_basis=5, covariance="GL", max_steps=10)
    posterior = run.study.posterior
    scored = posterior.score(run.study.data.held)
    low, high = scored.predictive.interval(0.95)
    inside = (scored.y >= low) & (scored.y <= high)
    assert np.array_equal(inside, np.abs(scored.pit - 0.5) <= 0.475)


@pytest.mark.parametrize("shape", ["rbf", "rough", "linear", "constant"])
def test_up_to_so_many_rows_the_posterior_is_exact(shape: str) -> None:
    rng = np.random.default_rng(1)
    x, noise = rng.normal(size=(60, 3)), rng.uniform(0.01, 0.2, 60)
    y = np.sin(x[:, 0]) + rng.normal(0, np.sqrt(noise))
    made = AnchoredGP.fit(shape, x, y, noise)
    exact = GaussianProcessRegressor(made.signal, alpha=noise + made.noise, optimizer=None)
    mean, std = exact.fit(x, y).predict(asked := rng.normal(size=(9, 3)), return_std=True)
    ours, variance = made.predict(asked)
    assert ours == pytest.approx(mean, abs=1e-4)
    assert variance == pytest.approx(std**2, abs=1e-4)


def test_components_of_the_nearest_rows_disagree_by_noise() -> None:
    rng = np.random.default_rng(0)
    x, side = rng.normal(size=(400, 1)), rng.choice([-2.0, 2.0], 400)
    member, query = MEMBERS["GP of the nearest rows"], rng.normal(size=(50, 1)) / 2
    model = member.fit(x, side, np.zeros(400), None, quick=True)
    one = np.ones(50)
    gpz = MixturePredictive.gaussian(0 * one, one).with_sources(0 * one, 0 * one, one)
    told = member.predict(model, query, gpz, -9.0, 9.0)
    assert told.weights.tolist() == [list(EQUAL)] * 50
    np.testing.assert_allclose(told.input_variance, 1)
    np.testing.assert_allclose(
        told.model_variance, model.predict(query, 0 * one)[1].mean(1), rtol=1e-9
    )
    between = (told.weights * (told.means - told.mean[:, None]) ** 2).sum(1)
    assert (told.noise_variance > between).all()
    assert between.mean() > 2


def test_disagreement_of_trees_is_model_variance() -> None:
    rng = np.random.default_rng(0)
    x, query = rng.normal(size=(400, 2)), rng.normal(size=(50, 2))
    member = MEMBERS["randomized trees"]
    model = member.fit(x, np.sign(x[:, 0]), np.zeros(400), None, quick=True)
    one = np.ones(50)
    gpz = MixturePredictive.gaussian(0 * one, one).with_sources(0 * one, one, 0 * one)
    predicted = member.predict(model, query, gpz, -1.0, 1.0)
    mean, variance = model.predict(query)
    np.testing.assert_allclose(predicted.model_variance, mean.var(1), atol=1e-9)
    np.testing.assert_allclose(predicted.noise_variance, variance.mean(1), rtol=1e-6)


@pytest.mark.slow
def test_trees_have_the_most_weight_where_the_target_has_steps() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (600, 2))
    y = np.floor(4 * x[:, 0]) + 2 * (x[:, 1] > 0.3) + 0.1 * rng.normal(size=600)
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(y=y)
    run, events = fitted(frame, max_steps=30, n_basis=10)
    weights = run.study.posterior.ensemble.average.weights
    assert max(weights, key=weights.__getitem__) == "randomized trees"
    [*_, blob] = (event.blob for event in events if isinstance(event, Fitted))
    restored = restore("redshift", run.study.settings.values(), blob, "cpu")
    query = pd.DataFrame(x[:9], columns=["a", "b"])
    pd.testing.assert_frame_equal(restored.predict(query), run.study.predict(query))


def test_members_that_no_fold_had_time_for_have_no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EnsembleMember, "supports", lambda member, *_: member.shape == "constant")
    run, _ = fitted(table(16), n_basis=2, max_steps=2)
    assert {"no input"} <= set(run.study.posterior.ensemble.average.used) <= {"GPz", "no input"}
    assert set(run.study.posterior.ensemble.beside) == {"no input"}


def test_a_run_of_an_older_version_is_read(straight: tuple[Fit, list[object]]) -> None:
    run, _ = straight
    ensemble = run.study.posterior.ensemble
    new = ("method_shapes", "scales", "contraction", "log_spread")
    meta = {name: value for name, value in ensemble.meta().items() if name not in new}

    def read(further: dict[str, object]) -> Any:
        args = ensemble.tensors(), len(ensemble.models), run.study.settings, torch.device("cpu")
        return GPzEnsemble.from_tensors(*args, meta | further).average

    assert read({}).shape == Rescaled()
    scales = [0.2, 0.0, 0.5, 0.0, 0.0, 0.3, 0.0]
    older = read({"shape": scales, "spread_factor": 0.5})
    assert older.shape.scales == tuple(scales)
    told = dict.fromkeys(older.used, MixturePredictive.gaussian(np.zeros(1), np.ones(1)))
    wider = 0.2 * 0.5**2 + 0.5 + 0.3 * 2.8**2
    np.testing.assert_allclose(older.combine(told).variance, 0.25 * wider)


@pytest.mark.parametrize("name", [name for name, m in MEMBERS.items() if m.retired])
def test_a_stored_run_keeps_members_that_new_ones_lack(
    straight: tuple[Fit, list[object]], name: str
) -> None:
    made = straight[0].study.posterior.ensemble
    assert not MEMBERS[name].supports(10_000, False)
    generator = np.random.default_rng(0)
    model = NearestGP.fit(generator.normal(size=(60, 2)), generator.normal(size=60), np.ones(60),
                          search=QUICK)  # fmt: skip
    average = replace(made.average, weights={"GPz": 0.5, name: 0.5}, method_shapes={})
    old = replace(made, average=average.reindex(NAMES), beside={name: model})
    args = old.tensors(), len(old.models), straight[0].study.settings, torch.device("cpu")
    again = GPzEnsemble.from_tensors(*args, old.meta())
    assert again.average.used == ["GPz", name]
    x = torch.zeros(3, 2, dtype=torch.float64)
    np.testing.assert_allclose(again.predict(x).mean, old.predict(x).mean)


@pytest.mark.parametrize(("seconds", "quick"), [(2 * LONG.seconds, False), (1.0, True)])
def test_a_gp_of_the_nearest_rows_comes_before_other_gps(
    straight: tuple[Fit, list[object]],
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    quick: bool,
) -> None:
    posterior, now, searches = straight[0].study.posterior, [0.0], list[tuple[str, bool]]()

    def fit(
        self: EnsembleMember, x: Any, y: Any, noise: Any, theta: Any, quick: bool, contrasts: Any
    ) -> AnchoredGP:
        searches.append((self.name, quick))
        now[0] += seconds if self.shape == NEAREST else 0.0
        return AnchoredGP.fit("constant", np.zeros((3, 1)), np.zeros(3), None)

    monkeypatch.setattr(EnsembleMember, "fit", fit)
    X, y = torch.randn(9, 2, dtype=torch.float64), torch.zeros(9, dtype=torch.float64)
    rows, at = Rows(X, y, y, y, None), torch.arange(9)
    fold = Fold(rows, at, at[:0], posterior.target)
    deadline = Deadline(seconds, clock=lambda: now[0])
    models = posterior.ensemble.models
    names = list(fit_members(fold, rows, models, MEMBERS.values(), {}, False, deadline))
    quickest = ["straight line", "no input", "randomized trees"]
    assert names == [*quickest, "GP of the nearest rows"]
    assert searches[-1] == ("GP of the nearest rows", quick)
