"""Widths of errors by level and place: found where they vary, one where they do not."""

import numpy as np
import pytest
from scipy.stats import norm

from scant.inference import spread


def _fitted(errors, level, x):
    told = spread.features(level, x)
    found = spread.fitted(lambda factor: norm.logpdf(errors, 0, factor), told)
    return found, spread.factor(found, told)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal(400), rng.standard_normal((400, 1)), rng.standard_normal(400)


def test_deviations_that_grow_with_the_level_are_found(rows):
    level, x, z = rows
    true = np.exp(0.4 * level - 0.2)
    _, factor = _fitted(true * z, level, x)
    assert abs(np.log(factor / true)).mean() < 0.1


def test_deviations_that_grow_along_an_input_are_found(rows):
    level, x, z = rows
    true = np.exp(0.3 * x[:, 0])
    _, factor = _fitted(true * z, level, x)
    assert abs(np.log(factor / true)).mean() < 0.1


def test_right_deviations_are_kept(rows):
    level, x, z = rows
    _, factor = _fitted(z, level, x)
    assert abs(np.log(factor)).max() < 0.25


def test_few_rows_tell_nothing(rows):
    level, x, z = (v[: spread.LEAST_ROWS - 1] for v in rows)
    found, factor = _fitted(9 * z, level, x)
    assert not found.any()
    assert (factor == 1).all()


def test_a_slope_goes_no_further_than_the_rows(rows):
    found = np.array([0.0, 1.0, 0.0])
    far = spread.features(np.array([spread.FURTHEST, 50.0]), np.zeros((2, 1)))
    assert np.ptp(spread.factor(found, far)) == 0
