"""Mixtures of Gaussians or log-normals, with the variance of each row by its source."""

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

LEAST_VARIANCE = 1e-24  # lower bound of variances, so that densities stay finite
_MODE_OFFSETS = np.linspace(-1.0, 1.0, 9)  # start grid of modes, in deviations from a mean
_BLOCK = 5000  # rows whose modes are computed at a time

Parts = Float[ndarray, "n k"]


@dataclass(frozen=True)
class MixturePredictive(ValuePredictive):
    """A mixture of k Gaussians for each of n rows; with `log`, of ln(value + shift).

    Components without weight are ignored and may hold any number. A row whose components all have
    no weight has no prediction. If the sources of a row's variance are known, it is
    model_variance + noise_variance + input_variance: the parts that more data, better
    measurements and complete inputs would remove (law of total variance).

    Args:
        weights: Component weights; a row sums to one.
        means: Component means, in the unit of the target, or of its logarithm.
        variances: Component variances of a new observation.
        shares: Shares of model, noise and inputs in each row's variance; None: unknown.
        log: True if the components are of the logarithm.
        shift: Constant added to a value before its logarithm is taken.
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
        """One Gaussian per row.

        Args:
            mean: Mean of each row.
            variance: Variance of a new observation. None: the method has no density, and scores of
                a density are NaN.
            noise: The part of the variance that is noise; None: unknown.
            log: True if mean and variance are of ln(value + shift).
            shift: See `log`.
        """
        if variance is None:
            variance = np.full(len(mean), np.nan)
        one = np.ones((len(mean), 1))
        result = cls(one, mean[:, None], np.maximum(variance, LEAST_VARIANCE)[:, None])
        result = replace(result, log=log, shift=shift)
        return result if noise is None else result.with_sources(variance - noise, noise)

    def with_sources(
        self, model: Rows, noise: Rows, inputs: Rows | None = None
    ) -> MixturePredictive:
        """Return the same distributions with the variance split by source.

        Args:
            model: Variance from uncertainty about the function.
            noise: Variance of observations about the function.
            inputs: Variance caused by noisy or missing inputs; None: there is none.
        """
        parts = np.stack([model, noise, np.zeros(len(self)) if inputs is None else inputs], 1)
        return replace(self, shares=parts / np.maximum(parts.sum(1, keepdims=True), 1e-300))

    @classmethod
    def concat(cls, parts: Sequence[MixturePredictive]) -> MixturePredictive:
        """Join blocks of rows; pad blocks with fewer components by components of weight 0."""
        widest = max(part.weights.shape[1] for part in parts)
        return super().concat([part._padded(widest) for part in parts])

    @classmethod
    def mixed(
        cls, members: Sequence[MixturePredictive], weights: Float[ndarray, " m"]
    ) -> MixturePredictive:
        """Mixture of several models' predictions of the same rows.

        Disagreement of the members is model variance (law of total variance).

        Args:
            members: Predictions on the same scale (`log`); rows that a member does not predict are
                left to the others.
            weights: Weights of the members; they sum to one.
        """
        pairs = list(zip(row_weights(members, weights), members))
        mixture = cls(
            np.concatenate([w[:, None] * m.weights for w, m in pairs], axis=1),
            np.concatenate([m.means for m in members], axis=1),
            np.concatenate([m.variances for m in members], axis=1),
            log=members[0].log,
            shift=members[0].shift,
        )
        if any(m.shares is None for m in members):
            return mixture
        mean = mixture.mean
        between = sum(w * (m.mean - mean) ** 2 for w, m in pairs)
        model, noise, inputs = (
            np.asarray(sum(w * getattr(m, name) for w, m in pairs))
            for name in ("model_variance", "noise_variance", "input_variance")
        )
        return mixture.with_sources(model + between, noise, inputs)

    def widened(self, factor: Rows) -> MixturePredictive:
        """Multiply the components' standard deviations by a factor for each row.

        Each source keeps its share of the variance.
        """
        return replace(self, variances=factor[:, None] ** 2 * self.variances)

    def rescaled(
        self, scales: Float[ndarray, " s"], shares: Float[ndarray, "n s"]
    ) -> MixturePredictive:
        """Replace each component by a mixture of itself at several scales.

        Each source keeps its share of the variance.

        Args:
            scales: Factors of the standard deviations.
            shares: Weights of the scales in each row; a row sums to one.
        """
        weights = (self.weights[:, :, None] * shares[:, None]).reshape(len(self), -1)
        variances = (self.variances[:, :, None] * np.square(scales)).reshape(len(self), -1)
        return replace(
            self,
            weights=weights,
            means=self.means.repeat(len(scales), axis=1),
            variances=variances,
        )

    def limited(self, max_std: float) -> MixturePredictive:
        """Limit the components' standard deviations.

        Each source keeps its share of the variance.
        """
        return replace(self, variances=np.minimum(self.variances, max_std**2))

    def contracted(self, factor: Rows) -> MixturePredictive:
        """Contract each row's distribution to the mean of its components by a factor.

        Each source keeps its share of the variance.
        """
        mean, factor = self.location[:, None], factor[:, None]
        means = mean + factor * (self.means - mean)
        return replace(self, means=means, variances=factor**2 * self.variances)

    @property
    def answered(self) -> Bool[ndarray, " n"]:
        return np.asarray(self.weights.any(1))

    def answering(self, rows: Bool[ndarray, " n"]) -> MixturePredictive:
        """Keep the predictions of these rows only."""
        return replace(self, weights=np.where(rows[:, None], self.weights, 0.0))

    @property
    def location(self) -> Rows:
        """Mean of the components, on the scale of the logarithm if `log`."""
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
            y: Values; a log-normal has no density at or below zero.
            bound: Rows whose value is only known to be above y: the log probability of this event.
        """
        z, std = self._standardized(y)
        log_component = -0.5 * z**2 - np.log(std) - 0.5 * math.log(2 * math.pi)
        if self.log:
            log_component = log_component - self._value(y)
        if bound is not None:
            log_component = np.where(bound[:, None], log_ndtr(-z), log_component)
        return np.asarray(logsumexp(log_component, axis=1, b=self.weights))

    def component_densities(self, grid: Float[ndarray, " g"]) -> Float[ndarray, "n k g"]:
        """Weighted density of each component on a grid; the sum over components is the density."""
        value = np.log(grid + self.shift) if self.log else grid
        std = np.sqrt(self.variances)[:, :, None]
        z = (value - self.means[:, :, None]) / std
        densities = self.weights[:, :, None] * np.exp(-0.5 * z**2) / (std * math.sqrt(2 * math.pi))
        return densities / (grid + self.shift) if self.log else densities

    def cdf(self, y: Rows) -> Rows:
        return np.asarray((self.weights * ndtr(self._standardized(y)[0])).sum(1))

    def quantile(self, p: Float[ndarray, " q"]) -> Float[ndarray, "q n"]:
        return self._restored(quantiles(self.weights, self.means, np.sqrt(self.variances), p))

    def median(self) -> Rows:
        """Median of each row."""
        return np.asarray(self.quantile(np.array([0.5]))[0])

    def sample(self, generator: np.random.Generator, count: int) -> Float[ndarray, "s n"]:
        cumulative = self.weights.cumsum(1)
        uniform = generator.random((count, len(self), 1)) * cumulative[:, -1:]
        k = np.minimum((uniform > cumulative).sum(2), self.weights.shape[1] - 1)
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
        """Mean of the minimum of value and horizon (Royston & Parmar 2013).

        With `log`, horizon and result are on the scale of the logarithm.
        """
        std = np.sqrt(self.variances)
        z = (horizon - self.means) / std
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        component_means = self.means * ndtr(z) - std * density + horizon * ndtr(-z)
        return np.asarray((self.weights * component_means).sum(1))

    def scaled(self, scale: float | Rows, offset: float | Rows, log: bool) -> MixturePredictive:
        """Distributions of offset + scale * value, or with `log` of its exponential.

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
        """One Gaussian (or log-normal) per row with the mean and variance of the mixture."""
        mean = (self.weights * self.means).sum(1)
        spread = self.variances + (self.means - mean[:, None]) ** 2
        one = np.ones((len(self), 1))
        variance = (self.weights * spread).sum(1)
        return replace(self, weights=one, means=mean[:, None], variances=variance[:, None])

    def reduced(self, max_components: int) -> MixturePredictive:
        """Reduce to at most `max_components` Gaussians per row, with the same mean and variance.

        The heaviest come first. Exchange formats of densities have no mixtures of log-normals, so
        each log-normal becomes the Gaussian of its mean and variance: these stay exact, skewness
        within a component is lost. The total variation distance from one log-normal with standard
        deviation s of the logarithm is about 0.37 s (a redshift known to 5 % of itself: 0.02).
        """
        means, variances = self._moments()
        components = reduce_mixtures(self.weights, means, variances, max_components)
        return replace(
            self, **dict(zip(("weights", "means", "variances"), components)), log=False, shift=0.0
        )

    def mode(self) -> Rows:
        """Value with the highest density in each row; for Gaussians only."""
        assert not self.log, "modes are those of Gaussians"
        stds = np.sqrt(self.variances)
        blocks = [slice(at, at + _BLOCK) for at in range(0, len(self), _BLOCK)]
        modes = [_mode(self.weights[b], self.means[b], stds[b]) for b in blocks]
        return np.concatenate(modes) if modes else np.zeros(0)

    def parameters(self) -> dict[str, Parts]:
        """`weights`, `means` and `stds` of the components, in the format of qp's `mixmod`."""
        stds = np.sqrt(self.variances)
        return {"weights": self.weights, "means": self.means, "stds": stds}

    def columns(self) -> dict[str, Rows]:
        """`weight_1`, `mean_1`, `std_1`, `weight_2` and so on, by name."""
        parameters, count = self.parameters().items(), self.weights.shape[1]
        return {f"{n[:-1]}_{k + 1}": part[:, k] for k in range(count) for n, part in parameters}

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
        padding = ((0, 0), (0, k - self.weights.shape[1]))
        if not padding[1][1]:
            return self
        weights, means, variances = (
            np.pad(values, padding) for values in (self.weights, self.means, self.variances)
        )
        return replace(self, weights=weights, means=means, variances=variances)


def _mode(w: Parts, m: Parts, s: Parts) -> Rows:
    """Modes of Gaussian mixtures.

    The density of a Gaussian is convex beyond one deviation from its mean, so each mode of a
    mixture is within one deviation of a component's mean.
    """
    n, rows = len(w), np.arange(len(w))
    peak = w / (s * math.sqrt(2 * math.pi))

    def negative_density(x: Float[ndarray, "*q"], row: ndarray) -> Float[ndarray, "*q"]:
        total = np.zeros(np.broadcast_shapes(x.shape, row.shape))
        for k in range(w.shape[1]):
            total -= peak[row, k] * np.exp(-0.5 * ((x - m[row, k]) / s[row, k]) ** 2)
        return total

    x = (m[:, :, None] + s[:, :, None] * _MODE_OFFSETS).reshape(n, -1)
    best = negative_density(x, rows[:, None]).argmin(1)
    start, step = (
        x[rows, best],
        s[rows, best // len(_MODE_OFFSETS)] * (_MODE_OFFSETS[1] - _MODE_OFFSETS[0]),
    )
    brackets = bracket_minimum(
        negative_density, start, xl0=start - step, xr0=start + step, args=(rows,)
    )
    minimum = find_minimum(negative_density, brackets.bracket, args=(rows,))
    return np.where(minimum.success, minimum.x, start)
