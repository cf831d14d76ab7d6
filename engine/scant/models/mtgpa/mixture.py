"""Predictive distributions that are mixtures of a few Gaussians per support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.mtgpa.observing import MTGPAPrediction


class Mixture(NamedTuple):
    """Weight, mean and variance of the average, and noise variance of each component.

    Components with zero weight may have any finite values.
    """

    weights: Float[Tensor, "k n"]
    mean: Float[Tensor, "k n"]
    variance: Float[Tensor, "k n"]
    noise: Float[Tensor, "k n"]

    @classmethod
    def single(cls, prediction: MTGPAPrediction) -> Mixture:
        """Mixture of one Gaussian."""
        mean, variance, noise = (column.unsqueeze(0) for column in prediction)
        return cls(torch.ones_like(mean), mean, variance, noise)

    def moments(self) -> MTGPAPrediction:
        """Moments of the mixture; differences between components count as variance, not noise."""
        mean = (self.weights * self.mean).sum(0)
        variance = (self.weights * (self.variance + (self.mean - mean).square())).sum(0)
        return MTGPAPrediction(mean, variance, (self.weights * self.noise).sum(0))

    @property
    def std(self) -> Float[Tensor, "k n"]:
        """Standard deviations of new observations."""
        return (self.variance + self.noise).sqrt()

    def weighted(self, weights: Float[Tensor, " n"] | float) -> Mixture:
        """Multiply the weights, to make it a part of a larger mixture."""
        return self._replace(weights=self.weights * weights)

    def widened(self, factor: Float[Tensor, " n"]) -> Mixture:
        """Multiply the standard deviations by a factor."""
        square = factor.square()
        return self._replace(variance=self.variance * square, noise=self.noise * square)

    @classmethod
    def joined(cls, parts: Sequence[Mixture]) -> Mixture:
        """Concatenate the components of several mixtures."""
        return cls(*(torch.cat(column) for column in zip(*parts)))

    def log_prob(self, y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Log densities of new observations, in nats."""
        z = (y - self.mean) / self.std
        log_density = -0.5 * z.square() - self.std.log() - 0.5 * math.log(2 * math.pi)
        return (self.weights.log() + log_density).logsumexp(0)
