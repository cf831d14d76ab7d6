"""Intervals of predictive distributions: quantiles at 50, 80 and 95 %."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

ENDS = ("lo50", "hi50", "lo80", "hi80", "lo95", "hi95")
PROBABILITIES = np.array([0.25, 0.75, 0.1, 0.9, 0.025, 0.975])  # of the ends
_MARGIN = 1e-6  # of a deviation
_CLOSE = 1e-12  # in probability
_TURNS, _PATIENCE = 150, 8  # of Newton's method, and of them before intervals are halved too
_AT_ONCE = 1 << 15  # numbers that stay in a processor's cache

Ends = Float[np.ndarray, "6 n"]


def gaussian(mean: Float[np.ndarray, " n"], std: Float[np.ndarray, " n"]) -> Ends:
    """Of Gaussians; of what they are the logarithm of, take `exp` of the result."""
    ends: Ends = mean + ndtri(PROBABILITIES)[:, None] * std
    return ends


def mixture(
    weights: Float[np.ndarray, "n k"],
    mean: Float[np.ndarray, "n k"],
    std: Float[np.ndarray, "n k"],
) -> Ends:
    """Of mixtures of Gaussians, a row each, where the distribution function has them.

    Args:
        weights: Of the components; a row sums to one, and what has no weight is not looked at.
        mean: Of each component.
        std: Likewise, above zero where the weight is.
    """
    return quantiles(weights, mean, std, PROBABILITIES)


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


def columns(ends: Ends) -> dict[str, Float[np.ndarray, " n"]]:
    """The ends by the names of their columns."""
    return dict(zip(ENDS, ends))
