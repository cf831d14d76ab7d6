"""A fitted multiview model, for reports and queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import stdtrit

from scant.predictive import MixturePredictive, Predictive
from scant.studies.multiview import survival
from scant.studies.multiview.models import Learner
from scant.studies.multiview.partners import Average
from scant.studies.multiview.prepared import MeanVariance, Prepared, Told, moments


@dataclass(frozen=True)
class FittedMultiview:
    """A model of prepared rows, and the average of its predictions with other models'."""

    data: Prepared
    learner: Learner
    average: Average | None = None

    def told(self, x: Float[np.ndarray, "n f"], sources: bool = False) -> Told:
        """Predictive distributions on the scale of the model (see `Prepared.ask`)."""
        prediction = self.data.ask(self.learner, self.data.transforms, x, sources)
        return prediction if self.average is None else self.average.combine(x, prediction)

    def ask(self, x: Float[np.ndarray, "n f"]) -> MeanVariance:
        """Mean and variance of the target on the scale of the model."""
        return moments(self.told(x))

    def predictive(self, x: Float[np.ndarray, "n f"]) -> Predictive:
        """Predictive distributions in the table's unit; for survival, of the log time."""
        return self.data.predictive(self.told(x), self.threshold)

    @property
    def threshold(self) -> float:
        """Minimum probability of class 1 for the prediction of class 1."""
        return 0.5 if self.average is None else self.average.threshold

    def doubt(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Total uncertainty of rows, and the part that more data would remove.

        In nats for classes, as variances for values. Empty for models that do not separate the
        two.
        """
        if not len(x) or not self.learner.layered:
            return np.empty(0), np.empty(0)
        prediction = self.told(x, sources=True)
        if isinstance(prediction, MixturePredictive):
            return prediction.variance, prediction.model_variance
        assert prediction.information is not None
        return prediction.entropy, prediction.information

    def quantiles(
        self, x: Float[np.ndarray, "n f"], prediction: MixturePredictive
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return the quantile function of new values, on the scale of the model."""
        df = self.learner.tails(self.data.transforms.of(x[:1], self.data.device))
        if np.isinf(df) or self.average is not None:
            return prediction.quantile
        scale = prediction.std * np.sqrt((df - 2) / df)
        return lambda p: prediction.mean + stdtrit(df, p)[:, None] * scale

    def outside(self, x: Float[np.ndarray, "n f"]) -> Int[np.ndarray, " n"]:
        """1 if the features are outside the region of the training rows (`LearnedRegion`)."""
        return np.asarray(self.data.region.outside(self.data.joined(x)).astype(np.int64))

    def in_table_units(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "4 n"]:
        """Prediction, deviation and interval (see `Prepared.in_table_units`)."""
        return self.data.in_table_units(self.told(x))

    def hidden(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, "n v"], Float[np.ndarray, "n v"]]:
        """Means and standard deviations of the hidden neurons at some rows."""
        result = self.learner.hidden(self.data.transforms.of(x, self.data.device))
        mean, std = (values.detach().cpu().numpy() for values in result)
        return mean, std

    def lives(self) -> dict[str, np.ndarray]:
        """Held-out patients and their survival curves; empty for other tasks."""
        observed, test = self.data.observed, self.data.test
        if observed.task != "survival":
            return {**survival.no_curves(), **survival.nobody()}
        prediction = survival.patients(observed, test, *self.ask(observed.x[test]))
        return {**survival.curves(prediction), **prediction.arrays()}
