"""Mixtures of Gaussians or of log-normals, with the variance of each row by its source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.optimize.elementwise import bracket_minimum, find_minimum
from scipy.special import log_ndtr, logsumexp, ndtr

from scant.predictive.base import Rows, ValuePredictive, row_weights
from scant.predictive.mixture_reduction import reduce_mixtures
from scant.predictive.mixture_scores import WIDEST, Scores, mixture_scores
from scant.predictive.quantiles import quantiles

LEAST_VARIANCE = 1e-24  # smaller ones are taken as this, so that densities stay finite
_NEAR = np.linspace(-1.0, 1.0, 9)  # where modes are looked for, in deviations from a mean
_BLOCK = 5000  # rows whose modes are looked for at a time

Parts = Float[ndarray, "n k"]


@dataclass(frozen=True)
class MixturePredictive(ValuePredictive):
    """A mixture of k Gaussians for each of n rows; with `log`, of ln(value + shift).

    A component without weight counts for nothing and may hold any number; a row of which all are
    without weight is one that the method does not answer. Where the sources of a
    row's variance are known, it is model_variance + noise_variance + input_variance: what more
    data, better measurements and complete inputs would remove (law of total variance).

    Args:
        weights: Of the components; a row sums to one.
        means: Of each, in the unit of the target, or of its logarithm.
        variances: Of each, of a new observation.
        shares: Of model, noise and inputs in the variance of each row; None: they are not known.
        log: Whether the components are of the logarithm.
        shift: What is added to a value before its logarithm is taken.
    """

    weights: Parts
    means: Parts
    variances: Parts
    shares: Float[ndarray, "n 3"] | None = None
    log: bool = False
    shift: float = 0.0

    def __post_init__(self) -> None:
        unused = self.weights <= 0
        if unused.any():
            usable = np.isfinite(self.means) & (self.variances > 0) & (self.variances < np.inf)
            unused &= ~usable
        if unused.any():
            for name, value in (("means", 0.0), ("variances", 1.0)):
                object.__setattr__(self, name, np.where(unused, value, getattr(self, name)))

    @classmethod
    def gaussian(
        cls,
        mean: Rows,
        variance: Rows | None,
        noise: Rows | None = None,
        log: bool = False,
        shift: float = 0.0,
    ) -> MixturePredictive:
        """One Gaussian a row.

        Args:
            mean: Of each row.
            variance: Of a new observation. None: the method has no density; the scores of a density
                are NaN then.
            noise: The part of the variance that is noise; None: not known.
            log: Whether these are of ln(value + shift).
            shift: See `log`.
        """
        if variance is None:
            variance = np.full(len(mean), np.nan)
        one = np.ones((len(mean), 1))
        made = cls(one, mean[:, None], np.maximum(variance, LEAST_VARIANCE)[:, None])
        made = replace(made, log=log, shift=shift)
        return made if noise is None else made.with_sources(variance - noise, noise)

    def with_sources(
        self, model: Rows, noise: Rows, inputs: Rows | None = None
    ) -> MixturePredictive:
        """Return the same distributions, with variances that come from these sources.

        Args:
            model: Variance from uncertainty about the function.
            noise: Variance of observations about the function.
            inputs: Variance caused by noisy or missing inputs; None: there is none.
        """
        parts = np.stack([model, noise, np.zeros(len(self)) if inputs is None else inputs], 1)
        return replace(self, shares=parts / np.maximum(parts.sum(1, keepdims=True), 1e-300))

    @classmethod
    def concat(cls, parts: Sequence[MixturePredictive]) -> MixturePredictive:
        """Join blocks of rows; those with fewer components get more without weight."""
        widest = max(part.weights.shape[1] for part in parts)
        return super().concat([part._padded(widest) for part in parts])

    @classmethod
    def mixed(
        cls, members: Sequence[MixturePredictive], weights: Float[ndarray, " m"]
    ) -> MixturePredictive:
        """The mixture of several models' predictions of the same rows.

        Disagreement of the members is model variance (law of total variance).

        Args:
            members: Predictions on the same scale (`log`); a row that one does not answer is left
                to the others.
            weights: Of the members; they sum to one.
        """
        pairs = list(zip(row_weights(members, weights), members))
        made = cls(
            np.concatenate([w[:, None] * m.weights for w, m in pairs], axis=1),
            np.concatenate([m.means for m in members], axis=1),
            np.concatenate([m.variances for m in members], axis=1),
            log=members[0].log,
            shift=members[0].shift,
        )
        if any(m.shares is None for m in members):
            return made
        mean = made.mean
        between = sum(w * (m.mean - mean) ** 2 for w, m in pairs)
        model, noise, inputs = (
            np.asarray(sum(w * getattr(m, name) for w, m in pairs))
            for name in ("model_variance", "noise_variance", "input_variance")
        )
        return made.with_sources(model + between, noise, inputs)

    def widened(self, factor: Rows) -> MixturePredictive:
        """Multiply the components' standard deviations by a factor of each row.

        Each source keeps its share of the variance.
        """
        return replace(self, variances=factor[:, None] ** 2 * self.variances)

    def rescaled(
        self, scales: Float[ndarray, " s"], shares: Float[ndarray, "n s"]
    ) -> MixturePredictive:
        """Each component as a mixture of itself at several scales.

        Each source keeps its share of the variance.

        Args:
            scales: Factors of the standard deviations.
            shares: Weights of the scales in each row; a row sums to one.
        """
        parts = (self.weights[:, :, None] * shares[:, None]).reshape(len(self), -1)
        variances = (self.variances[:, :, None] * np.square(scales)).reshape(len(self), -1)
        return replace(
            self,
            weights=parts,
            means=self.means.repeat(len(scales), axis=1),
            variances=variances,
        )

    @property
    def answered(self) -> Bool[ndarray, " n"]:
        return np.asarray(self.weights.any(1))

    def answering(self, rows: Bool[ndarray, " n"]) -> MixturePredictive:
        """Say something of these rows only."""
        return replace(self, weights=np.where(rows[:, None], self.weights, 0.0))

    @property
    def location(self) -> Rows:
        """Mean of the components, of the logarithm where they are of it."""
        return np.asarray((self.weights * self.means).sum(1))

    @property
    def model_variance(self) -> Rows:
        """Variance that more data would remove."""
        return self._source(0)

    @property
    def noise_variance(self) -> Rows:
        """Variance of observations about the function."""
        return self._source(1)

    @property
    def input_variance(self) -> Rows:
        """Variance caused by noisy or missing inputs."""
        return self._source(2)

    @property
    def mean(self) -> Rows:
        return np.asarray((self.weights * self._moments()[0]).sum(1))

    @cached_property
    def variance(self) -> Rows:
        means, variances = self._moments()
        mean = (self.weights * means).sum(1)
        return np.asarray((self.weights * (variances + (means - mean[:, None]) ** 2)).sum(1))

    def log_prob(self, y: Rows, bound: Bool[ndarray, " n"] | None = None) -> Rows:
        """Log density of observed values, in nats.

        Args:
            y: Values; those at or below zero have no density under a log-normal.
            bound: Rows whose value is only known to be above y: the log probability of that.
        """
        z, std = self._standardized(y)
        each = -0.5 * z**2 - np.log(std) - 0.5 * math.log(2 * math.pi)
        if self.log:
            each = each - self._value(y)
        if bound is not None:
            each = np.where(bound[:, None], log_ndtr(-z), each)
        return np.asarray(logsumexp(each, axis=1, b=self.weights))

    def component_densities(self, grid: Float[ndarray, " g"]) -> Float[ndarray, "n k g"]:
        """Weighted density of each component at the values of a grid; their sum is the density."""
        value = np.log(grid + self.shift) if self.log else grid
        std = np.sqrt(self.variances)[:, :, None]
        z = (value - self.means[:, :, None]) / std
        each = self.weights[:, :, None] * np.exp(-0.5 * z**2) / (std * math.sqrt(2 * math.pi))
        return each / (grid + self.shift) if self.log else each

    def cdf(self, y: Rows) -> Rows:
        return np.asarray((self.weights * ndtr(self._standardized(y)[0])).sum(1))

    def quantile(self, p: Float[ndarray, " q"]) -> Float[ndarray, "q n"]:
        return self._restored(quantiles(self.weights, self.means, np.sqrt(self.variances), p))

    def median(self) -> Rows:
        """Median of each row."""
        return np.asarray(self.quantile(np.array([0.5]))[0])

    def sample(self, generator: np.random.Generator, count: int) -> Float[ndarray, "s n"]:
        ends = self.weights.cumsum(1)
        drawn = generator.random((count, len(self), 1)) * ends[:, -1:]
        k = np.minimum((drawn > ends).sum(2), self.weights.shape[1] - 1)
        row = np.arange(len(self))
        noise = generator.standard_normal((count, len(self)))
        values = self.means[row, k] + np.sqrt(self.variances[row, k]) * noise
        return self._restored(values)

    def scores(self, y: Rows) -> Scores:
        """CRPS and CDE loss of observed values, exact."""
        return mixture_scores(
            self.weights, self.means, np.sqrt(self.variances), y + self.shift, self.log
        )

    def crps(self, y: Rows) -> Rows:
        return self.scores(y).crps

    def restricted_mean(self, horizon: float) -> Rows:
        """Mean of the value or the horizon, whichever is less (Royston & Parmar 2013).

        With `log` the horizon is on the scale of the logarithm, as the result is.
        """
        std = np.sqrt(self.variances)
        z = (horizon - self.means) / std
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        each = self.means * ndtr(z) - std * density + horizon * ndtr(-z)
        return np.asarray((self.weights * each).sum(1))

    def scaled(self, scale: float | Rows, offset: float | Rows, log: bool) -> MixturePredictive:
        """Distributions of offset + scale * value, or with `log` of the exponential of that.

        Each source keeps its share of the variance.
        """
        assert not self.log, "values are standardized before they are scaled"
        a, b = (np.broadcast_to(np.asarray(v, float), len(self)) for v in (scale, offset))
        return replace(
            self,
            means=b[:, None] + a[:, None] * self.means,
            variances=a[:, None] ** 2 * self.variances,
            log=log,
        )

    def collapsed(self) -> MixturePredictive:
        """One Gaussian (or log-normal) a row with the mean and variance of the components."""
        mean = (self.weights * self.means).sum(1)
        spread = self.variances + (self.means - mean[:, None]) ** 2
        one = np.ones((len(self), 1))
        variance = (self.weights * spread).sum(1)
        return replace(self, weights=one, means=mean[:, None], variances=variance[:, None])

    def reduced(self, most: int) -> MixturePredictive:
        """At most so many Gaussians a row, the heaviest first, with the same mean and variance.

        No format in which tools exchange densities holds mixtures of log-normals. Each log-normal
        becomes the Gaussian of its mean and variance: these stay exact, skewness within a component
        is lost. Of one log-normal whose logarithm deviates by s, the total variation distance is
        about 0.37 s (a redshift known to 5 % of itself: 0.02).
        """
        means, variances = self._moments()
        few = reduce_mixtures(self.weights, means, variances, most)
        return replace(
            self, **dict(zip(("weights", "means", "variances"), few)), log=False, shift=0.0
        )

    def mode(self) -> Rows:
        """Value at which the density of each row is highest; of Gaussians only."""
        assert not self.log, "modes are those of Gaussians"
        stds = np.sqrt(self.variances)
        blocks = [slice(at, at + _BLOCK) for at in range(0, len(self), _BLOCK)]
        found = [_mode(self.weights[b], self.means[b], stds[b]) for b in blocks]
        return np.concatenate(found) if found else np.zeros(0)

    def parameters(self) -> dict[str, Parts]:
        """`weights`, `means` and `stds` of the components, as qp's `mixmod` takes them."""
        stds = np.sqrt(self.variances)
        return {"weights": self.weights, "means": self.means, "stds": stds}

    def columns(self) -> dict[str, Rows]:
        """`weight_1`, `mean_1`, `std_1`, `weight_2` and so on, by name."""
        named, count = self.parameters().items(), self.weights.shape[1]
        return {f"{n[:-1]}_{k + 1}": part[:, k] for k in range(count) for n, part in named}

    def _moments(self) -> tuple[Parts, Parts]:
        """Mean and variance of each component, in the unit of the target."""
        if not self.log:
            return self.means, self.variances
        variances = np.minimum(self.variances, WIDEST**2)
        means = np.exp(self.means + 0.5 * variances)
        return means - self.shift, np.expm1(variances) * means**2

    def _restored(self, values: Float[ndarray, "*k n"]) -> Float[ndarray, "*k n"]:
        return np.exp(values) - self.shift if self.log else values

    def _source(self, k: int) -> Rows:
        assert self.shares is not None, "the sources of this variance are not known"
        return np.asarray(self.shares[:, k] * self.variance)

    def _value(self, y: Rows) -> Parts:
        return (np.log(y + self.shift) if self.log else y)[:, None]

    def _standardized(self, y: Rows) -> tuple[Parts, Parts]:
        std = np.sqrt(self.variances)
        return (self._value(y) - self.means) / std, std

    def _padded(self, k: int) -> MixturePredictive:
        more = ((0, 0), (0, k - self.weights.shape[1]))
        if not more[1][1]:
            return self
        weights, means, variances = (
            np.pad(values, more) for values in (self.weights, self.means, self.variances)
        )
        return replace(self, weights=weights, means=means, variances=variances)


def _mode(w: Parts, m: Parts, s: Parts) -> Rows:
    """Modes of Gaussian mixtures.

    Farther than a deviation from its mean the density of a Gaussian is convex, so that each mode of
    a mixture is within one deviation of a component's mean.
    """
    n, rows = len(w), np.arange(len(w))
    peak = w / (s * math.sqrt(2 * math.pi))

    def depth(x: Float[ndarray, "*q"], row: ndarray) -> Float[ndarray, "*q"]:
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
