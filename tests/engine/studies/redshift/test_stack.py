"""The average of GPz with plain GPs: moments, mixture, missing values, storage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor

import scant
from scant.events import Fitted
from scant.models.anchored_gp import AnchoredGP
from scant.studies.limits import answered
from scant.studies.redshift.ensemble import Members
from scant.studies.redshift.stack import EQUAL, MARGINAL, PARTNERS, SCALES, Stack, _shape
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
    stack = run.study.members.stack
    assert sum(stack.weights) == pytest.approx(1)
    assert all((gp is None) == (weight == 0) for gp, weight in zip(stack.gps, stack.weights[1:]))
    end = events[-1]
    assert answered(stack.by_name, "GPz") == end.report.limits[0]


def test_parts_of_the_deviation_add_up_and_the_mixture_has_these_moments(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    frame = table(30, seed=1)
    frame.loc[::4, "b"] = np.nan
    posterior = run.study.posterior
    predictive = posterior.predict(frame)
    np.testing.assert_allclose(predictive.weights.sum(1), 1)
    members, features = posterior.members, posterior.features
    moments = members.predict(features.inputs(frame), None)
    scale, centre = posterior.target.scale, posterior.target.centre
    np.testing.assert_allclose(moments.mean * scale + centre, predictive.mean)
    np.testing.assert_allclose(moments.variance * scale**2, predictive.variance)
    np.testing.assert_allclose(moments.noise_variance * scale**2, predictive.noise_variance)
    out = run.study.predict(frame)
    each = out["std_model"] ** 2 + out["std_noise"] ** 2 + out["std_input"] ** 2
    assert np.allclose(out["std"] ** 2, each)
    missing = frame["b"].isna()
    assert (out.loc[missing, "std_input"] > 0).all()
    assert (out.loc[~missing, "std_input"] == 0).all()


def test_rows_with_missing_values_are_asked_of_gpz_alone(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    frame = table(5, seed=2).assign(b=np.nan)
    posterior = run.study.posterior
    x = posterior.features.inputs(frame)
    alone = Members(posterior.members.models).predict(x, None)
    variance = alone.variance.numpy() * posterior.target.scale**2
    np.testing.assert_allclose(posterior.predict(frame).variance, variance)


def test_scores_are_of_the_mixture(straight: tuple[Fit, list[object]]) -> None:
    run, events = straight
    posterior = run.study.posterior
    scored = posterior.score(run.study.held)
    x = posterior.features.inputs(run.study.held)
    parts = posterior.members.told(x, None)[1]
    std = (parts.model_variance + parts.noise_variance + parts.input_variance).sqrt().numpy()
    y = posterior.target.standardize(torch.tensor(scored.y)).numpy()[:, None]
    used = parts.weights.numpy() > 0
    std, weights = np.where(used, std, 1.0), parts.weights.numpy()
    density = (weights * norm.pdf(y, parts.mean.numpy(), std)).sum(1) / posterior.target.scale
    assert np.allclose(np.exp(scored.log_density), density)
    assert np.allclose(scored.pit, (weights * norm.cdf(y, parts.mean.numpy(), std)).sum(1))
    metrics = {m.name: m.value for m in events[-1].report.metrics if m.method == "this run"}  # type: ignore[attr-defined]
    assert metrics["mean log-likelihood"] == pytest.approx(np.log(density).mean())


def test_gps_are_believed_beyond_the_targets_and_lines_are_not() -> None:
    ends = {p.shape: p.ends(-1.0, 11.0) for p in PARTNERS}
    assert ends["linear"] == (-1, 11)
    assert ends["rbf"] == ends["rough"] == ends[MARGINAL] == (-10, 20)


def test_far_from_all_rows_no_mean_is_farther_than_a_range_from_the_targets(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    learned = run.study.learn["y"]
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
    assert run.study.members.stack is None


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
    scored = posterior.score(run.study.held)
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


def test_the_shape_of_heavy_tails_is_found_and_a_few_rows_stay_gaussian() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([0.6, 0.4])

    def mean_density(error: np.ndarray, shape: tuple[float, ...]) -> float:
        spread = np.array(SCALES)[:, None]
        return float(np.log(shape @ norm.pdf(error, scale=spread)).mean())

    heavy = rng.standard_t(4, size=4000)
    learned, unseen = heavy[:2000], heavy[2000:]
    ones = np.ones((2000, 1))
    shape = _shape([(learned[:, None], ones)] * 2, weights, EQUAL)
    plain = tuple(float(s == 1) for s in SCALES)
    assert sum(shape) == pytest.approx(1)
    assert mean_density(unseen, shape) > mean_density(unseen, plain) + 0.1

    few = _shape([(rng.normal(size=(20, 1)), ones[:20])] * 2, weights, EQUAL)
    assert few[SCALES.index(1.0)] > 0.5


def test_a_shape_changes_deviations_alike_in_moments_and_mixture(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    x = torch.randn(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = x / 3  # where no mean is cut
    x[::4, 1] = torch.nan
    stack = replace(run.study.members.stack, shape=(0.2, 0.0, 0.5, 0.0, 0.0, 0.3, 0.0))
    members = Members(run.study.members.models, stack)
    told, whole = members.predict(x, None), members.told(x, None)[1].collapse()
    assert torch.allclose(told.mean, whole.mean)
    assert torch.allclose(told.variance, whole.variance)
    assert torch.allclose(told.noise_variance, whole.noise_variance)


def test_a_stack_of_an_older_version_has_gaussian_members(
    straight: tuple[Fit, list[object]],
) -> None:
    run, _ = straight
    stack = run.study.members.stack
    meta = {name: value for name, value in stack.meta().items() if name != "shape"}
    read = Stack.read(stack.tensors(), meta)
    assert read.shape == tuple(float(s == 1) for s in SCALES)
