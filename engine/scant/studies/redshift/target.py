"""The target of a redshift fit: its unit and the scale of the models."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.prediction import Components, GPzPrediction
from scant.predictive import MixturePredictive


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

    def predictive(
        self, moments: GPzPrediction, parts: Components | None = None
    ) -> MixturePredictive:
        """Distributions in the target's unit, of predictions on the scale of the models.

        Args:
            moments: For the sources of the variance.
            parts: The mixture with these moments; None: one Gaussian (or log-normal) a row.
        """
        mean, *sources = (v.cpu().numpy() for v in vars(moments).values())
        if parts is None:
            made = MixturePredictive.gaussian(mean, np.add.reduce(sources))
        else:
            weights, means, *variances = (v.cpu().numpy() for v in vars(parts).values())
            made = MixturePredictive(weights, means, np.add.reduce(variances))
        return made.with_sources(*sources).scaled(self.scale, self.centre, self.positive)

    def log_density(self, z: Float[Tensor, " n"], prediction: GPzPrediction) -> Float[Tensor, " n"]:
        """ln p(z), in nats, of a Gaussian (or log-normal) prediction."""
        away = (self.standardize(z) - prediction.mean).square() / prediction.variance
        scale = prediction.variance.log() + 2 * math.log(self.scale) + math.log(2 * math.pi)
        return -0.5 * (away + scale) - (z.log() if self.positive else 0.0)
