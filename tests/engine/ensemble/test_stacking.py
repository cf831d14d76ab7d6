"""Weights of a mixture by left-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from scant.ensemble.stacking import best_expected_threshold, weights


def test_the_method_that_is_right_gets_the_weight_and_a_useless_one_none() -> None:
    y = np.random.default_rng(0).normal(size=400)
    log_density = np.stack([norm.logpdf(y), norm.logpdf(y, 3, 1), norm.logpdf(y, 0, 9)], 1)
    result = weights(log_density)
    np.testing.assert_allclose(result.sum(), 1)
    assert result[0] > 0.9
    assert result[1] == 0


def test_of_few_rows_equal_methods_share() -> None:
    np.testing.assert_allclose(weights(np.full((3, 4), -1.0)), 0.25)


def test_the_trivial_method_gains_weight_where_the_others_gain_little_on_it() -> None:
    rng = np.random.default_rng(2)
    y, x = rng.normal(size=(2, 60))
    guesses = np.stack([norm.logpdf(y), norm.logpdf(y, 0.3 * x, 1), norm.logpdf(y, 0.2, 0.9)], 1)
    plain, made = weights(guesses), weights(guesses, trivial=0)
    assert made.sum() == pytest.approx(1)
    assert made[0] > plain[0] + 0.3
    assert made[2] / made[1] == pytest.approx(plain[2] / plain[1])
    known = np.stack([norm.logpdf(y + x, 0, 2**0.5), norm.logpdf(y + x, x)], 1)
    assert weights(known, trivial=0) == pytest.approx(weights(known), abs=0.01)


def test_methods_worse_than_the_trivial_one_are_left_out() -> None:
    y = np.random.default_rng(3).normal(size=200)
    assert weights(np.stack([norm.logpdf(y), norm.logpdf(y, 3)], 1), trivial=0).tolist() == [1, 0]


def test_weights_are_of_the_densest_mixture() -> None:
    y = np.random.default_rng(1).normal(size=4000)
    y[:1000] += 6
    made = weights(np.stack([norm.logpdf(y, mean) for mean in (6, 0, -9)], 1))
    assert made.tolist() == pytest.approx([0.25, 0.75, 0], abs=0.01)


def test_a_threshold_is_half_the_expected_f1() -> None:
    assert best_expected_threshold(np.full(50, 0.4)) == pytest.approx(0.4 / 1.4)
    assert best_expected_threshold(np.array([1.0, 1.0, 0.0])) == pytest.approx(0.5)
