"""Right-censored values, such as the log survival times of patients who are still alive.

Their likelihood is the probability above the bound (Tobin 1958). Squared errors need the values:
uncensored rows are weighted by the inverse probability of being uncensored (Graf et al. 1999; Uno
et al. 2011), up to a horizon beyond which too few rows are observed. Predictions and values beyond
the horizon count as the horizon: errors are those of the restricted mean (Royston and Parmar 2013).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import minimize_scalar
from scipy.stats import CensoredData, ecdf, norm

EM_STEPS, TINY = 60, 1e-12
OBSERVED = 0.2  # minimum probability of being uncensored up to the horizon: weights up to 5
Values = Float[np.ndarray, " n"]


def uncensored(y: Values, censored: Bool[np.ndarray, " n"]) -> tuple[float, float, Values, Values]:
    """Fit a normal distribution to right-censored values by expectation maximization.

    Args:
        y: Values, or their lower bounds.
        censored: True where y is a bound.

    Returns:
        Mean and variance of the distribution; each value or its expectation given the bound, and
        its conditional variance (zero if not censored).
    """
    mean, variance = float(y.mean()), max(float(y.var()), TINY)
    for _ in range(EM_STEPS):
        value, rest = expected(y, censored, np.full(len(y), mean), np.full(len(y), variance))
        mean = float(value.mean())
        variance = max(float(((value - mean) ** 2 + rest).mean()), TINY)
    return mean, variance, value, rest


def expected(
    y: Values, censored: Bool[np.ndarray, " n"], mean: Values, variance: Values
) -> tuple[Values, Values]:
    """Mean and variance of each value given its bound, under a normal prediction.

    Args:
        y: Values, or their lower bounds.
        censored: True where y is a bound.
        mean: Predicted means, not conditioned on the bounds.
        variance: Predicted variances.
    """
    std = np.sqrt(variance)
    z = (y - mean) / std
    hazard = np.exp(norm.logpdf(z) - norm.logsf(z))
    rest = np.where(censored, variance * np.maximum(1 + z * hazard - hazard**2, 0.0), 0.0)
    return np.where(censored, mean + std * hazard, y), rest


def log_density(
    y: Values,
    mean: Float[np.ndarray, "*k n"],
    variance: Float[np.ndarray, "*k n"],
    censored: Bool[np.ndarray, " n"],
) -> Float[np.ndarray, "*k n"]:
    """Log density of each value in nats under normal predictions; log survival if censored."""
    std = np.sqrt(variance)
    return np.asarray(np.where(censored, norm.logsf(y, mean, std), norm.logpdf(y, mean, std)))


def scale(
    y: Values, mean: Values, variance: Values, censored: Bool[np.ndarray, " n"], prior: float
) -> float:
    """Factor of the predicted variances that maximizes the posterior density of the values.

    Args:
        y: Values, or their lower bounds.
        mean: Predicted means.
        variance: Predicted variances.
        censored: True where y is a bound.
        prior: Weight of a factor of one, in numbers of values.
    """
    if not censored.any():
        return float((((y - mean) ** 2 / variance).sum() + prior) / (len(y) + prior))

    def cost(log: float) -> float:
        log_likelihood = log_density(y, mean, np.exp(log) * variance, censored).sum()
        return float(prior * (log + np.exp(-log)) / 2 - log_likelihood)

    return float(np.exp(minimize_scalar(cost, bounds=(-4, 4), method="bounded").x))


def observation(y: Values, censored: Bool[np.ndarray, " n"]) -> tuple[float, Values]:
    """Horizon, and inverse-probability-of-censoring weight of each row's squared error.

    The censoring distribution is a Kaplan-Meier estimate, independent of the values.
    """
    censoring = ecdf(CensoredData.right_censored(y, ~censored)).sf
    probability = np.asarray(censoring.evaluate(np.nextafter(y, -np.inf)))
    horizon = float(y[probability >= OBSERVED].max())
    observed = ~censored | (y >= horizon)
    at_risk = np.asarray(censoring.evaluate(np.nextafter(np.minimum(y, horizon), -np.inf)))
    return horizon, np.where(observed, 1 / np.maximum(at_risk, OBSERVED), 0.0)


def restricted_mean(mean: Values, variance: Values, horizon: float) -> Values:
    """E[min(value, horizon)] under normal predictions."""
    std = np.sqrt(variance)
    z = (horizon - mean) / std
    return np.asarray(mean * norm.cdf(z) - std * norm.pdf(z) + horizon * norm.sf(z))
