"""Stacking of predictive distributions: mixture weights fitted to left-out rows.

Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive
distributions: the weights maximize the density of rows that no method was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

STEPS = 200
PRIOR = 1.0  # prior count per method (Dirichlet), in rows
TINY = 1e-300
MIN_WEIGHT = 0.01  # methods below this weight are dropped
DOUBT = 0.5  # standard errors subtracted from a gain


def weights(
    log_density: Float[np.ndarray, "n k"],
    trivial: int | None = None,
    prior: float | Sequence[float] | Float[np.ndarray, " k"] = PRIOR,
    min_weight: float = MIN_WEIGHT,
) -> Float[np.ndarray, " k"]:
    """Mixture weights of k methods, summing to one, by expectation maximization.

    Args:
        log_density: Log density of each left-out row under each method, in nats.
        trivial: Index of a method that ignores the inputs. Weights from few rows are noisy, so the
            result is shrunk to this method unless the mixture's gain over it is significant.
        prior: Prior count of each method, in rows; a number or one per method.
        min_weight: Methods below this weight are dropped.
    """
    density = np.exp(log_density - log_density.max(1, keepdims=True))
    n, k = density.shape
    counts = np.broadcast_to(prior, k)
    result = np.full(k, 1 / k)
    for _ in range(STEPS):
        responsibility = density * result
        responsibility /= responsibility.sum(1, keepdims=True)
        result = (responsibility.sum(0) + counts) / (n + counts.sum())
    result = _used(result, min_weight)
    if trivial is not None:
        gain = np.log(np.maximum(density @ result, TINY) / np.maximum(density[:, trivial], TINY))
        share = confidence(gain)
        result = _used(share * result + (1 - share) * np.eye(k)[trivial], min_weight)
    return result


def confidence(gain: Float[np.ndarray, " n"]) -> float:
    """Probability that a gain over a simpler method, in nats of each left-out row, is no chance."""
    return float(ndtr(gain.mean() / max(gain.std() / len(gain) ** 0.5, TINY) - DOUBT))


def _used(w: Float[np.ndarray, " k"], min_weight: float) -> Float[np.ndarray, " k"]:
    """Set weights below `min_weight` to zero and renormalize."""
    used = np.where(w < min_weight, 0.0, w)
    return np.asarray(used / used.sum())


def best_expected_threshold(p: Float[np.ndarray, " n"]) -> float:
    """Threshold on the rare class's probability that maximizes the expected F1.

    The threshold is half of the best expected F1 (Lipton, Elkan and Naryanaswamy 2014). Only the
    probabilities enter, not the labels, so a few rare rows do not decide.
    """
    q = np.sort(p)[::-1]
    f1 = 2 * np.cumsum(q) / (np.arange(1, len(q) + 1) + q.sum())
    return float(f1.max() / 2)
