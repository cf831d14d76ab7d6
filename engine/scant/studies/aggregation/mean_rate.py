"""Posterior of an average or rate from its two moments: quantiles and exceedance.

The average of a Gaussian task is Gaussian. A rate of counts is positive and taken as log-normal, a
probability as beta-distributed, each with the model's mean and deviation. Rates are per unit of
exposure.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import betainc, betaincinv, ndtr, ndtri

LEVEL = 0.95
_NORMAL = ("gaussian", "heteroscedastic")
_PROBABILITY = ("bernoulli", "categorical")  # categorical: of its rarest class
_MIN_STD = 1e-9  # minimum deviation, as a share of the mean
Rows = Float[np.ndarray, " n"]


def exceedance(kind: str, mean: Rows, std: Rows, threshold: float) -> Rows:
    """Probability that the average is above a threshold.

    Args:
        kind: Likelihood of the task.
        mean: Posterior means, in the task's unit; of counts, for an exposure of 1.
        std: Their deviations.
        threshold: Threshold in the same unit.
    """
    mean, std = _moments(mean, std)
    if kind in _NORMAL:
        return np.asarray(ndtr((mean - threshold) / std))
    if kind in _PROBABILITY:
        a, b = _beta(mean, std)
        return np.asarray(1 - betainc(a, b, np.clip(threshold, 0, 1)))
    if threshold <= 0:
        return np.ones_like(mean)
    middle, spread = _log_normal(mean, std)
    return np.asarray(ndtr((middle - np.log(threshold)) / spread))


def quantiles(
    kind: str, mean: Rows, std: Rows, probabilities: Float[np.ndarray, " q"]
) -> Float[np.ndarray, "q n"]:
    """Quantiles of the averages.

    Args:
        kind: Likelihood of the task.
        mean: Posterior means (see `exceedance`).
        std: Their deviations.
        probabilities: Probabilities between 0 and 1.
    """
    mean, std = _moments(mean, std)
    p = np.asarray(probabilities, float)[:, None]
    if kind in _NORMAL:
        return np.asarray(mean + ndtri(p) * std)
    if kind in _PROBABILITY:
        return np.asarray(betaincinv(*_beta(mean, std), p))
    middle, spread = _log_normal(mean, std)
    return np.asarray(np.exp(middle + ndtri(p) * spread))


def interval(kind: str, mean: Rows, std: Rows, level: float = LEVEL) -> Float[np.ndarray, "2 n"]:
    """Bounds of the central interval with probability `level`."""
    return quantiles(kind, mean, std, np.array([0.5 - level / 2, 0.5 + level / 2]))


def density(kind: str, mean: float, std: float, grid: Rows) -> Rows:
    """Density of one average on a grid, per unit of the task, by finite differences."""
    above = np.array([exceedance(kind, np.array([mean]), np.array([std]), g)[0] for g in grid])
    return np.maximum(-np.gradient(above, grid), 0.0)


def _moments(mean: Rows, std: Rows) -> tuple[Rows, Rows]:
    mean = np.asarray(mean, float)
    return mean, np.maximum(np.asarray(std, float), _MIN_STD * np.maximum(np.abs(mean), 1e-300))


def _log_normal(mean: Rows, std: Rows) -> tuple[Rows, Rows]:
    """Mean and deviation of the logarithm of a log-normal variable with these moments."""
    mean = np.maximum(mean, 1e-300)
    spread = np.log1p(np.minimum(std / mean, 1e6) ** 2)
    return np.log(mean) - spread / 2, np.sqrt(spread)


def _beta(mean: Rows, std: Rows) -> tuple[Rows, Rows]:
    """Parameters of the beta distribution with these moments, or one close to them."""
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    total = np.maximum(mean * (1 - mean) / std**2 - 1, 1e-3)
    return mean * total, (1 - mean) * total
