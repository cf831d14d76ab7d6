"""A mixture of methods' predictive distributions, whose weights come from left-out rows.

    p(y | x) = sum_k w_k p_k(y | x)

The weights maximize the density of rows that no method was trained on (Yao, Vehtari, Simpson and
Gelman 2018, Using stacking to average Bayesian predictive distributions), with a prior in rows. The
same rows correct the shape of each method's distributions and of the mixture
(`scant.ensemble.shape`). A row that a method does not answer (`Predictive.answered`) is left to the
others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np
from jaxtyping import Bool, Float, Int

from scant.ensemble import spread, stacking
from scant.ensemble.shape import P, Shape, Truth, log_density

LEFT_OUT = "training rows that were left out"


@dataclass(frozen=True)
class Ensemble(Generic[P]):
    """Weights of methods by name, and the shape of their mixture.

    Attributes:
        weights: Weight of each method, in the order in which tables list them; zero if dropped.
        shape: Correction of the mixture.
        method_shapes: Corrections of methods before they are mixed; others are mixed as they are.
    """

    weights: Mapping[str, float]
    shape: Shape[P]
    method_shapes: Mapping[str, Shape[P]] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        left_out: Mapping[str, P],
        y: Truth,
        shape: type[Shape[P]] = Shape,
        *,
        method_shape: type[Shape[P]] | None = None,
        x: Float[np.ndarray, "n d"] | None = None,
        bound: Bool[np.ndarray, " n"] | None = None,
        trivial: str | None = None,
        prior: float | Sequence[float] = stacking.PRIOR,
    ) -> Ensemble[P]:
        """Fit weights and shape to predictions of rows that no method was trained on.

        Args:
            left_out: Predictions of the same rows by each method.
            y: Values or classes of the rows.
            shape: How the mixture is corrected.
            method_shape: How methods, which all answer all rows, are corrected first; None: not.
            x: Standardized inputs of the rows, for shapes that depend on them.
            bound: Rows whose value is only known to be above y; None: there are none.
            trivial: Method that ignores the inputs (see `stacking.weights`).
            prior: Prior count of each method, in rows; a number or one per method.
        """
        names, shapes = list(left_out), dict[str, Shape[P]]()
        if method_shape is not None:
            one = np.ones(1)
            shapes = {n: method_shape.fit([p], one, y, x, bound) for n, p in left_out.items()}
            left_out = {n: shapes[n].combine([p], one, x) for n, p in left_out.items()}
        density = np.stack([log_density(each, y, bound) for each in left_out.values()], 1)
        at = None if trivial is None else names.index(trivial)
        result = stacking.weights(density, at, prior)
        mixed = cls.fit_shape(dict(zip(names, result.tolist())), left_out, y, shape, x, bound)
        return replace(mixed, method_shapes={name: shapes[name] for name in mixed.used if shapes})

    @classmethod
    def fit_best(
        cls,
        kinds: Sequence[tuple[type[Shape[P]], type[Shape[P]] | None]],
        left_out: Mapping[str, P],
        y: Truth,
        half: Int[np.ndarray, " n"],
        trivial: str | None = None,
        prior: float | Sequence[float] = stacking.PRIOR,
    ) -> Ensemble[P]:
        """Fit with the corrections under which one half of the rows predicts the other best.

        Args:
            kinds: Pairs of `shape` and `method_shape`; the first if there are too few rows to tell.
            left_out: Predictions of the same rows by each method.
            y: Values or classes of the rows.
            half: 0 or 1 for each row; predictions of one row in several folds have the same.
            trivial: Method that ignores the inputs (see `stacking.weights`).
            prior: Prior count of each method, in rows; a number or one per method.
        """
        halves = [np.flatnonzero(half == k) for k in (0, 1)]

        def fitted(kind: int, rows: np.ndarray) -> Ensemble[P]:
            shape, method_shape = kinds[kind]
            part = {name: each.rows(rows) for name, each in left_out.items()}
            return cls.fit(
                part, y[rows], shape, method_shape=method_shape, trivial=trivial, prior=prior
            )

        def score(kind: int) -> float:
            total = 0.0
            for rows, others in (halves, halves[::-1]):
                unseen = {name: each.rows(others) for name, each in left_out.items()}
                mixed = fitted(kind, rows).combine(unseen)
                total += float(log_density(mixed, y[others]).sum())
            return total

        few = min(map(len, halves)) < spread.MIN_ROWS
        return fitted(0 if few else max(range(len(kinds)), key=score), np.arange(len(y)))

    @classmethod
    def fit_shape(
        cls,
        weights: Mapping[str, float],
        left_out: Mapping[str, P],
        y: Truth,
        shape: type[Shape[P]] = Shape,
        x: Float[np.ndarray, "n d"] | None = None,
        bound: Bool[np.ndarray, " n"] | None = None,
    ) -> Ensemble[P]:
        """Correct the shape of a mixture with these weights; arguments as of `fit`."""
        positive: dict[str, float] = {name: weight for name, weight in weights.items() if weight}
        members = [left_out[name] for name in positive]
        return cls(weights, shape.fit(members, np.array([*positive.values()]), y, x, bound))

    @property
    def used(self) -> list[str]:
        """Names of the methods that have a weight."""
        return [name for name, weight in self.weights.items() if weight]

    def reindex(self, names: Sequence[str]) -> Ensemble[P]:
        """The same ensemble over these methods, in this order; new ones have weight zero."""
        return replace(self, weights={name: self.weights.get(name, 0.0) for name in names})

    def combine(
        self,
        predictions: Mapping[str, P],
        x: Float[np.ndarray, "n d"] | None = None,
        fallback: P | None = None,
    ) -> P:
        """Mix predictions of the same rows, by name; those of methods without weight are ignored.

        Args:
            predictions: Predictions by each of `used`.
            x: Standardized inputs of the rows, for shapes that depend on them.
            fallback: Predictions of the rows that none of these answers; None: there are none.
        """
        weights = np.array([self.weights[name] for name in self.used])
        mixed = self.shape.combine(
            [self._corrected(n, predictions[n], x) for n in self.used], weights, x
        )
        if fallback is None or mixed.answered.all():
            return mixed
        rows, rest = (np.flatnonzero(at) for at in (mixed.answered, ~mixed.answered))
        return type(mixed).gathered([(rows, mixed.rows(rows)), (rest, fallback.rows(rest))])

    def _corrected(self, name: str, prediction: P, x: Float[np.ndarray, "n d"] | None) -> P:
        shape = self.method_shapes.get(name)
        return prediction if shape is None else shape.combine([prediction], np.ones(1), x)

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        shapes = {name: shape.meta() for name, shape in self.method_shapes.items()}
        meta = {"weights": list(self.weights.values()), **self.shape.meta()}
        return {**meta, "method_shapes": shapes} if shapes else meta

    @classmethod
    def from_meta(
        cls,
        meta: Mapping[str, Any],
        names: Sequence[str],
        shape: type[Shape[P]] = Shape,
        method_shape: type[Shape[P]] = Shape,
    ) -> Ensemble[P]:
        """The inverse of `meta`, for methods of these names."""
        stored = meta.get("method_shapes", {})
        shapes = {name: method_shape.from_meta(of) for name, of in stored.items()}
        return cls(dict(zip(names, map(float, meta["weights"]))), shape.from_meta(meta), shapes)


def describe(ensemble: Ensemble[Any] | None, own: str, of: str = "Predictions") -> str:
    """Sentence on the methods that predict: `own` alone, or its average with others.

    Args:
        ensemble: Whose first method is `own`, by whatever name; None: there is no average.
        own: The study's own model.
        of: Averaged quantity, in the plural.
    """
    if ensemble is None:
        return sentence({own: 1.0})
    _, *others = ensemble.weights
    weights = dict(zip((own, *others), ensemble.weights.values()))
    return sentence(weights, LEFT_OUT, of)


def sentence(weights: Mapping[str, float], by: str = "", of: str = "Predictions") -> str:
    """Sentence on the methods that predict, with their weights.

    Args:
        weights: Weight of each method, by its name.
        by: Origin of the weights; "" if there is one method only.
        of: Predicted quantity, in the plural.
    """
    used = sorted(((w, name) for name, w in weights.items() if w), reverse=True)
    if len(used) == 1:
        return f"{of} come from {used[0][1]} alone{f', chosen by {by}' if by else ''}."
    parts = ", ".join(f"{name} {w:.2f}" for w, name in used)
    return (
        f"{of} are an average ({parts}), weighted by {by}; the average is not in the publication."
    )
