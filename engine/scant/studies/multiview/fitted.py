"""A model that has learned from the rows of a table: what reports and answers are made from."""

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
    """A model of prepared rows, and what its predictions are averaged with."""

    data: Prepared
    learner: Learner
    average: Average | None = None

    def told(self, x: Float[np.ndarray, "n f"], sources: bool = False) -> Told:
        """Distributions of the target on the scale on which it is learned (see `Prepared.ask`)."""
        own = self.data.ask(self.learner, self.data.transforms, x, sources)
        return own if self.average is None else self.average.combine(x, own)

    def ask(self, x: Float[np.ndarray, "n f"]) -> MeanVariance:
        """Mean and variance of the target on the scale on which it is learned."""
        return moments(self.told(x))

    def predictive(self, x: Float[np.ndarray, "n f"]) -> Predictive:
        """Distributions of the target in the table's unit; of survival, of the log time."""
        return self.data.predictive(self.told(x), self.threshold)

    @property
    def threshold(self) -> float:
        """On the probability of class 1, from which a row is of it."""
        return 0.5 if self.average is None else self.average.threshold

    def doubt(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """How unsure the model is of rows, and how much of it more data would remove.

        Of classes in nats, of values as variances. Nothing of a model that does not tell the two
        apart.
        """
        if not len(x) or not self.learner.layered:
            return np.empty(0), np.empty(0)
        told = self.told(x, sources=True)
        if isinstance(told, MixturePredictive):
            return told.variance, told.model_variance
        assert told.information is not None
        return told.entropy, told.information

    def quantiles(
        self, x: Float[np.ndarray, "n f"], told: MixturePredictive
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Quantiles of a new value, on the scale on which it is learned, from probabilities."""
        df = self.learner.tails(self.data.transforms.of(x[:1], self.data.device))
        if np.isinf(df) or self.average is not None:
            return told.quantile
        scale = told.std * np.sqrt((df - 2) / df)
        return lambda p: told.mean + stdtrit(df, p)[:, None] * scale

    def outside(self, x: Float[np.ndarray, "n f"]) -> Int[np.ndarray, " n"]:
        """1 where the features are unlike those of the learned rows (`LearnedRegion`)."""
        return np.asarray(self.data.region.outside(self.data.joined(x)).astype(np.int64))

    def in_table_units(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "4 n"]:
        """Prediction, deviation and interval (see `Prepared.in_table_units`)."""
        return self.data.in_table_units(self.told(x))

    def hidden(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, "n v"], Float[np.ndarray, "n v"]]:
        """Means and deviations of the hidden neurons at some rows."""
        result = self.learner.hidden(self.data.transforms.of(x, self.data.device))
        mean, std = (values.detach().cpu().numpy() for values in result)
        return mean, std

    def lives(self) -> dict[str, np.ndarray]:
        """The held-out patients and their survival curves; empty where no survival is learned."""
        observed, test = self.data.observed, self.data.test
        if observed.task != "survival":
            return {**survival.no_curves(), **survival.nobody()}
        prediction = survival.patients(observed, test, *self.ask(observed.x[test]))
        return {**survival.curves(prediction), **prediction.arrays()}
