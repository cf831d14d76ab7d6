"""Predictive densities as a few Gaussians a row: p(z) for files, and for tools of the field."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.optimize.elementwise import bracket_minimum, find_minimum

from scant.density_scores import WIDEST
from scant.inference.mixture_reduction import reduce_mixtures
from scant.studies.base import ArraySpec
from scant.studies.intervals import quantiles

MOST = 5  # Gaussians of a row
_NEAR = np.linspace(-1.0, 1.0, 9)  # deviations from a component's mean, where modes are looked for
_ROWS = 5000  # whose modes are looked for at a time

Parts = Float[np.ndarray, "n k"]
Rows = Float[np.ndarray, " n"]


class Densities(NamedTuple):
    """Mixtures of Gaussians, a row each, in the target's own unit.

    Attributes:
        weights: Of the components, the heaviest first; a row sums to one.
        means: Of each. Those without weight have the mean and deviation of the heaviest.
        stds: Their deviations, above zero.
    """

    weights: Parts
    means: Parts
    stds: Parts

    def mean(self) -> Rows:
        """Mean of each row."""
        return np.asarray((self.weights * self.means).sum(1))

    def median(self) -> Rows:
        """Median of each row."""
        return np.asarray(quantiles(*self, np.array([0.5]))[0])

    def mode(self) -> Rows:
        """Where the density of each row is highest.

        Farther than a deviation from a mean, the density of a Gaussian is convex, and so each mode
        of a mixture is within one of a component's.
        """
        blocks = range(0, len(self.weights), _ROWS)
        found = [_mode(*(part[at : at + _ROWS] for part in self)) for at in blocks]
        return np.concatenate(found) if found else np.zeros(0)

    def columns(self) -> dict[str, Rows]:
        """`weight_1`, `mean_1`, `std_1`, `weight_2` and so on, by name."""
        named = list(zip(("weight", "mean", "std"), self))
        count = self.weights.shape[1]
        return {f"{n}_{k + 1}": part[:, k] for k in range(count) for n, part in named}


@runtime_checkable
class HasDensities(Protocol):
    """A fitted study that tells predictive densities."""

    def densities(self, table: pd.DataFrame, most: int = MOST) -> Densities:
        """Of each row of a table, at most so many Gaussians. Raises as `predict`."""


def few_gaussians(
    weights: Parts, means: Parts, variances: Parts, most: int, *, positive: bool = False
) -> Densities:
    """At most so many Gaussians a row, with mean and variance of the whole mixture.

    With `positive` the components are of the logarithm. No form in which tools exchange densities
    holds mixtures of log-normals, so that each component becomes the Gaussian of its mean and
    variance, before these are reduced: mean and variance of the whole stay exact, skewness
    within a component is lost. Of one log-normal whose logarithm deviates by s, the total variation
    distance is about 0.37 s (a redshift known to 5% of itself: 0.02).

    Args:
        weights: Of the components; a row sums to one. What has no weight is not looked at.
        means: Of each.
        variances: Likewise, above zero where the weight is.
        most: How many may be left.
        positive: Whether these are of the logarithm.
    """
    if positive:
        used = weights > 0
        means, variances = np.where(used, means, 0.0), np.where(used, variances, 0.0)
        variances = np.minimum(variances, WIDEST**2)
        means = np.exp(means + 0.5 * variances)
        variances = np.expm1(variances) * means**2
    w, m, v = reduce_mixtures(weights, means, variances, most)
    return Densities(w, m, np.sqrt(v))


def column_specs(unit: str, most: int = MOST) -> tuple[ArraySpec, ...]:
    """What `Densities.columns` are, for data dictionaries."""
    kinds = (("weight", "1", "weight"), ("mean", unit, "mean"), ("std", unit, "deviation"))
    return tuple(
        ArraySpec(f"{name}_{k}", "n", u, f"{text} of Gaussian {k} of the predictive density")
        for k in range(1, most + 1)
        for name, u, text in kinds
    )


def _mode(w: Parts, m: Parts, s: Parts) -> Rows:
    n, rows = len(w), np.arange(len(w))
    peak = w / (s * math.sqrt(2 * math.pi))

    def depth(x: Float[np.ndarray, "*q"], row: Int[np.ndarray, "*#q"]) -> Float[np.ndarray, "*q"]:
        total = np.zeros(np.broadcast_shapes(x.shape, row.shape))
        for k in range(w.shape[1]):
            total -= peak[row, k] * np.exp(-0.5 * ((x - m[row, k]) / s[row, k]) ** 2)
        return total

    x = (m[:, :, None] + s[:, :, None] * _NEAR).reshape(n, -1)
    best = depth(x, rows[:, None]).argmin(1)
    start, step = x[rows, best], s[rows, best // len(_NEAR)] * (_NEAR[1] - _NEAR[0])
    around = bracket_minimum(depth, start, xl0=start - step, xr0=start + step, args=(rows,))
    found = find_minimum(depth, around.bracket, args=(rows,))
    return np.where(found.success, found.x, start)
