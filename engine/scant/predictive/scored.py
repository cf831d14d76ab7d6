"""Predictions of rows with their true values, and scores per row."""

from __future__ import annotations

from functools import cached_property
from math import inf

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive, ValuePredictive
from scant.predictive.mixture_scores import Scores

Rows = Float[ndarray, " t"]
CACHED = ("value", "log_density", "crps", "cde", "pit", "confidence", "correct")


class Scored:
    """Components of each row's scores, computed on first access.

    Scores that need a density (or probabilities) are NaN for methods without one.

    Args:
        y: True values.
        predictive: Predictions of the same rows.
        late: Rows whose value is only known to be above y (`scant.inference.censored`).
        horizon: Upper limit of these values in `value`.
    """

    def __init__(
        self,
        y: ndarray,
        predictive: Predictive,
        late: Bool[ndarray, " t"] | None = None,
        horizon: float = inf,
    ) -> None:
        self.y, self.predictive, self.late, self.horizon = y, predictive, late, horizon

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, index: ndarray | slice) -> Scored:
        """Return the scores of some of the rows."""
        late = None if self.late is None else self.late[index]
        result = Scored(self.y[index], self.predictive.rows(index), late, self.horizon)
        result.__dict__.update({n: self.__dict__[n][index] for n in CACHED if n in self.__dict__})
        return result

    @cached_property
    def dense(self) -> bool:
        """True if the method has a density, or class probabilities."""
        if isinstance(self.predictive, CategoricalPredictive):
            return not np.isnan(self.predictive.probabilities).any()
        assert isinstance(self.predictive, ValuePredictive)
        return not np.isnan(self.predictive.variance).any()

    @cached_property
    def value(self) -> ndarray:
        """Mean (restricted to the horizon if values are bounded), or the predicted class."""
        if self.late is not None and isinstance(self.predictive, MixturePredictive) and self.dense:
            return self.predictive.restricted_mean(self.horizon)
        return self.predictive.point

    @cached_property
    def log_density(self) -> Rows:
        """Log density or log probability of the truth, in nats."""
        if not self.dense:
            return self._nothing
        if self.late is not None:
            assert isinstance(self.predictive, MixturePredictive), "only these take bounds"
            return self.predictive.log_prob(self.y, self.late)
        return self.predictive.log_prob(self.y)

    @cached_property
    def crps(self) -> Rows:
        """CRPS, in the unit of the values."""
        if isinstance(self.predictive, MixturePredictive) and self.dense:
            return self._pairs.crps
        return self._values.crps(self.y) if self.dense else self._nothing

    @cached_property
    def cde(self) -> Rows:
        """CDE loss, in the inverse unit of the values."""
        return self._pairs.cde if self.dense else self._nothing

    @cached_property
    def pit(self) -> Rows:
        """Probability integral transform."""
        return self._values.pit(self.y) if self.dense else self._nothing

    @cached_property
    def confidence(self) -> Rows:
        """Probability of the most probable class."""
        return self.classes.confidence if self.dense else self._nothing

    @cached_property
    def correct(self) -> Rows:
        """1 if the most probable class is the true one, else 0."""
        return (self.classes.most_probable == self.y).astype(float)

    @property
    def classes(self) -> CategoricalPredictive:
        """Probabilities of classes."""
        assert isinstance(self.predictive, CategoricalPredictive)
        return self.predictive

    @cached_property
    def _pairs(self) -> Scores:
        """CRPS and CDE loss together: both are sums over the same pairs of components."""
        assert isinstance(self.predictive, MixturePredictive)
        return self.predictive.scores(self.y)

    @property
    def _values(self) -> ValuePredictive:
        assert isinstance(self.predictive, ValuePredictive)
        return self.predictive

    @property
    def _nothing(self) -> Rows:
        return np.full(len(self.y), np.nan)
