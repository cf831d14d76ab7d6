"""The target of a redshift fit: its unit and the scale of the models."""

from __future__ import annotations

import math
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.prediction import GPzPrediction
from scant.predictive import MixturePredictive

# Upper bound of a component's standard deviation where the target is a logarithm, in deviations of
# the logarithms. The mean of a log-normal grows with the exponential of its variance: one row in
# 240 with components of 18 deviations had a mean of thousands, and an RMSE of 3.1 became 0.05.
MAX_LOG_STD = 2.0


class Target(NamedTuple):
    """Map from the target's unit to the standardized scale of the model, and back."""

    centre: float
    scale: float
    positive: bool

    @classmethod
    def fit(cls, z: Float[Tensor, " n"], positive: bool) -> Target:
        """Take mean and deviation of the target, or of its logarithm (3.13)."""
        z = z.log() if positive else z
        scale = float(z.std())
        return cls(float(z.mean()), scale if scale > 0 else 1.0, positive)

    def standardize(self, z: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        return ((z.log() if self.positive else z) - self.centre) / self.scale

    def restore(self, standardized: MixturePredictive) -> MixturePredictive:
        """Distributions in the target's unit."""
        if self.positive:
            standardized = standardized.limited(MAX_LOG_STD)
        return standardized.scaled(self.scale, self.centre, self.positive)

    def log_density(self, z: Float[Tensor, " n"], prediction: GPzPrediction) -> Float[Tensor, " n"]:
        """ln p(z), in nats, of a Gaussian (or log-normal) prediction."""
        z_squared = (self.standardize(z) - prediction.mean).square() / prediction.variance
        log_scale = prediction.variance.log() + 2 * math.log(self.scale) + math.log(2 * math.pi)
        return -0.5 * (z_squared + log_scale) - (z.log() if self.positive else 0.0)
