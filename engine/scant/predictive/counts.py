"""Predictive distributions of counts whose log rate is uncertain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import betainc, gammaincc, gammaln, logsumexp

from scant.predictive.base import Rows, ValuePredictive

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
_STEPS = 30  # iterations of Newton's method; five suffice unless prior and count are far apart
_MAX_STEP = 2.0  # maximum step of one iteration
_LEVELS = (np.arange(200) + 0.5) / 200  # quantile levels in the sum of the CRPS

Parts = Float[ndarray, "n k"]


@dataclass(frozen=True)
class CountsPredictive(ValuePredictive):
    """Poisson or negative binomial counts; the log rate of a row is a mixture of k Gaussians.

    A count y has mean r = exp(f) and variance r + dispersion r^2.

    Args:
        weights: Weights of the Gaussians; a row sums to one.
        means: Means of the log rate, including exposure.
        variances: Variances of the log rate.
        dispersion: 0 for Poisson.
        unit: Factor of each row from a count to the unit of the target (a rate).
    """

    weights: Parts
    means: Parts
    variances: Parts
    unit: Rows
    dispersion: float = 0.0

    @property
    def mean(self) -> Rows:
        return np.asarray(self.unit * (self.weights * self._rate).sum(1))

    @property
    def variance(self) -> Rows:
        rate, square = self._rate, self._rate**2 * np.exp(self.variances)
        mean = (self.weights * rate).sum(1)
        second = (self.weights * ((1 + self.dispersion) * square + rate)).sum(1)
        return np.asarray(self.unit**2 * (second - mean**2))

    def log_prob(self, y: Rows) -> Rows:
        """Log probability of values in the unit of the target, in nats.

        Quadrature nodes are centered at the mode of rate and count (Liu & Pierce 1994): centered
        at the mean of the rate they would miss the likelihood of a thousand cases.
        """
        count = (y / self.unit)[:, None]
        variance = np.maximum(self.variances, 1e-12)
        mode = np.maximum(self.means, np.log(count + 0.5))
        for _ in range(_STEPS):
            slope, curvature = self._slopes(count, mode)
            step = (slope - (mode - self.means) / variance) / (curvature + 1 / variance)
            mode = mode + np.clip(step, -_MAX_STEP, _MAX_STEP)
        width = (self._slopes(count, mode)[1] + 1 / variance) ** -0.5
        f = mode[..., None] + width[..., None] * _NODES
        log_ratio = self._log_pmf(count[..., None], f) + 0.5 * _NODES**2
        log_ratio -= 0.5 * (f - self.means[..., None]) ** 2 / variance[..., None]
        log_component = (
            logsumexp(_LOG_WEIGHTS + log_ratio, axis=2) + np.log(width) - 0.5 * np.log(variance)
        )
        return np.asarray(logsumexp(log_component, axis=1, b=self.weights))

    def cdf(self, y: Rows) -> Rows:
        return np.asarray(self._below(np.floor(y / self.unit + 1e-9)))

    def quantile(self, p: Float[ndarray, " q"]) -> Float[ndarray, "q n"]:
        quantiles = np.empty((len(p), len(self)))
        rate = self._nodes()[0].max((1, 2))
        spread = np.sqrt(rate + self.dispersion * rate**2)
        for k, level in enumerate(p.tolist()):
            low, high = np.full(len(self), -1.0), np.ceil(rate + 30 * spread + 20)
            while (high - low > 1).any():
                middle = np.floor((low + high) / 2)
                below = self._below(middle) < level
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            quantiles[k] = high
        return quantiles * self.unit

    def sample(self, generator: np.random.Generator, count: int) -> Float[ndarray, "s n"]:
        cumulative = self.weights.cumsum(1)
        uniform = generator.random((count, len(self), 1)) * cumulative[:, -1:]
        k = np.minimum((uniform > cumulative).sum(2), cumulative.shape[1] - 1)
        row = np.arange(len(self))
        f = generator.normal(self.means[row, k], np.sqrt(self.variances[row, k]))
        rate = np.exp(f)
        if self.dispersion:
            rate = generator.gamma(1 / self.dispersion, self.dispersion * rate)
        return generator.poisson(rate) * self.unit

    def crps(self, y: Rows) -> Rows:
        """Twice the mean quantile loss at 200 levels."""
        difference = self.quantile(_LEVELS) - y
        return np.asarray(2 * (((difference > 0) - _LEVELS[:, None]) * difference).mean(0))

    @property
    def _rate(self) -> Parts:
        return np.exp(self.means + 0.5 * self.variances)

    def _slopes(self, count: Float[ndarray, "n 1"], f: Parts) -> tuple[Parts, Parts]:
        """First and negative second derivative of the log probability with respect to f."""
        rate, dispersed = np.exp(f), 1 + self.dispersion * np.exp(f)
        return (count - rate) / dispersed, rate * (1 + self.dispersion * count) / dispersed**2

    def _log_pmf(self, count: ndarray, f: ndarray) -> ndarray:
        if not self.dispersion:
            return np.asarray(count * f - np.exp(f) - gammaln(count + 1))
        size, alpha = 1 / self.dispersion, self.dispersion
        log_odds = f + np.log(alpha)
        choose = gammaln(count + size) - gammaln(size) - gammaln(count + 1)
        softplus = np.logaddexp(0.0, log_odds)
        return np.asarray(choose + count * (log_odds - softplus) - size * softplus)

    def _nodes(self) -> tuple[Float[ndarray, "n k s"], Float[ndarray, "n k s"]]:
        """Rates at the nodes of the log rate, and their weights."""
        f = self.means[..., None] + np.sqrt(self.variances)[..., None] * _NODES
        return np.exp(f), self.weights[..., None] * np.exp(_LOG_WEIGHTS)

    def _below(self, count: Rows) -> Rows:
        """Probability of at most `count`."""
        rates, weights = self._nodes()
        k = np.maximum(count, 0)[:, None, None]
        if self.dispersion:
            each = betainc(1 / self.dispersion, k + 1, 1 / (1 + self.dispersion * rates))
        else:
            each = gammaincc(k + 1, rates)
        return np.where(count < 0, 0.0, (weights * each).sum((1, 2)))
