"""Weights of an average of predictive distributions, by rows that none of them was trained on.

Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive
distributions: the weights under which the left-out rows are most probable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

STEPS = 200
PRIOR = 1.0  # rows for which each method counts as the best from the start
TINY = 1e-300
LEAST = 0.01  # weight below which a method is left out
DOUBT = 0.5  # standard errors that are taken off a gain
WIDE = 0.5  # deviation of the logarithm of a sharpness, before anything is known of it


@dataclass(frozen=True)
class Average:
    """An average of the methods that a subclass names.

    Attributes:
        weights: In the order of `names`.
    """

    names: ClassVar[tuple[str, ...]]
    of: ClassVar[str] = "Predictions"

    weights: tuple[float, ...]

    def sentence(self) -> str:
        """What was averaged."""
        parts = [f"{name} {w:.2f}" for name, w in zip(self.names, self.weights) if w]
        return (
            f"{self.of} are an average ({', '.join(parts)}), its weights by training rows that "
            "were left out."
        )


def weights(
    log_density: Float[np.ndarray, "n k"],
    trivial: int | None = None,
    prior: float | Float[np.ndarray, " k"] = PRIOR,
    least: float = LEAST,
) -> Float[np.ndarray, " k"]:
    """Weights of k methods that add up to one, by expectation maximization of the mixture.

    Args:
        log_density: Of each left-out row under each method, in nats.
        trivial: A method that knows no inputs. The weights of few rows are mostly noise: it takes
            a part of them that is the larger the less the mixture gains on it, in standard errors
            of that gain.
        prior: Rows for which each method, or one by one, counts as the best from the start.
        least: Weight below which a method is left out.
    """
    density = np.exp(log_density - log_density.max(1, keepdims=True))
    n, k = density.shape
    prior = np.broadcast_to(prior, k)
    result = np.full(k, 1 / k)
    for _ in range(STEPS):
        share = density * result
        share /= share.sum(1, keepdims=True)
        result = (share.sum(0) + prior) / (n + prior.sum())
    result = _used(result, least)
    if trivial is not None:
        gain = np.log(np.maximum(density @ result, TINY) / np.maximum(density[:, trivial], TINY))
        sure = ndtr(gain.mean() / max(gain.std() / n**0.5, TINY) - DOUBT)
        result = _used(sure * result + (1 - sure) * np.eye(k)[trivial], least)
    return result


def _used(w: Float[np.ndarray, " k"], least: float) -> Float[np.ndarray, " k"]:
    """Weights without those that are too small to be worth a method's work."""
    kept = np.where(w < least, 0.0, w)
    return np.asarray(kept / kept.sum())


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


def best_expected_threshold(p: Float[np.ndarray, " n"]) -> float:
    """Of the rare class's probability: where the F1 that the probabilities expect is best.

    It is half of that F1 (Lipton, Elkan and Naryanaswamy 2014). What the rows are does not matter,
    so that a few rare ones among them do not decide.
    """
    q = np.sort(p)[::-1]
    f1 = 2 * np.cumsum(q) / (np.arange(1, len(q) + 1) + q.sum())
    return float(f1.max() / 2)
