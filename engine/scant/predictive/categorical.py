"""Predictive distributions of classes, and of values that are 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from scant.predictive.base import Labels, Predictive, Rows, ValuePredictive, row_weights

LEAST_PROBABILITY = 1e-300  # lower bound of probabilities in scores, so logarithms stay finite


@dataclass(frozen=True)
class CategoricalPredictive(Predictive):
    """Probabilities of c classes for each of n rows.

    Args:
        probabilities: Shape (n, c); rows sum to one. NaN if a method only names a class; zeros
            in rows without a prediction.
        decision: Predicted class, if a threshold chooses it; None: the most probable one.
        information: Part of the entropy that more data would remove, in nats, if known.
        first: Class number of the first column, if the columns are the classes of the row's group
            (an alphabet); None: 0.
        threshold: Decision threshold on the probability of the rare class, if there is one.
    """

    probabilities: Float[ndarray, "n c"]
    decision: Int[ndarray, " n"] | None = None
    information: Rows | None = None
    first: Int[ndarray, " n"] | None = None
    threshold: float | None = None

    @classmethod
    def named(cls, label: Labels, classes: int) -> CategoricalPredictive:
        """Predictions of a method that returns class labels without probabilities."""
        return cls(np.full((len(label), classes), np.nan), label)

    @classmethod
    def mixed(
        cls, members: Sequence[CategoricalPredictive], weights: Float[ndarray, " m"]
    ) -> CategoricalPredictive:
        """Mixture of several models' predictions of the same rows.

        The mutual information, if all members have it, is between the class and the pair of member
        and its functions.

        Args:
            members: Predictions of the same classes; rows that a member does not predict are left
                to the others.
            weights: Weights of the members; they sum to one.
        """
        member_weights = row_weights(members, weights)
        mixed = cls(
            np.asarray(sum(w[:, None] * m.probabilities for w, m in zip(member_weights, members))),
            first=members[0].first,
        )
        if any(m.information is None for m in members):
            return mixed
        conditional = [m.entropy - np.asarray(m.information) for m in members]
        expected = np.asarray(sum(w * entropy for w, entropy in zip(member_weights, conditional)))
        return replace(mixed, information=np.maximum(mixed.entropy - expected, 0.0))

    def sharpened(self, power: float) -> CategoricalPredictive:
        """Raise probabilities to a power and renormalize; keep the conditional entropy."""
        powers = self.probabilities**power
        total = np.maximum(powers.sum(1, keepdims=True), LEAST_PROBABILITY)
        result = replace(self, probabilities=powers / total)
        if self.information is None:
            return result
        conditional = self.entropy - self.information
        return replace(result, information=np.maximum(result.entropy - conditional, 0.0))

    @property
    def answered(self) -> Bool[ndarray, " n"]:
        return np.asarray(self.probabilities.any(1))

    @property
    def point(self) -> Labels:
        """The predicted class."""
        return self.most_probable if self.decision is None else self.decision

    @property
    def most_probable(self) -> Labels:
        """The class with the highest probability."""
        best = self.probabilities.argmax(1)
        return best if self.first is None else best + self.first

    @property
    def confidence(self) -> Rows:
        """Probability of the most probable class."""
        return np.asarray(self.probabilities.max(1))

    @property
    def entropy(self) -> Rows:
        """Entropy of the probabilities, in nats."""
        p = self.probabilities
        return np.asarray(-(p * np.log(np.maximum(p, LEAST_PROBABILITY))).sum(1))

    def log_prob(self, y: Labels) -> Rows:
        """Log probability of the true classes, in nats."""
        column = y.astype(int) if self.first is None else y.astype(int) - self.first
        p = self.probabilities[np.arange(len(y)), column]
        return np.log(np.maximum(p, LEAST_PROBABILITY))


@dataclass(frozen=True)
class BernoulliPredictive(ValuePredictive):
    """Values of 0 or 1, scored as numbers; for two classes see `CategoricalPredictive`.

    Args:
        probability: Probability of 1.
    """

    probability: Rows

    @property
    def mean(self) -> Rows:
        return self.probability

    @property
    def variance(self) -> Rows:
        return self.probability * (1 - self.probability)

    def log_prob(self, y: Rows) -> Rows:
        p = np.where(y > 0.5, self.probability, 1 - self.probability)
        return np.log(np.maximum(p, LEAST_PROBABILITY))

    def cdf(self, y: Rows) -> Rows:
        return np.where(y < 0, 0.0, np.where(y < 1, 1 - self.probability, 1.0))

    def quantile(self, p: Float[ndarray, " q"]) -> Float[ndarray, "q n"]:
        return (p[:, None] > 1 - self.probability).astype(float)

    def sample(self, generator: np.random.Generator, count: int) -> Float[ndarray, "s n"]:
        return (generator.random((count, len(self))) < self.probability).astype(float)

    def crps(self, y: Rows) -> Rows:
        """Half of the Brier score over both values."""
        return (self.probability - y) ** 2
