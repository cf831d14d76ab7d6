"""Stacking of predictive distributions: mixture weights fitted to left-out rows.

Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive
distributions: the weights maximize the density of rows that no method was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

STEPS = 200
PRIOR = 1.0  # prior count per method (Dirichlet), in rows
TINY = 1e-300
MIN_WEIGHT = 0.01  # methods below this weight are dropped
DOUBT = 0.5  # standard errors subtracted from a gain
LOG_SHARPNESS_STD = 0.5  # prior standard deviation of the log sharpness


@dataclass(frozen=True)
class Average:
    """Weighted average of predictive methods; a subclass lists their names.

    Attributes:
        weights: Weight of each method, in the order of `names`.
    """

    names: ClassVar[tuple[str, ...]]
    of: ClassVar[str] = "Predictions"

    weights: tuple[float, ...]

    def sentence(self) -> str:
        """Sentence that lists the averaged methods with their weights."""
        parts = [f"{name} {w:.2f}" for name, w in zip(self.names, self.weights) if w]
        return (
            f"{self.of} are an average ({', '.join(parts)}), its weights by training rows that "
            "were left out."
        )


def weights(
    log_density: Float[np.ndarray, "n k"],
    trivial: int | None = None,
    prior: float | Float[np.ndarray, " k"] = PRIOR,
    least: float = MIN_WEIGHT,
) -> Float[np.ndarray, " k"]:
    """Mixture weights of k methods, summing to one, by expectation maximization.

    Args:
        log_density: Log density of each left-out row under each method, in nats.
        trivial: Index of a method that ignores the inputs. Weights from few rows are noisy, so the
            result is shrunk to this method unless the mixture's gain over it is significant.
        prior: Prior count of each method, in rows; a number or one per method.
        least: Methods below this weight are dropped.
    """
    density = np.exp(log_density - log_density.max(1, keepdims=True))
    n, k = density.shape
    prior = np.broadcast_to(prior, k)
    result = np.full(k, 1 / k)
    for _ in range(STEPS):
        responsibility = density * result
        responsibility /= responsibility.sum(1, keepdims=True)
        result = (responsibility.sum(0) + prior) / (n + prior.sum())
    result = _used(result, least)
    if trivial is not None:
        gain = np.log(np.maximum(density @ result, TINY) / np.maximum(density[:, trivial], TINY))
        share = confidence(gain)
        result = _used(share * result + (1 - share) * np.eye(k)[trivial], least)
    return result


def confidence(gain: Float[np.ndarray, " n"]) -> float:
    """Probability that a gain over a simpler method, in nats of each left-out row, is no chance."""
    return float(ndtr(gain.mean() / max(gain.std() / len(gain) ** 0.5, TINY) - DOUBT))


def _used(w: Float[np.ndarray, " k"], least: float) -> Float[np.ndarray, " k"]:
    """Set weights below `least` to zero and renormalize."""
    used = np.where(w < least, 0.0, w)
    return np.asarray(used / used.sum())


def sharpened(p: Float[np.ndarray, "n c"], sharpness: float) -> Float[np.ndarray, "n c"]:
    """Class probabilities raised to a power and renormalized.

    An average of calibrated methods is underconfident; a power above one corrects it.
    """
    powers = p**sharpness
    return np.asarray(powers / powers.sum(1, keepdims=True))


def sharpness(p: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"]) -> float:
    """Power for `sharpened` that maximizes the posterior density of left-out labels."""
    rows = np.arange(len(label))

    def cost(log: float) -> float:
        likelihood = sharpened(p, float(np.exp(log)))[rows, label]
        return float(
            log**2 / (2 * LOG_SHARPNESS_STD**2) - np.log(np.maximum(likelihood, 1e-300)).sum()
        )

    return float(np.exp(minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded").x))


def best_expected_threshold(p: Float[np.ndarray, " n"]) -> float:
    """Threshold on the rare class's probability that maximizes the expected F1.

    The threshold is half of the best expected F1 (Lipton, Elkan and Naryanaswamy 2014). Only the
    probabilities enter, not the labels, so a few rare rows do not decide.
    """
    q = np.sort(p)[::-1]
    f1 = 2 * np.cumsum(q) / (np.arange(1, len(q) + 1) + q.sum())
    return float(f1.max() / 2)
