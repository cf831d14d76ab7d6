"""The target of a redshift fit: its unit and the scale of the models."""

from __future__ import annotations

import math
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.prediction import GPzPrediction
from scant.models.gpz.weights import positive_moments


class Located(GPzPrediction):
    """A prediction that can be moved to the CPU."""

    def cpu(self) -> Located:
        """The same numbers, where NumPy can read them."""
        return Located(
            self.mean.cpu(),
            self.model_variance.cpu(),
            self.noise_variance.cpu(),
            self.input_variance.cpu(),
        )


class Target(NamedTuple):
    """From the target's own unit to the standardized scale of the model, and back."""

    centre: float
    scale: float
    positive: bool

    @classmethod
    def fit(cls, z: Float[Tensor, " n"], positive: bool) -> Target:
        """Mean and deviation of the target, or of its logarithm (3.13)."""
        z = z.log() if positive else z
        scale = float(z.std())
        return cls(float(z.mean()), scale if scale > 0 else 1.0, positive)

    def standardize(self, z: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        return ((z.log() if self.positive else z) - self.centre) / self.scale

    def restore(self, prediction: GPzPrediction) -> Located:
        """A prediction in the target's unit; log-normal variances keep their parts' proportions."""
        mean = prediction.mean * self.scale + self.centre
        parts = [
            part * self.scale**2
            for part in (
                prediction.model_variance,
                prediction.noise_variance,
                prediction.input_variance,
            )
        ]
        if self.positive:
            whole = parts[0] + parts[1] + parts[2]
            moments = positive_moments(mean, whole)
            parts = [part * moments.variance / whole for part in parts]
            mean = moments.mean
        return Located(mean, *parts)

    def log_density(self, z: Float[Tensor, " n"], prediction: GPzPrediction) -> Float[Tensor, " n"]:
        """ln p(z), in nats, of a Gaussian (or log-normal) prediction."""
        away = (self.standardize(z) - prediction.mean).square() / prediction.variance
        scale = prediction.variance.log() + 2 * math.log(self.scale) + math.log(2 * math.pi)
        return -0.5 * (away + scale) - (z.log() if self.positive else 0.0)
