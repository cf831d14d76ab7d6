"""A predictive distribution that is a mixture of Gaussians, a few at each support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.mtgpa.observing import HALVINGS, MTGPAPrediction


class Mixture(NamedTuple):
    """Of each member its weight, the mean and variance of the average, and the noise.

    What has no weight may be anything finite.
    """

    weights: Float[Tensor, "k n"]
    mean: Float[Tensor, "k n"]
    variance: Float[Tensor, "k n"]
    noise: Float[Tensor, "k n"]

    @classmethod
    def of_one(cls, told: MTGPAPrediction) -> Mixture:
        """A single Gaussian."""
        mean, variance, noise = (column.unsqueeze(0) for column in told)
        return cls(torch.ones_like(mean), mean, variance, noise)

    def moments(self) -> MTGPAPrediction:
        """Of the whole; what the members disagree on is no noise."""
        mean = (self.weights * self.mean).sum(0)
        variance = (self.weights * (self.variance + (self.mean - mean).square())).sum(0)
        return MTGPAPrediction(mean, variance, (self.weights * self.noise).sum(0))

    @property
    def std(self) -> Float[Tensor, "k n"]:
        """Deviations of new observations."""
        return (self.variance + self.noise).sqrt()

    def weighted(self, weights: Float[Tensor, " n"] | float) -> Mixture:
        """A part of a larger mixture, in which it has these weights."""
        return self._replace(weights=self.weights * weights)

    def widened(self, factor: Float[Tensor, " n"]) -> Mixture:
        """With deviations times a factor."""
        square = factor.square()
        return self._replace(variance=self.variance * square, noise=self.noise * square)

    @classmethod
    def joined(cls, parts: Sequence[Mixture]) -> Mixture:
        """Of all members of the parts."""
        return cls(*(torch.cat(column) for column in zip(*parts)))

    def log_prob(self, y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Log densities of new observations, in nats."""
        z = (y - self.mean) / self.std
        each = -0.5 * z.square() - self.std.log() - 0.5 * math.log(2 * math.pi)
        return (self.weights.log() + each).logsumexp(0)

    def quantiles(self, p: Float[Tensor, " q"]) -> Float[Tensor, "q n"]:
        """Of new observations, by bisection between those of the members."""
        z = torch.special.ndtri(p)[:, None, None]
        ends = torch.where(self.weights > 0, self.mean + z * self.std, math.nan)
        low = ends.nan_to_num(math.inf).amin(1)
        high = ends.nan_to_num(-math.inf).amax(1)
        for _ in range(HALVINGS if len(self.mean) > 1 else 0):
            middle = (low + high) / 2
            below = self.weights * torch.special.ndtr((middle.unsqueeze(1) - self.mean) / self.std)
            less = below.sum(1) < p[:, None]
            low, high = torch.where(less, middle, low), torch.where(less, high, middle)
        return (low + high) / 2
