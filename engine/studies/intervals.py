"""Intervals of predictive distributions: quantiles at 50, 80 and 95 %."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize.elementwise import find_root
from scipy.special import ndtr, ndtri

ENDS = ("lo50", "hi50", "lo80", "hi80", "lo95", "hi95")
PROBABILITIES = np.array([0.25, 0.75, 0.1, 0.9, 0.025, 0.975])  # of the ends
_MARGIN = 1e-6  # of a deviation
_CLOSE = {"xrtol": 0.0, "xatol": 0.0, "fatol": 1e-12}  # in probability

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
    used = (weights > 0).any(0)
    weights, mean, std = weights[:, used], mean[:, used], std[:, used]
    if weights.shape[1] == 1:
        return gaussian(mean[:, 0], std[:, 0])
    std = np.where(weights > 0, std, 1.0)
    z = ndtri(PROBABILITIES)[:, None, None]
    own = np.where(weights > 0, mean + z * std, np.nan)
    margin = _MARGIN * std.max(1)  # the quantile lies between theirs, but for rounding
    bracket = np.nanmin(own, axis=2) - margin, np.nanmax(own, axis=2) + margin

    def excess(
        y: Float[np.ndarray, "*q"], p: Float[np.ndarray, "*#q"], row: Int[np.ndarray, "*#q"]
    ) -> Float[np.ndarray, "*q"]:
        below = weights[row] * ndtr((y[..., None] - mean[row]) / std[row])
        return np.asarray(below.sum(-1) - p)

    rows = np.arange(len(mean))
    found = find_root(excess, bracket, args=(PROBABILITIES[:, None], rows), tolerances=_CLOSE)
    return np.asarray(found.x)


def columns(ends: Ends) -> dict[str, Float[np.ndarray, " n"]]:
    """The ends by the names of their columns."""
    return dict(zip(ENDS, ends))
