"""Quantiles of mixtures of Gaussians."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

_MARGIN = 1e-6  # of a deviation
_CLOSE = 1e-12  # in probability
_TURNS, _PATIENCE = 150, 8  # of Newton's method, and of them before intervals are halved too
_AT_ONCE = 1 << 15  # numbers that stay in a processor's cache


def quantiles(
    weights: Float[np.ndarray, "n k"],
    mean: Float[np.ndarray, "n k"],
    std: Float[np.ndarray, "n k"],
    probabilities: Float[np.ndarray, " q"],
) -> Float[np.ndarray, "q n"]:
    """Where the distribution functions of the same mixtures have these probabilities."""
    used = (weights > 0).any(0)
    weights, mean, std = weights[:, used], mean[:, used], std[:, used]
    z = ndtri(probabilities)[:, None, None]
    if weights.shape[1] == 1:
        return np.asarray(mean[:, 0] + z[:, 0] * std[:, 0])
    std = np.where(weights > 0, std, 1.0)
    found = np.empty((len(probabilities), len(mean)))
    step = max(1, _AT_ONCE // (len(probabilities) * weights.shape[1]))
    for start in range(0, len(mean), step):
        at = slice(start, start + step)
        found[:, at] = _roots(weights[at], mean[at], std[at], z[:, 0, 0])
    return found


def _roots(
    weights: Float[np.ndarray, "n k"],
    mean: Float[np.ndarray, "n k"],
    std: Float[np.ndarray, "n k"],
    z: Float[np.ndarray, " q"],
) -> Float[np.ndarray, "q n"]:
    """Newton's method between ends that hold the quantile.

    It looks for the root on the scale where the distribution function of a Gaussian is a straight
    line, and so is nearly there after a step or two.
    """
    own = np.where(weights > 0, mean + z[:, None, None] * std, np.nan)
    margin = _MARGIN * std.max(1)  # the quantile lies between theirs, but for rounding
    low, high = (np.nanmin(own, 2) - margin).ravel(), (np.nanmax(own, 2) + margin).ravel()
    centre = (weights * mean).sum(1)
    wide = np.sqrt((weights * (std**2 + (mean - centre[:, None]) ** 2)).sum(1))
    y = np.clip((centre + z[:, None] * wide).ravel(), low, high)
    goal, row = np.repeat(z, len(mean)), np.tile(np.arange(len(mean)), len(z))
    left = np.arange(len(y))  # not found yet
    for turn in range(_TURNS):
        at, now = row[left], y[left]
        away = (now[:, None] - mean[at]) / std[at]
        below = (weights[at] * ndtr(away)).sum(1)
        excess = below - ndtr(goal[left])
        open_ = np.abs(excess) > _CLOSE
        if not open_.any():
            break
        left, at, now, below, away = (v[open_] for v in (left, at, now, below, away))
        over = excess[open_] > 0
        high[left[over]], low[left[~over]] = now[over], now[~over]
        slope = (weights[at] / std[at] * np.exp(-0.5 * away**2)).sum(1)
        with np.errstate(all="ignore"):
            linear = ndtri(below)
            following = now - (linear - goal[left]) * np.exp(-0.5 * linear**2) / slope
        bad = ~((following > low[left]) & (following < high[left]))
        if turn >= _PATIENCE:  # a mixture far from Gaussian
            bad |= turn % 2 == 0
        y[left] = np.where(bad, (low[left] + high[left]) / 2, following)
    return y.reshape(len(z), len(mean))
