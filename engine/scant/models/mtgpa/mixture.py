"""Predictive distributions that are mixtures of a few Gaussians per support."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.mtgpa.observing import MTGPAPrediction
from scant.predictive import MixturePredictive


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

    def predictive(self) -> MixturePredictive:
        """New observations, with the sources of their variance."""
        columns = (self.weights, self.mean, self.variance + self.noise)
        weights, means, variances = (c.T.cpu().numpy() for c in columns)
        moments = self.moments()
        model, noise = (v.cpu().numpy() for v in (moments.variance, moments.noise))
        return MixturePredictive(weights, means, variances).with_sources(model, noise)

    def log_prob(self, y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Log densities of new observations, in nats."""
        z = (y - self.mean) / self.std
        log_density = -0.5 * z.square() - self.std.log() - 0.5 * math.log(2 * math.pi)
        return (self.weights.log() + log_density).logsumexp(0)
