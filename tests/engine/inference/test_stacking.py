"""Weights of an average go to who predicts, and calibration to what rows say."""

from __future__ import annotations

import numpy as np
from scant.inference.stacking import sharpened, sharpness, weights
from scipy.stats import norm


def test_the_method_that_is_right_gets_the_weight_and_a_useless_one_none() -> None:
    y = np.random.default_rng(0).normal(size=400)
    log_density = np.stack([norm.logpdf(y), norm.logpdf(y, 3, 1), norm.logpdf(y, 0, 9)], 1)
    result = weights(log_density)
    np.testing.assert_allclose(result.sum(), 1)
    assert result[0] > 0.9
    assert result[1] == 0


def test_of_few_rows_equal_methods_share() -> None:
    np.testing.assert_allclose(weights(np.full((3, 4), -1.0)), 0.25)


def test_probabilities_that_are_not_sure_enough_are_sharpened() -> None:
    rng = np.random.default_rng(1)
    true = rng.dirichlet([0.5] * 3, size=3000)
    label = np.array([rng.choice(3, p=row) for row in true])
    power = sharpness(sharpened(true, 0.5), label)
    assert 1.8 < power < 2.2
    np.testing.assert_allclose(sharpened(true, power).sum(1), 1)
    assert sharpened(np.array([[0.5, 0.5, 0.0]]), 3.0)[0, 2] == 0
