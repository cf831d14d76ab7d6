"""What every ensemble has to fulfill, whatever its members' form and the shape of their mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scant.ensemble import Contracted, Ensemble, Rescaled, Shape, Sharpened, Widened, describe
from scant.predictive import CategoricalPredictive, MixturePredictive
from scant.predictive.base import Rows

N = 400


def _values(rng: np.random.Generator) -> tuple[Mapping[str, Any], Rows, np.ndarray]:
    """A member that knows the slope, one that knows the noise, one without inputs."""
    x = rng.normal(size=N)
    y = x + (0.4 + 0.3 * (x > 0)) * rng.standard_t(4, N)
    one = np.ones(N)
    told = {
        "slope": MixturePredictive.gaussian(x, 0.1 * one, 0.08 * one),
        "rough": MixturePredictive.gaussian(0.8 * x, 0.7 * one, 0.6 * one),
        "no input": MixturePredictive.gaussian(0 * one, 1.5 * one, 1.5 * one),
    }
    return told, y, x[:, None]


def _classes(rng: np.random.Generator) -> tuple[Mapping[str, Any], Rows, np.ndarray]:
    true = rng.dirichlet([0.5] * 3, size=N)
    y = np.array([rng.choice(3, p=row) for row in true])
    unsure = np.sqrt(true) / np.sqrt(true).sum(1, keepdims=True)
    blurred = 0.5 * true + 0.5 / 3
    told = {
        "unsure": CategoricalPredictive(unsure, information=np.full(N, 0.1)),
        "blurred": CategoricalPredictive(blurred),
        "no input": CategoricalPredictive(np.full((N, 3), 1 / 3)),
    }
    return told, y, np.zeros((N, 0))


MADE: dict[str, tuple[Callable[..., Any], Any]] = {
    "values as told": (_values, Shape),
    "values at several scales": (_values, Rescaled),
    "contracted values": (_values, Contracted),
    "widened values": (_values, Widened),
    "classes as told": (_classes, Shape),
    "sharpened classes": (_classes, Sharpened),
}


def _same(a: Any, b: Any) -> None:
    for name, values in a._arrays().items():
        np.testing.assert_allclose(values, getattr(b, name), rtol=1e-12, err_msg=name)


@pytest.fixture(params=MADE)
def made(request: pytest.FixtureRequest) -> tuple[Ensemble[Any], Mapping[str, Any], Rows, Any]:
    form, shape = MADE[request.param]
    told, y, x = form(np.random.default_rng(0))
    return Ensemble.fit(told, y, shape, x=x, trivial="no input"), told, y, x


def test_on_new_rows_it_is_hardly_behind_its_best_member(made: Any, request: Any) -> None:
    ensemble = made[0]
    told, y, x = MADE[request.node.callspec.params["made"]][0](np.random.default_rng(1))
    scores = {name: member.log_prob(y).mean() for name, member in told.items()}
    assert ensemble.combine(told, x).log_prob(y).mean() > max(scores.values()) - 0.01  # nats


def test_the_order_of_the_rows_asked_is_of_no_consequence(made: Any) -> None:
    ensemble, told, _, x = made
    order = np.random.default_rng(2).permutation(N)
    shuffled = {name: member.rows(order) for name, member in told.items()}
    _same(ensemble.combine(shuffled, x[order]), ensemble.combine(told, x).rows(order))


def test_it_is_read_from_its_metadata(made: Any) -> None:
    ensemble, told, _, x = made
    read = Ensemble.from_meta(ensemble.meta(), list(told), type(ensemble.shape))
    assert read == ensemble
    _same(read.combine(told, x), ensemble.combine(told, x))


def test_a_label_of_noise_stays_at_chance(made: Any, request: Any) -> None:
    _, told, y, x = made
    noise = np.random.default_rng(3).permutation(y)
    ensemble = Ensemble.fit(told, noise, type(made[0].shape), x=x, trivial="no input")
    fresh = np.random.default_rng(4).permutation(y)
    chance = told["no input"].log_prob(fresh).mean()
    assert ensemble.combine(told, x).log_prob(fresh).mean() > chance - 0.05
    assert ensemble.weights["no input"] > 0.8


def test_a_row_that_a_member_does_not_answer_is_left_to_the_others(made: Any) -> None:
    ensemble, told, _, x = made
    name = ensemble.used[0]
    silent = dict(told)
    field = "weights" if isinstance(told[name], MixturePredictive) else "probabilities"
    values = getattr(told[name], field).copy()
    values[:5] = 0.0
    silent[name] = replace(told[name], **{field: values})
    assert not silent[name].answered[:5].any()
    mixed = ensemble.combine(silent, x)
    assert mixed.answered.all()
    _same(mixed.rows(slice(5, None)), ensemble.combine(told, x).rows(slice(5, None)))
    rest = {n: w for n, w in ensemble.weights.items() if w and n != name}
    shares = {n: w / sum(rest.values()) for n, w in rest.items()}
    if rest and not isinstance(ensemble.shape, Sharpened):  # where no shape applies
        plain = Ensemble(shares, Shape()).combine(told).rows(slice(0, 5))
        np.testing.assert_allclose(mixed.rows(slice(0, 5)).point, plain.point)


def test_sources_of_the_variance_add_up_and_disagreement_is_not_widened() -> None:
    told, _, x = _values(np.random.default_rng(0))
    weights = {"slope": 0.6, "rough": 0.4, "no input": 0.0}
    for shape in (Rescaled((0, 0, 0.5, 0, 0.5, 0, 0)), Widened((0.4,))):
        mixed = Ensemble(weights, shape).combine(told, x if isinstance(shape, Rescaled) else None)
        sources = mixed.model_variance + mixed.noise_variance + mixed.input_variance
        np.testing.assert_allclose(sources, mixed.variance)
        wider = 0.5 + 0.5 * 4 if isinstance(shape, Rescaled) else np.exp(0.4)
        np.testing.assert_allclose(mixed.noise_variance, wider * (0.6 * 0.08 + 0.4 * 0.6))
        apart = 0.6 * 0.4 * (told["slope"].mean - told["rough"].mean) ** 2
        within = wider * (0.6 * 0.02 + 0.4 * 0.1)
        np.testing.assert_allclose(mixed.model_variance, within + apart)


def test_a_member_that_is_too_wide_is_corrected_before_it_is_weighed() -> None:
    rng = np.random.default_rng(5)
    y, one = rng.normal(size=N), np.ones(N)
    told = {
        "wide": MixturePredictive.gaussian(y + 0.1 * rng.normal(size=N), 0.25 * one),
        "calibrated": MixturePredictive.gaussian(y + 0.4 * rng.normal(size=N), 0.16 * one),
    }
    plain = Ensemble.fit(told, y, Contracted)
    corrected = Ensemble.fit(told, y, Contracted, method_shape=Rescaled)
    assert corrected.weights["wide"] > plain.weights["wide"]
    assert set(corrected.method_shapes) == set(corrected.used)
    gain = corrected.combine(told).log_prob(y) - plain.combine(told).log_prob(y)
    assert gain.mean() > 0.3
    read = Ensemble.from_meta(corrected.meta(), list(told), Contracted, Rescaled)
    assert read == corrected
    _same(read.combine(told), corrected.combine(told))


def test_the_corrections_are_those_that_predict_other_rows_best() -> None:
    rng = np.random.default_rng(6)
    y, one = rng.standard_t(3, size=N), np.ones(N)
    told = {
        "wide": MixturePredictive.gaussian(y + 0.1 * rng.normal(size=N), 0.25 * one),
        "calibrated": MixturePredictive.gaussian(y + 0.4 * rng.normal(size=N), 0.16 * one),
    }
    kinds = [(Shape, None), (Contracted, Rescaled)]
    for order in (kinds, kinds[::-1]):
        best = Ensemble.fit_best(order, told, y, np.arange(N) % 2)
        assert best == Ensemble.fit(told, y, Contracted, method_shape=Rescaled)


def test_corrections_that_fit_only_the_rows_they_saw_are_not_chosen() -> None:
    """Calibrated predictions of few rows; a correction always gains on the rows it is fitted to."""
    kinds, plain, n = [(Rescaled, Rescaled), (Shape, None)], 0, 60
    for seed in range(10):
        y = np.random.default_rng(seed).normal(size=n)
        told = {"calibrated": MixturePredictive.gaussian(np.zeros(n), np.ones(n))}
        plain += type(Ensemble.fit_best(kinds, told, y, np.arange(n) % 2).shape) is Shape
    assert plain >= 4  # 6; by the rows that corrections are fitted to: none
    few = {"calibrated": told["calibrated"].rows(np.arange(1))}
    assert type(Ensemble.fit_best(kinds, few, y[:1], np.zeros(1, dtype=int)).shape) is Rescaled


def test_probabilities_that_are_not_sure_enough_are_sharpened() -> None:
    told, y, _ = _classes(np.random.default_rng(1))
    ensemble = Ensemble.fit({"unsure": told["unsure"]}, y, Sharpened)
    assert isinstance(ensemble.shape, Sharpened)
    assert 1.6 < ensemble.shape.power < 2.4
    p = CategoricalPredictive(np.array([[0.5, 0.5, 0.0]])).sharpened(3.0).probabilities
    np.testing.assert_allclose(p, [[0.5, 0.5, 0.0]])


def test_what_predicts_is_named_with_its_weight() -> None:
    ensemble = Ensemble({"model": 0.25, "rough": 0.0, "no input": 0.75}, Shape())
    assert describe(ensemble, "GP") == (
        "Predictions are an average (no input 0.75, GP 0.25), weighted by training rows that "
        "were left out; the average is not in the publication."
    )
    assert describe(None, "GP", "Probabilities") == "Predictions come from GP alone."
