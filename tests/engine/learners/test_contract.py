"""What every learner keeps to, general tools and the studies' own methods, by its capabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scant.deadline import Deadline
from scant.errors import BadInput
from scant.evaluate.compare import NOTHING
from scant.evaluate.fitting import fit_all
from scant.learners import knocked_out, views
from scant.learners.calibrated import FITS, calibrated
from scant.learners.general import general_tools
from scant.learners.learner import Learner
from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.problem import Problem
from scant.studies.omniglot.learners import linear

LEARNERS = [
    *general_tools(0),
    *general_tools(2),
    *knocked_out.learners(0),
    *(calibrated(name) for name in FITS),
    linear(images=True),
    linear(images=False),
    views.averaged_kernels("averaged kernels", 0),
    views.best_view("best view", 0),
    views.ridge("ridge on all columns", 0),
]
CASES = [
    pytest.param(learner, kind, id=f"{learner.name}, {kind}")
    for learner in LEARNERS
    for kind in ("values", "classes")
    if getattr(learner.capabilities, kind)
]
every = pytest.mark.parametrize(("learner", "kind"), CASES)
TRAIN, TEST = 60, 50


def problem(learner: Learner, kind: str, noise: bool = False) -> Problem:
    """Rows whose first column is the signal; with `noise`, targets that no column predicts."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(TRAIN + TEST, 4))
    signal = rng.normal(size=len(x)) if noise else x[:, 0] + 0.1 * rng.normal(size=len(x))
    y = (signal > 0).astype(int) if kind == "classes" else signal
    return Problem(
        x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:], (),
        classes=2 if kind == "classes" else 0,
        images=learner.capabilities.images,
        views=np.array([0, 0, 1, 1]),
        spared=np.arange(TRAIN) % 4 == 0,
    )  # fmt: skip


def check(predictive: Predictive, rows: int, density: bool = True) -> None:
    """Probabilities sum to one, variances are positive; without a density there are points only."""
    assert len(predictive.point) == rows
    assert np.isfinite(predictive.point).all()
    if isinstance(predictive, CategoricalPredictive):
        p = predictive.probabilities
        assert np.isnan(p).all() or density
        if density:
            assert (p >= 0).all()
            np.testing.assert_allclose(p.sum(1), 1)
    else:
        assert isinstance(predictive, MixturePredictive)
        assert (predictive.variance > 0).all() == density


@every
def test_the_signal_is_learned_and_predictions_are_distributions(
    learner: Learner, kind: str
) -> None:
    c = problem(learner, kind)
    predictive = learner.predict(c)
    check(predictive, TEST, learner.capabilities.density)
    if kind == "classes":
        assert np.mean(predictive.point == c.y_test) > 0.7
    else:
        assert np.mean((predictive.point - c.y_test) ** 2) < 0.5 * c.y_test.var()


@every
def test_predictions_do_not_depend_on_the_order_of_rows(learner: Learner, kind: str) -> None:
    c = problem(learner, kind)
    order = np.random.default_rng(2).permutation(TEST)
    mixed = replace(c, x_test=c.x_test[order], y_test=c.y_test[order])
    first, second = learner.predict(c), learner.predict(mixed)
    np.testing.assert_allclose(second.point, first.point[order], rtol=1e-6, atol=1e-9)
    if learner.capabilities.density:
        expected = first.log_prob(c.y_test)[order]
        np.testing.assert_allclose(second.log_prob(mixed.y_test), expected, rtol=1e-6, atol=1e-9)


@every
def test_two_runs_are_equal_bit_by_bit(learner: Learner, kind: str) -> None:
    c = problem(learner, kind)
    first, second = (learner.predict(c) for _ in range(2))
    assert np.array_equal(first.point, second.point)
    if learner.capabilities.density:
        assert np.array_equal(first.log_prob(c.y_test), second.log_prob(c.y_test))


@every
def test_noise_stays_at_chance(learner: Learner, kind: str) -> None:
    c = problem(learner, kind, noise=True)
    predictive, trivial = learner.predict(c), c.trivial()
    if learner.capabilities.density:
        gain = predictive.log_prob(c.y_test) - trivial.log_prob(c.y_test)
    else:
        gain = (predictive.point == c.y_test) - 0.5
    assert gain.mean() < max(NOTHING, 3 * gain.std() / TEST**0.5)


@every
def test_missing_values_are_taken_or_refused(learner: Learner, kind: str) -> None:
    c = problem(learner, kind)
    gaps = np.random.default_rng(3).random(c.x.shape) < 0.1
    for lacking in (
        replace(c, x=np.where(gaps, np.nan, c.x)),
        replace(c, x_test=np.where(gaps[:TEST], np.nan, c.x_test), blocks=np.arange(4)),
    ):
        if learner.capabilities.missing:
            check(learner.predict(lacking), TEST, learner.capabilities.density)
        else:
            with pytest.raises(BadInput, match="it takes no missing values"):
                learner.predict(lacking)


@every
def test_a_constant_column_is_taken(learner: Learner, kind: str) -> None:
    c = problem(learner, kind)
    x, x_test = (np.where(np.arange(4) == 1, 3.0, rows) for rows in (c.x, c.x_test))
    check(learner.predict(replace(c, x=x, x_test=x_test)), TEST, learner.capabilities.density)


@every
def test_one_class_is_predicted_or_refused(learner: Learner, kind: str) -> None:
    if kind == "values":
        pytest.skip("there are no classes")
    c = problem(learner, kind)
    one = replace(c, y=np.zeros(TRAIN, dtype=int))
    if learner.refuse(one):
        with pytest.raises(BadInput, match="a class has no rows to learn from"):
            learner.predict(one)
    else:
        assert not learner.predict(one).point.any()


@every
def test_other_kinds_of_problems_are_taken_or_refused(learner: Learner, kind: str) -> None:
    c, can = problem(learner, kind), learner.capabilities
    late, half = np.arange(TRAIN) % 3 == 0, np.arange(TRAIN) % 2
    asked = {
        "censored": (can.censored or kind == "classes", replace(c, late=late)),
        "in parts": (can.parts, replace(c, part=half, part_test=half[:TEST])),
        "images": (not can.images, replace(c, images=False)),
        "views": (not can.views, replace(c, views=None)),
    }
    if kind == "classes":
        asked.pop("censored")
    else:
        asked.pop("in parts")
    for word, (taken, other) in asked.items():
        if taken:
            check(learner.predict(other), TEST, can.density)
        else:
            with pytest.raises(BadInput, match=word):
                learner.predict(other)
    if not (can.values and can.classes):
        wrong = problem(learner, {"values": "classes", "classes": "values"}[kind])
        with pytest.raises(BadInput, match="it does not predict"):
            learner.predict(wrong)


def test_learners_that_fail_or_are_late_leave_the_others_their_results() -> None:
    def fail(*_: object) -> Predictive:
        raise ValueError("All features are constant.\nA second line.")

    ridge = general_tools(0)[0]
    c = problem(ridge, "values")
    broken = replace(ridge, name="broken", answer=fail)
    first, second = fit_all(c, [broken, ridge], ["RMSE"])
    assert (first.predictive, first.reason) == (None, "All features are constant.")
    assert first.note == "broken is left out of the comparison: All features are constant."
    assert [m.name for m in second.metrics] == ["RMSE"]
    late = Deadline(0.0, clock=lambda: 0.0)
    only, none = fit_all(c, [ridge, ridge], ["RMSE"], late, "tools", minimum=1)
    assert only.scored is not None
    assert (none.scored, none.note, late.skipped) == (None, "", ["tools"])
