"""Predictions of GPz: moments, variance by source, and mixture components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.predictive import MixturePredictive


@dataclass(frozen=True)
class GPzPrediction:
    """Predictive mean and the three parts of the predictive variance, one entry per row.

    Attributes:
        mean: E[f(x)].
        model_variance: E[nu^2(x)], reducible by more training data (3.12, 5.13).
        noise_variance: E[1 / beta(x)], reducible by better features (5.17).
        input_variance: V[f(x)] due to noisy or missing inputs (5.10); zero for exact inputs.
    """

    mean: Float[Tensor, " n"]
    model_variance: Float[Tensor, " n"]
    noise_variance: Float[Tensor, " n"]
    input_variance: Float[Tensor, " n"]

    @classmethod
    def join(cls, parts: Sequence[GPzPrediction]) -> GPzPrediction:
        """Concatenate the predictions of blocks of rows."""
        names = [f.name for f in fields(cls)]
        return cls(**{name: torch.cat([getattr(p, name) for p in parts]) for name in names})

    @property
    def variance(self) -> Float[Tensor, " n"]:
        """Variance of a new target: the sum of the three parts (5.19)."""
        return self.model_variance + self.noise_variance + self.input_variance  # (5.19)

    def components(self) -> Components:
        """Mixtures of one component."""
        one = torch.ones_like(self.mean)
        return Components(*(v.unsqueeze(1) for v in (one, *vars(self).values())))

    def predictive(self) -> MixturePredictive:
        """Gaussians with these moments."""
        return self.components().predictive()


@dataclass(frozen=True)
class Components:
    """Predictions given each of k components of the inputs' density; weights sum to one per row.

    Rows without missing values have all weight on the first component. Entries of components
    without weight are zero.
    """

    weights: Float[Tensor, "n k"]
    mean: Float[Tensor, "n k"]
    model_variance: Float[Tensor, "n k"]
    noise_variance: Float[Tensor, "n k"]
    input_variance: Float[Tensor, "n k"]

    def joined(self, complete: GPzPrediction, incomplete: Bool[Tensor, " n"]) -> Components:
        """Insert predictions of rows without missing values; these are of the `incomplete` rows."""
        parts = []
        for own, other in zip(vars(self).values(), vars(complete.components()).values()):
            part = own.new_zeros(len(incomplete), own.shape[1])
            part[incomplete], part[~incomplete, :1] = own, other
            parts.append(part)
        return Components(*parts)

    def collapse(self) -> GPzPrediction:
        """Moments of the mixture (law of total variance)."""
        w = self.weights
        mean = (w * self.mean).sum(1)
        between = (self.mean - mean.unsqueeze(1)).square()
        return GPzPrediction(
            mean,
            (w * self.model_variance).sum(1),
            (w * self.noise_variance).sum(1),
            (w * (self.input_variance + between)).sum(1),
        )

    def predictive(self) -> MixturePredictive:
        """The mixtures as arrays."""
        weights, means, *variances = (v.cpu().numpy() for v in vars(self).values())
        _, *sources = (v.cpu().numpy() for v in vars(self.collapse()).values())
        return MixturePredictive(weights, means, np.add.reduce(variances)).with_sources(*sources)

    def density(self, grid: Float[Tensor, " g"]) -> Float[Tensor, "n g"]:
        """p(y | observed inputs) on a grid: a mixture of one Gaussian per component."""
        variance = self.model_variance + self.noise_variance + self.input_variance
        density = self.weights.new_zeros(len(self.weights), len(grid))
        used = (self.weights > 0).any(0).nonzero().squeeze(1).tolist()
        for k in used:  # n x g elements at a time
            rows = (self.weights[:, k] > 0).nonzero().squeeze(1)
            spread = variance[rows, k].unsqueeze(1)
            square = (grid - self.mean[rows, k].unsqueeze(1)).square() / spread
            peak = self.weights[rows, k].unsqueeze(1) / (2 * math.pi * spread).sqrt()
            density[rows] += peak * torch.exp(-0.5 * square)
        return density
