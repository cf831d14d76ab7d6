"""Scores of densities that are mixtures of Gaussians, or of log-normals: exact, without a grid.

Both are sums over pairs of components. Gneiting & Raftery (2007), Strictly proper scoring rules,
equation 21: CRPS = E|X - y| - E|X - X'| / 2. Izbicki & Lee (2017): CDE loss = the integral of the
squared density less twice the density at the truth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

WIDEST = 5.0  # deviation of a logarithm: wider ones count as this, as their means overflow
PAIRS = 4_000_000  # of components, whose numbers are held at a time

Parts = Float[np.ndarray, "n k"]
Rows = Float[np.ndarray, " n"]


class Scores(NamedTuple):
    """Of each row; less is better for both."""

    crps: Rows
    cde: Rows


def mixture_scores(weights: Parts, mean: Parts, std: Parts, y: Rows, positive: bool) -> Scores:
    """CRPS, in the unit of y, and CDE loss, in its inverse.

    Args:
        weights: Of the components; a row sums to one. What has no weight is not looked at.
        mean: Of each; with `positive` of the logarithm.
        std: Likewise.
        y: The truth.
        positive: Whether the components are log-normal.
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
    both = w[:, :, None] * w[:, None, :]
    point = (np.log(y) if positive else y)[:, None]
    own = (w * _distance(mean, point, std, np.zeros_like(mean), positive)).sum(1)
    among = (both * _distance(a, b, s, t, positive)).sum((1, 2))
    at = (w * np.exp(-0.5 * ((point - mean) / std) ** 2) / std).sum(1) / math.sqrt(2 * math.pi)
    square, variance = s**2 + t**2, s**2 * t**2 / (s**2 + t**2)
    overlap = np.exp(-0.5 * (a - b) ** 2 / square) / np.sqrt(2 * math.pi * square)
    if positive:  # densities of z are those of ln z over z
        overlap = overlap * np.exp(0.5 * variance - (a * t**2 + b * s**2) / square)
        at = at / y
    return own - 0.5 * among, (both * overlap).sum((1, 2)) - 2 * at


def _distance(
    a: Float[np.ndarray, "*#n"],
    b: Float[np.ndarray, "*#n"],
    s: Float[np.ndarray, "*#n"],
    t: Float[np.ndarray, "*#n"],
    positive: bool,
) -> Float[np.ndarray, "*n"]:
    """E|X - X'| of independent Gaussians of these means and deviations, or of their exponentials.

    Twice the expected maximum less both means.
    """
    spread = np.sqrt(s**2 + t**2)
    away = (a - b) / spread
    if not positive:
        density = np.exp(-0.5 * away**2) / math.sqrt(2 * math.pi)
        return np.asarray((a - b) * (2 * ndtr(away) - 1) + 2 * spread * density)
    one, other = np.exp(a + 0.5 * s**2), np.exp(b + 0.5 * t**2)
    greater = one * ndtr((a - b + s**2) / spread) + other * ndtr((b - a + t**2) / spread)
    return np.asarray(2 * greater - one - other)


def pit_ks(pit: Rows) -> float:
    """Kolmogorov-Smirnov distance of the transforms from the uniform distribution."""
    ordered, n = np.sort(pit), len(pit)
    above = np.arange(1, n + 1) / n - ordered
    return float(max(above.max(), (1 / n - above).max()))
