"""Metrics against their definitions written out, and against scikit-learn where it has them."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import root_mean_squared_error

from scant import metrics


@pytest.fixture
def truth() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    mean = generator.uniform(0.1, 0.9, 4000)
    variance = generator.uniform(0.001, 0.01, 4000)
    return mean + np.sqrt(variance) * generator.standard_normal(4000), mean, variance


def test_rmse_is_that_of_scikit_learn(truth):
    y, mean, _ = truth
    assert metrics.rmse(y, mean) == pytest.approx(root_mean_squared_error(y, mean), rel=1e-12)


def test_log_likelihood_is_the_mean_log_density(truth):
    y, mean, variance = truth
    expected = norm.logpdf(y, mean, np.sqrt(variance)).mean()
    assert metrics.mean_log_likelihood(y, mean, variance) == pytest.approx(expected, rel=1e-12)


def test_fraction_within_counts_normalized_errors():
    y = np.array([0.0, 1.0, 1.0, 3.0])
    mean = np.array([0.04, 1.09, 1.11, 3.5])  # errors over 1 + z: .04, .045, .055, .125
    assert metrics.fraction_within(y, mean, 0.05) == 50.0
    assert metrics.fraction_within(y, mean, 0.15) == 100.0


def test_sigma_mad_estimates_a_gaussian_deviation_and_ignores_outliers():
    error = 0.02 * np.random.default_rng(0).standard_normal(20_000)
    error[:500] = 5.0
    assert metrics.sigma_mad(error) == pytest.approx(0.02, rel=0.06)


def test_outliers_are_beyond_six_hundredths_or_three_robust_deviations():
    narrow = np.concatenate([np.linspace(-0.001, 0.001, 98), [0.07, 0.05]])
    assert metrics.outlier_rate(narrow) == pytest.approx(0.01)
    wide = np.concatenate([np.linspace(-0.1, 0.1, 198), [0.2, 0.9]])  # 3 sigma_IQR = .22
    assert metrics.outlier_rate(wide) == pytest.approx(1 / 200)


def test_calibrated_predictions_have_uniform_pit_and_nominal_coverage(truth):
    y, mean, variance = truth
    assert np.allclose(np.histogram(metrics.pit(y, mean, variance), 10, (0, 1))[0], 400, atol=80)
    nominal, held = metrics.coverage(y, mean, variance)
    assert np.abs(nominal - held).max() < 0.025


def test_coverage_falls_when_variances_are_too_small(truth):
    y, mean, variance = truth
    assert metrics.coverage(y, mean, variance / 4)[1, 2] < 0.8


def test_bins_hold_the_bias_that_was_put_in():
    y = np.random.default_rng(1).uniform(0, 1, 5000)
    mean = y + np.where(y > 0.5, 0.1, 0.0) * (1 + y)
    bins = metrics.redshift_bins(y, mean)
    assert np.allclose(bins[2][bins[1] <= 0.5], 0, atol=1e-12)
    assert np.allclose(bins[2][bins[0] > 0.52], 0.1, atol=1e-12)
    assert bins[5].sum() <= 5000


def test_the_most_confident_are_kept_first(truth):
    y, mean, variance = truth
    kept = metrics.by_confidence(
        y, mean, variance, metrics.log_density(y, mean, variance), np.array([0.2, 1.0])
    )
    assert kept[1, 0] < kept[1, 1]
    assert kept[1, 1] == pytest.approx(metrics.rmse(y, mean))
