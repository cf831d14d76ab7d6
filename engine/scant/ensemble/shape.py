"""Corrections of a mixture's shape by rows that were left out.

Members that are each calibrated have a mixture that is not: classes come out too unsure, values
with tails of another weight. Each correction has few parameters, found by maximum a posteriori.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize_scalar

from scant.ensemble import spread, stacking
from scant.predictive import CategoricalPredictive, MixturePredictive

P = TypeVar("P", MixturePredictive, CategoricalPredictive)
Rows = Float[np.ndarray, " n"]
Truth = Float[np.ndarray, " n"] | Int[np.ndarray, " n"]  # values, or numbers of classes
Weights = Float[np.ndarray, " k"]
Inputs = Float[np.ndarray, "n d"] | None
Bounds = Bool[np.ndarray, " n"] | None

LOG_POWER_STD = 0.5  # prior standard deviation of the logarithm of the power
SCALES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # factors of the standard deviations
UNCHANGED = SCALES.index(1.0)
GAUSSIAN = 10.0  # rows for which the deviations count as right from the start
RARE = 0.001  # weight below which a scale is left out
# Prior standard deviation of the constant and of the slope of a contraction's log factor. Of a
# constant alone, 0.1 cost up to .0036 nats on 235 to 1,000 rows (diabetes, Friedman's function),
# 0.05 up to .0016; thousands of rows outweigh either.
CONTRACTION_STD = 0.05
MIN_SPREAD = 1e-12  # of a standardized value
SAME_SPREAD = 0.01  # deviation of log spreads up to which they count as equal


def log_density(prediction: P, y: Truth, bound: Bounds = None) -> Rows:
    """Log density of rows; of a value that is only a bound, the log probability beyond it."""
    if bound is None:
        return prediction.log_prob(y)
    assert isinstance(prediction, MixturePredictive)
    return prediction.log_prob(y, bound)


@dataclass(frozen=True)
class Shape(Generic[P]):
    """The plain mixture of the members; other shapes correct it."""

    @classmethod
    def fit(
        cls, members: Sequence[P], weights: Weights, y: Truth, x: Inputs, bound: Bounds
    ) -> Shape[P]:
        """Find the parameters by left-out rows (arguments: see `Ensemble.fit`)."""
        return cls()

    def combine(self, members: Sequence[P], weights: Weights, x: Inputs = None) -> P:
        """Mix the members' predictions of the same rows."""
        return type(members[0]).mixed(members, weights)

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        return {}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Shape[P]:
        """The inverse of `meta`."""
        return cls()


Values = Sequence[MixturePredictive]
Classes = Sequence[CategoricalPredictive]


@dataclass(frozen=True)
class Sharpened(Shape[CategoricalPredictive]):
    """Mixed class probabilities raised to a power and renormalized.

    An average of calibrated methods is underconfident; a power above one corrects it.
    """

    power: float

    @classmethod
    def fit(
        cls, members: Classes, weights: Weights, y: Truth, x: Inputs, bound: Bounds
    ) -> Sharpened:
        plain = CategoricalPredictive.mixed(members, weights)

        def cost(log: float) -> float:
            likelihood = plain.sharpened(float(np.exp(log))).log_prob(y)
            return float(log**2 / (2 * LOG_POWER_STD**2) - likelihood.sum())

        result = minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded").x
        return cls(float(np.exp(result)))

    def combine(
        self, members: Classes, weights: Weights, x: Inputs = None
    ) -> CategoricalPredictive:
        return CategoricalPredictive.mixed(members, weights).sharpened(self.power)

    def meta(self) -> dict[str, Any]:
        return {"power": self.power}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Sharpened:
        return cls(float(meta["power"]))


@dataclass(frozen=True)
class Contracted(Shape[MixturePredictive]):
    """Each row's deviations from its mean, multiplied by a log-linear function of their spread.

    A mixture of calibrated members is too wide (Gneiting and Ranjan 2013, Combining predictive
    distributions). Their spread-adjusted pool narrows each member about its own median; here the
    means, which disagree, move to the mixture's mean as well. Predicted spreads also vary less from
    row to row than errors do, which the slope corrects. Rows without a prediction by some member
    stay as they are.

    Attributes:
        coefficients: Constant and slope (`scant.ensemble.spread`); none: a factor of one.
        scale: Mean and deviation of the log spreads of left-out rows, which standardize others.
    """

    coefficients: tuple[float, ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def fit(
        cls, members: Values, weights: Weights, y: Truth, x: Inputs, bound: Bounds
    ) -> Contracted:
        plain = MixturePredictive.mixed(members, weights)
        spreads = _log_spread(plain)
        width = float(spreads.std())
        made = cls(scale=(float(spreads.mean()), width if width > SAME_SPREAD else 1.0))

        def of_factor(factor: Rows) -> Rows:
            return log_density(plain.contracted(factor), y, bound)

        prior = np.full(2, 2 * CONTRACTION_STD)  # of the variance's factor
        result = spread.fitted(of_factor, made._features(plain), prior)
        return replace(made, coefficients=tuple(result.tolist()))

    def combine(self, members: Values, weights: Weights, x: Inputs = None) -> MixturePredictive:
        plain = MixturePredictive.mixed(members, weights)
        if not any(self.coefficients):
            return plain
        answered = np.logical_and.reduce([m.answered for m in members])
        factor = spread.factor(np.array(self.coefficients), self._features(plain))
        return plain.contracted(np.where(answered, factor, 1.0))

    def _features(self, plain: MixturePredictive) -> Float[np.ndarray, "n 2"]:
        center, width = self.scale
        return spread.features((_log_spread(plain) - center) / width, np.empty((len(plain), 0)))

    def meta(self) -> dict[str, Any]:
        return {"contraction": list(self.coefficients), "log_spread": list(self.scale)}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Contracted:
        if factor := meta.get("spread_factor"):  # older runs have a constant
            return cls((2 * float(np.log(factor)), 0.0))
        center, width = meta.get("log_spread", (0.0, 1.0))
        return cls(tuple(meta.get("contraction", ())), (center, width))


def _log_spread(prediction: MixturePredictive) -> Rows:
    return np.asarray(np.log(np.maximum(prediction.variance, MIN_SPREAD**2)) / 2)


@dataclass(frozen=True)
class Rescaled(Shape[MixturePredictive]):
    """Each Gaussian as a mixture of narrower and wider ones, and the whole contracted.

    The scales give heavier tails and a sharper middle. Rows without a prediction by some member
    stay as they are.

    Attributes:
        scales: Weights of `SCALES`.
        contraction: Contraction of the result.
    """

    scales: tuple[float, ...] = tuple(np.eye(len(SCALES))[UNCHANGED].tolist())
    contraction: Contracted = Contracted()

    @classmethod
    def fit(cls, members: Values, weights: Weights, y: Truth, x: Inputs, bound: Bounds) -> Rescaled:
        plain = MixturePredictive.mixed(members, weights)
        of_scale = [
            log_density(plain.widened(np.full(len(y), scale)), y, bound) for scale in SCALES
        ]
        prior = GAUSSIAN * np.eye(len(SCALES))[UNCHANGED]
        result = stacking.weights(np.stack(of_scale, 1), prior=prior, min_weight=RARE)
        made = cls(tuple(result.tolist()))
        contraction = Contracted.fit(made._scaled(members), weights, y, x, bound)
        return replace(made, contraction=contraction)

    def combine(self, members: Values, weights: Weights, x: Inputs = None) -> MixturePredictive:
        return self.contraction.combine(self._scaled(members), weights)

    def _scaled(self, members: Values) -> Values:
        """Rescale before the mixture, so that disagreement of the members is not rescaled."""
        answered = np.logical_and.reduce([m.answered for m in members])
        used = [k for k, w in enumerate(self.scales) if w or k == UNCHANGED]
        shares = np.where(answered[:, None], np.take(self.scales, used), np.equal(used, UNCHANGED))
        return [m.rescaled(np.take(SCALES, used), shares) for m in members]

    def meta(self) -> dict[str, Any]:
        return {"scales": list(self.scales), **self.contraction.meta()}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Rescaled:
        scales = meta.get("scales") or meta.get("shape") or cls().scales  # older runs: "shape"
        return cls(tuple(scales), Contracted.from_meta(meta))


@dataclass(frozen=True)
class Widened(Shape[MixturePredictive]):
    """Standard deviations multiplied by a log-linear function of the level and the inputs.

    Rows without a prediction by some member keep their standard deviations.

    Attributes:
        coefficients: See `scant.ensemble.spread`; of a constant alone where there were no inputs.
        scale: Mean and deviation of the left-out values, which standardize a row's level.
    """

    coefficients: tuple[float, ...]
    scale: tuple[float, float] = (0.0, 1.0)

    @property
    def changes(self) -> bool:
        """Whether any deviation is changed."""
        return any(self.coefficients)

    @classmethod
    def fit(cls, members: Values, weights: Weights, y: Truth, x: Inputs, bound: Bounds) -> Widened:
        plain = MixturePredictive.mixed(members, weights)
        made = cls((), (float(y.mean()), float(y.std()) or 1.0))

        def of_factor(factor: Rows) -> Rows:
            return log_density(plain.widened(factor), y, bound)

        result = spread.fitted(of_factor, made._features(plain.location, x))
        return replace(made, coefficients=tuple(result.tolist()))

    def combine(self, members: Values, weights: Weights, x: Inputs = None) -> MixturePredictive:
        plain = MixturePredictive.mixed(members, weights)
        if not self.changes:
            return plain
        answered = np.logical_and.reduce([m.answered for m in members])
        features = self._features(plain.location, x)
        factor = np.where(answered, spread.factor(np.array(self.coefficients), features), 1.0)
        # Before the mixture, so that disagreement of the members is not widened.
        return MixturePredictive.mixed([m.widened(factor) for m in members], weights)

    def _features(self, level: Rows, x: Inputs) -> Float[np.ndarray, "n f"]:
        if x is None:
            return np.ones((len(level), 1))
        centre, width = self.scale
        return spread.features((level - centre) / width, x)

    def meta(self) -> dict[str, Any]:
        return {"widths": list(self.coefficients), "scale": list(self.scale)}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Widened:
        centre, width = meta.get("scale", (0.0, 1.0))
        return cls(tuple(meta.get("widths", ())), (centre, width))
