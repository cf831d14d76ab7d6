"""Values that are known only to be above a bound, such as the log times of patients still alive.

A density counts them by the probability that lies above the bound (Tobin 1958). Squared errors need
the values themselves: those of the uncensored rows, weighted inversely to the probability that they
were not censored before, stand for all (Graf et al. 1999; Uno et al. 2011), up to a horizon beyond
which too few rows are observed. There a value counts as the horizon, for prediction and truth
alike: errors are those of the restricted mean (Royston and Parmar 2013).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import minimize_scalar
from scipy.stats import CensoredData, ecdf, norm

EM_STEPS, TINY = 60, 1e-12
OBSERVED = 0.2  # least probability of not being censored before the horizon: weights up to 5
Values = Float[np.ndarray, " n"]


def uncensored(y: Values, late: Bool[np.ndarray, " n"]) -> tuple[float, float, Values, Values]:
    """What is behind bounds, by expectation maximization of a normal distribution.

    Args:
        y: Values, or what they are above.
        late: Which are such bounds.

    Returns:
        Mean and variance of all; each value, or its expectation; the variance that is left of it.
    """
    mean, variance = float(y.mean()), max(float(y.var()), TINY)
    for _ in range(EM_STEPS):
        value, rest = expected(y, late, np.full(len(y), mean), np.full(len(y), variance))
        mean = float(value.mean())
        variance = max(float(((value - mean) ** 2 + rest).mean()), TINY)
    return mean, variance, value, rest


def expected(
    y: Values, late: Bool[np.ndarray, " n"], mean: Values, variance: Values
) -> tuple[Values, Values]:
    """Each value, or its expectation above the bound, and the variance that is left of it.

    Args:
        y: Values, or bounds.
        late: Which are bounds.
        mean: What is expected of them without the bounds.
        variance: Likewise.
    """
    std = np.sqrt(variance)
    z = (y - mean) / std
    hazard = np.exp(norm.logpdf(z) - norm.logsf(z))
    rest = np.where(late, variance * np.maximum(1 + z * hazard - hazard**2, 0.0), 0.0)
    return np.where(late, mean + std * hazard, y), rest


def log_density(
    y: Values,
    mean: Float[np.ndarray, "*k n"],
    variance: Float[np.ndarray, "*k n"],
    late: Bool[np.ndarray, " n"],
) -> Float[np.ndarray, "*k n"]:
    """Of normal predictions, one or several of each value, in nats; of bounds the log probability
    above them."""
    std = np.sqrt(variance)
    return np.asarray(np.where(late, norm.logsf(y, mean, std), norm.logpdf(y, mean, std)))


def scale(
    y: Values, mean: Values, variance: Values, late: Bool[np.ndarray, " n"], prior: float
) -> float:
    """By what variances are multiplied so that values are most probable.

    Args:
        y: Values, or bounds.
        mean: Predictions.
        variance: Likewise.
        late: Which are bounds.
        prior: Values for which the variances count as right beforehand.
    """
    if not late.any():
        return float((((y - mean) ** 2 / variance).sum() + prior) / (len(y) + prior))

    def cost(log: float) -> float:
        told = log_density(y, mean, np.exp(log) * variance, late).sum()
        return float(prior * (log + np.exp(-log)) / 2 - told)

    return float(np.exp(minimize_scalar(cost, bounds=(-4, 4), method="bounded").x))


def observation(y: Values, late: Bool[np.ndarray, " n"]) -> tuple[float, Values]:
    """The horizon, and the weight of each row's squared error up to it.

    Censoring is taken to be independent of the values (a Kaplan-Meier estimate of it).
    """
    there = ecdf(CensoredData.right_censored(y, ~late)).sf
    share = np.asarray(there.evaluate(np.nextafter(y, -np.inf)))
    horizon = float(y[share >= OBSERVED].max())
    known = ~late | (y >= horizon)
    at_most = np.asarray(there.evaluate(np.nextafter(np.minimum(y, horizon), -np.inf)))
    return horizon, np.where(known, 1 / np.maximum(at_most, OBSERVED), 0.0)


def restricted_mean(mean: Values, variance: Values, horizon: float) -> Values:
    """Expectation of the value or the horizon, whichever is less, of normal predictions."""
    std = np.sqrt(variance)
    z = (horizon - mean) / std
    return np.asarray(mean * norm.cdf(z) - std * norm.pdf(z) + horizon * norm.sf(z))
