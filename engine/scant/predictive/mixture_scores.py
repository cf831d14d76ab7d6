"""Exact scores of densities that are Gaussian or log-normal mixtures.

Both scores are sums over pairs of components. CRPS = E|X - y| - E|X - X'| / 2 (Gneiting & Raftery
2007, Strictly proper scoring rules, equation 21). CDE loss = integral of the squared density minus
twice the density at the true value (Izbicki & Lee 2017).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

WIDEST = 5.0  # maximum std of the logarithm of log-normals, to avoid overflow of their means
PAIRS = 4_000_000  # maximum number of pairs of components in memory

Parts = Float[np.ndarray, "n k"]
Rows = Float[np.ndarray, " n"]


class Scores(NamedTuple):
    """CRPS and CDE loss of each row; smaller is better."""

    crps: Rows
    cde: Rows


def mixture_scores(weights: Parts, mean: Parts, std: Parts, y: Rows, positive: bool) -> Scores:
    """Compute CRPS in the unit of y and CDE loss in its inverse unit.

    Args:
        weights: Mixture weights, which sum to one in each row. Components without weight are
            ignored.
        mean: Means of the components, of the logarithm if `positive`.
        std: Standard deviations of the components, of the logarithm if `positive`.
        y: True values.
        positive: True for log-normal components.
    """
    mean, std = np.where(weights > 0, mean, 0.0), np.where(weights > 0, std, 1.0)
    std = np.minimum(std, WIDEST) if positive else std
    step = max(1, PAIRS // weights.shape[1] ** 2)
    blocks = [
        _scores(weights[r], mean[r], std[r], y[r], positive)
        for r in (slice(i, i + step) for i in range(0, len(y), step))
    ]
    return Scores(*(np.concatenate(column) for column in zip(*blocks)))


def _scores(w: Parts, mean: Parts, std: Parts, y: Rows, positive: bool) -> tuple[Rows, Rows]:
    a, b = mean[:, :, None], mean[:, None, :]
    s, t = std[:, :, None], std[:, None, :]
    pair_weights = w[:, :, None] * w[:, None, :]
    point = (np.log(y) if positive else y)[:, None]
    to_truth = (w * _distance(mean, point, std, np.zeros_like(mean), positive)).sum(1)
    between = (pair_weights * _distance(a, b, s, t, positive)).sum((1, 2))
    density = (w * np.exp(-0.5 * ((point - mean) / std) ** 2) / std).sum(1) / math.sqrt(2 * math.pi)
    pair_variance, variance = s**2 + t**2, s**2 * t**2 / (s**2 + t**2)
    overlap = np.exp(-0.5 * (a - b) ** 2 / pair_variance) / np.sqrt(2 * math.pi * pair_variance)
    if positive:  # p(z) = p(ln z) / z
        overlap = overlap * np.exp(0.5 * variance - (a * t**2 + b * s**2) / pair_variance)
        density = density / y
    return to_truth - 0.5 * between, (pair_weights * overlap).sum((1, 2)) - 2 * density


def _distance(
    a: Float[np.ndarray, "*#n"],
    b: Float[np.ndarray, "*#n"],
    s: Float[np.ndarray, "*#n"],
    t: Float[np.ndarray, "*#n"],
    positive: bool,
) -> Float[np.ndarray, "*n"]:
    """Compute E|X - X'| of independent Gaussian or log-normal variables.

    E|X - X'| = 2 E max(X, X') - E X - E X'.
    """
    spread = np.sqrt(s**2 + t**2)
    z = (a - b) / spread
    if not positive:
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        return np.asarray((a - b) * (2 * ndtr(z) - 1) + 2 * spread * density)
    mean_a, mean_b = np.exp(a + 0.5 * s**2), np.exp(b + 0.5 * t**2)
    expected_maximum = mean_a * ndtr((a - b + s**2) / spread) + mean_b * ndtr(
        (b - a + t**2) / spread
    )
    return np.asarray(2 * expected_maximum - mean_a - mean_b)
