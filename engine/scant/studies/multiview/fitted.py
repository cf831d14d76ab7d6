"""A model that has learned from the rows of a table: what reports and answers are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import entr, stdtrit

from scant.predictive import MixturePredictive, Predictive
from scant.studies.multiview import splits as rows
from scant.studies.multiview import survival
from scant.studies.multiview.models import Learner
from scant.studies.multiview.prepared import MeanVariance, Prepared
from scant.studies.multiview.stack import Stack


@dataclass(frozen=True)
class FittedMultiview:
    """A model of prepared rows, and what its predictions are averaged with."""

    data: Prepared
    learner: Learner
    stack: Stack | None = None

    def ask(self, x: Float[np.ndarray, "n f"]) -> MeanVariance:
        """Mean and variance of the target on the scale on which it is learned."""
        told = self.data.ask(self.learner, self.data.transforms, x)
        return told if self.stack is None else self.stack.mixed(x, told)

    def predictive(self, x: Float[np.ndarray, "n f"]) -> Predictive:
        """Distributions of the target in the table's unit; of survival, of the log time."""
        return self.data.predictive(self.ask(x), self.threshold)

    @property
    def threshold(self) -> float:
        """On the probability of class 1, from which a row is of it."""
        return 0.5 if self.stack is None else self.stack.threshold

    def doubt(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """How unsure the model is of rows, and how much of it more data would remove.

        Nothing of a model that does not tell (`Learner.doubt`).
        """
        result = (
            self.learner.doubt(self.data.transforms.of(x, self.data.device)) if len(x) else None
        )
        if result is None:
            return np.empty(0), np.empty(0)
        whole, part = (values.cpu().numpy() for values in result)
        if self.stack is None:
            return whole, part
        mean, variance = self.ask(x)
        if self.data.observed.task != "classification":
            return variance, self.removable(x) * variance
        entropy = entr(mean) + entr(1 - mean)
        own, others = self.stack.weights[0], self.stack.members.ask(x)[0]
        alone = np.tensordot(self.stack.weights[1:], entr(others) + entr(1 - others), 1)
        return entropy, np.maximum(entropy - own * (whole - part) - alone, 0.0)

    def quantiles(
        self, x: Float[np.ndarray, "n f"], mean: np.ndarray, std: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Quantiles of a new value, on the scale on which it is learned, from probabilities."""
        df = self.learner.tails(self.data.transforms.of(x[:1], self.data.device))
        if np.isinf(df) or self.stack is not None:
            return MixturePredictive.gaussian(mean, std**2).quantile
        scale = std * np.sqrt((df - 2) / df)
        return lambda p: mean + stdtrit(df, p)[:, None] * scale

    def removable(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, " n"]:
        """Share of the variance of a new value that more data would remove."""
        views = self.data.transforms.of(x, self.data.device)
        share = np.asarray(self.learner.removable(views).cpu().numpy())
        if self.stack is None:
            return share
        variance = self.data.ask(self.learner, self.data.transforms, x)[1]
        known = self.stack.known(x, (1 - share) * variance)
        return np.clip(1 - known / self.ask(x)[1], 0.0, 1.0)

    def outside(self, x: Float[np.ndarray, "n f"]) -> Int[np.ndarray, " n"]:
        """1 where the features are unlike those of the learned rows (`LearnedRegion`)."""
        return np.asarray(self.data.region.outside(self.data.joined(x)).astype(np.int64))

    def in_table_units(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "4 n"]:
        """Prediction, deviation and interval in the table's unit (see `splits.in_table_units`)."""
        return rows.in_table_units(self.data.settings, self.data.observed.task, *self.ask(x))

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
