"""Quantiles of mixtures of Gaussians."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

_MARGIN = 1e-6  # in standard deviations
_CLOSE = 1e-12  # tolerance in probability
# Iterations of Newton's method, and the first ones, after which bisection alternates with it.
_MAX_ITERATIONS, _NEWTON_ONLY = 150, 8
_BLOCK_SIZE = 1 << 15  # numbers that fit a processor's cache


def quantiles(
    weights: Float[np.ndarray, "n k"],
    mean: Float[np.ndarray, "n k"],
    std: Float[np.ndarray, "n k"],
    probabilities: Float[np.ndarray, " q"],
) -> Float[np.ndarray, "q n"]:
    """Quantiles of each row's mixture at these probabilities."""
    used = (weights > 0).any(0)
    weights, mean, std = weights[:, used], mean[:, used], std[:, used]
    z = ndtri(probabilities)[:, None, None]
    if weights.shape[1] == 1:
        return np.asarray(mean[:, 0] + z[:, 0] * std[:, 0])
    std = np.where(weights > 0, std, 1.0)
    result = np.empty((len(probabilities), len(mean)))
    step = max(1, _BLOCK_SIZE // (len(probabilities) * weights.shape[1]))
    for start in range(0, len(mean), step):
        at = slice(start, start + step)
        result[:, at] = _roots(weights[at], mean[at], std[at], z[:, 0, 0])
    return result


def _roots(
    weights: Float[np.ndarray, "n k"],
    mean: Float[np.ndarray, "n k"],
    std: Float[np.ndarray, "n k"],
    z: Float[np.ndarray, " q"],
) -> Float[np.ndarray, "q n"]:
    """Compute quantiles by Newton's method within brackets.

    On the probit scale the distribution function of a Gaussian is a straight line, so one or two
    steps nearly suffice.
    """
    component_quantiles = np.where(weights > 0, mean + z[:, None, None] * std, np.nan)
    margin = _MARGIN * std.max(1)  # quantiles lie between those of components, up to rounding
    low, high = (
        (np.nanmin(component_quantiles, 2) - margin).ravel(),
        (np.nanmax(component_quantiles, 2) + margin).ravel(),
    )
    mixture_mean = (weights * mean).sum(1)
    mixture_std = np.sqrt((weights * (std**2 + (mean - mixture_mean[:, None]) ** 2)).sum(1))
    y = np.clip((mixture_mean + z[:, None] * mixture_std).ravel(), low, high)
    target, row = np.repeat(z, len(mean)), np.tile(np.arange(len(mean)), len(z))
    active = np.arange(len(y))  # not converged yet
    for iteration in range(_MAX_ITERATIONS):
        index, current = row[active], y[active]
        standardized = (current[:, None] - mean[index]) / std[index]
        below = (weights[index] * ndtr(standardized)).sum(1)
        excess = below - ndtr(target[active])
        unsolved = np.abs(excess) > _CLOSE
        if not unsolved.any():
            break
        active, index, current, below, standardized = (
            v[unsolved] for v in (active, index, current, below, standardized)
        )
        above = excess[unsolved] > 0
        high[active[above]], low[active[~above]] = current[above], current[~above]
        slope = (weights[index] / std[index] * np.exp(-0.5 * standardized**2)).sum(1)
        with np.errstate(all="ignore"):
            linear = ndtri(below)
            proposal = current - (linear - target[active]) * np.exp(-0.5 * linear**2) / slope
        rejected = ~((proposal > low[active]) & (proposal < high[active]))
        if iteration >= _NEWTON_ONLY:  # a mixture far from Gaussian
            rejected |= iteration % 2 == 0
        y[active] = np.where(rejected, (low[active] + high[active]) / 2, proposal)
    return y.reshape(len(z), len(mean))
