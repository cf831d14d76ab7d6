"""Softmax GPs of landmarks: their mode, their inputs; their mixture, what it promises."""

from __future__ import annotations

import numpy as np
import pytest

from scant.models.softmax_gp import (
    Inputs,
    Kernel,
    Problem,
    SoftmaxMixture,
    relevance,
)


def rings(n: int, seed: int, noise: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, by the distance from the middle; further columns say nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2 + noise))
    label = np.digitize(np.hypot(x[:, 0], x[:, 1]), [0.8, 1.5])
    return x, label


def test_the_mode_is_that_of_the_posterior() -> None:
    x, label = rings(25, 0)
    kernel = Kernel("rbf", False, length=1.0, amplitude=3.0)
    model = Problem(x, label, 3, np.arange(25), np.ones(2)).model(kernel)
    K = kernel(x, x)
    missed = np.eye(3)[label] - model.probability(x)
    # GPML 3.38: f = K (y - pi), and the slope by the constants is zero
    assert K @ model.coefficients == pytest.approx(kernel.amplitude * K @ missed, abs=0.2)
    assert missed.sum(0) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("ranks", [False, True])
def test_inputs_fill_gaps_and_say_so(ranks: bool) -> None:
    x = np.array([[1.0, 5.0, 7.0], [2.0, np.nan, 7.0], [3.0, 9.0, 7.0], [1000.0, 7.0, 7.0]])
    made = Inputs.of(x).of_kind(x, ranks)
    assert made.shape == (4, 3)  # two that vary, and a gap
    assert made[:, 2].tolist() == [0, 1, 0, 0]
    assert np.isfinite(made).all()
    if ranks:
        assert made[:, 0] == pytest.approx(12**0.5 * (np.arange(4) / 3 - 0.5))
        new = Inputs.of(x).of_kind(np.array([[1e9, 7.0, 0.0]]), True)
        assert new[0, 0] == made[3, 0]


@pytest.mark.slow
def test_a_mixture_tells_classes_and_keeps() -> None:
    x, label = rings(100, 1)
    x[::9, 1] = np.nan
    model = SoftmaxMixture.fit(x, label, 3)
    new, truth = rings(300, 2)
    p = model.probability(new)
    assert p.sum(1) == pytest.approx(1)
    assert model.shares.sum() == pytest.approx(1)
    assert np.log(p[np.arange(300), truth]).mean() > -0.65
    assert (p.argmax(1) == truth).mean() > 0.75
    back = SoftmaxMixture.of_arrays({k: v.copy() for k, v in model.arrays().items()})
    assert np.array_equal(back.probability(new), p)
    other = model.again(x[:60], label[:60])
    assert (other.probability(new).argmax(1) == truth).mean() > 0.65


@pytest.mark.slow
def test_rows_left_out_are_not_seen() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 3))
    group = np.repeat(np.arange(20), 4)
    same = rng.integers(0, 2, 20)[group]
    x = rng.normal(size=(20, 3))[group] + 0.01 * x
    held = SoftmaxMixture.fit(x, same, 2, group=group).held[np.arange(80), same]
    assert np.log(held).mean() < -0.5  # of a group nothing is known by the others
    apart = SoftmaxMixture.fit(x, same, 2).held[np.arange(80), same]
    assert np.log(apart).mean() > -0.3


def test_columns_that_say_nothing_have_little_weight() -> None:
    x, label = rings(150, 4, noise=4)
    problem = Problem(x, np.minimum(label, 1), 2, np.arange(9), np.ones(6))
    scale = relevance(problem, np.arange(150), np.random.default_rng(0))
    assert scale[:2].min() > 2 * scale[2:].max()
    assert (scale**2).mean() == pytest.approx(1)


@pytest.mark.slow
def test_a_class_of_two_rows_is_learned() -> None:
    x, label = rings(40, 5)
    label = np.r_[np.minimum(label, 1), 2, 2]
    x = np.vstack([x, [[6.0, 6.0], [6.1, 6.0]]])
    p = SoftmaxMixture.fit(x, label, 3).probability(np.array([[6.0, 6.1], [0.0, 0.0]]))
    assert p.argmax(1).tolist() == [2, 0]
