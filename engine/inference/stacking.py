"""Weights of an average of predictive distributions, by rows that none of them was trained on.

Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive
distributions: the weights under which the left-out rows are most probable.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar

STEPS = 200
PRIOR = 1.0  # rows for which each method counts as the best from the start
LEAST = 0.01  # weight below which a method is left out
WIDE = 0.5  # deviation of the logarithm of a sharpness, before anything is known of it


def weights(log_density: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    """Weights of k methods that add up to one, by expectation maximization of the mixture.

    Args:
        log_density: Of each left-out row under each method, in nats.
    """
    density = np.exp(log_density - log_density.max(1, keepdims=True))
    n, k = density.shape
    result = np.full(k, 1 / k)
    for _ in range(STEPS):
        share = density * result
        share /= share.sum(1, keepdims=True)
        result = (share.sum(0) + PRIOR) / (n + k * PRIOR)
    result = np.where(result < LEAST, 0.0, result)
    return np.asarray(result / result.sum())


def sharpened(p: Float[np.ndarray, "n c"], sharpness: float) -> Float[np.ndarray, "n c"]:
    """Probabilities of classes to a power, adding up to one again.

    An average of methods that are calibrated each is less sure than it could be.
    """
    powers = p**sharpness
    return np.asarray(powers / powers.sum(1, keepdims=True))


def sharpness(p: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"]) -> float:
    """The power under which the classes of left-out rows are most probable."""
    rows = np.arange(len(label))

    def cost(log: float) -> float:
        own = sharpened(p, float(np.exp(log)))[rows, label]
        return float(log**2 / (2 * WIDE**2) - np.log(np.maximum(own, 1e-300)).sum())

    return float(np.exp(minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded").x))
