"""The interface of predictive distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

Rows = Float[ndarray, " n"]
Labels = Int[ndarray, " n"]
P = TypeVar("P", bound="Predictive")
Index = Int[ndarray, " r"] | Bool[ndarray, " n"] | slice


class Predictive(ABC):
    """Predictive distributions of n rows, in the unit of the table's target.

    Subclasses are frozen dataclasses. Their array fields have one entry (or one row) for each row
    of the table; the other fields apply to all rows.
    """

    def __len__(self) -> int:
        return len(next(iter(self._arrays().values())))

    def rows(self: P, index: Index) -> P:
        """Return the distributions of some of the rows."""
        return self._with({name: values[index] for name, values in self._arrays().items()})

    def like(self, other: Predictive) -> bool:
        """Return True if both have the same form, so that `concat` can join them."""
        return type(self) is type(other) and self._constants() == other._constants()

    @classmethod
    def concat(cls: type[P], parts: Sequence[P]) -> P:
        """Join the distributions of several blocks of rows of the same form, in their order."""
        assert all(parts[0].like(part) for part in parts), "these have forms of their own"
        columns = [part._arrays() for part in parts]
        names = list(columns[0])
        joined: dict[str, ndarray | None] = dict.fromkeys(names)
        for name in names:
            if all(name in c for c in columns):  # else unknown for some rows
                joined[name] = np.concatenate([c[name] for c in columns])
        return parts[0]._with(joined)

    @classmethod
    def gathered(cls: type[P], parts: Sequence[tuple[Int[ndarray, " _"], P]]) -> P:
        """Join the distributions of disjoint rows; each part comes with its row numbers."""
        nonempty = [(rows, part) for rows, part in parts if len(rows)]
        if len(nonempty) == 1:
            return nonempty[0][1]
        order = np.concatenate([rows for rows, _ in nonempty])
        return cls.concat([part for _, part in nonempty]).rows(np.argsort(order))

    @property
    def answered(self) -> Bool[ndarray, " n"]:
        """Rows for which the method gives a prediction."""
        return np.ones(len(self), dtype=bool)

    @property
    @abstractmethod
    def point(self) -> Float[ndarray, " n"] | Int[ndarray, " n"]:
        """Point prediction: the mean, or the predicted class."""

    @abstractmethod
    def log_prob(self, y: Any) -> Rows:
        """Log density (or log probability) of observed values, in nats."""

    def _arrays(self) -> dict[str, ndarray]:
        assert is_dataclass(self)
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: v for name, v in values.items() if isinstance(v, ndarray)}

    def _constants(self) -> dict[str, Any]:
        """Return the fields that apply to all rows."""
        assert is_dataclass(self)
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {n: v for n, v in values.items() if v is not None and not isinstance(v, ndarray)}

    def _with(self: P, arrays: dict[str, Any]) -> P:
        result: P = replace(self, **arrays)  # type: ignore[type-var]
        return result


def row_weights(
    members: Sequence[Predictive], weights: Float[ndarray, " m"]
) -> Float[ndarray, "m n"]:
    """Member weights for each row, normalized over the members that predict it."""
    masked = weights[:, None] * np.stack([m.answered for m in members])
    return np.asarray(masked / np.maximum(masked.sum(0), 1e-300))


class ValuePredictive(Predictive):
    """Predictive distributions of numbers.

    Attributes of every subclass: `mean`, `variance` and `std`, each of shape (n,).
    """

    @property
    @abstractmethod
    def mean(self) -> Rows:
        """Mean of each row."""

    @property
    @abstractmethod
    def variance(self) -> Rows:
        """Variance of a new observation of each row."""

    @property
    def std(self) -> Rows:
        """Standard deviation of a new observation of each row."""
        return np.sqrt(self.variance)

    @property
    def point(self) -> Rows:
        """The mean."""
        return self.mean

    @abstractmethod
    def cdf(self, y: Rows) -> Rows:
        """Probability of a value of at most y."""

    @abstractmethod
    def quantile(self, p: Float[ndarray, " q"]) -> Float[ndarray, "q n"]:
        """Quantiles of each row at the probabilities p."""

    @abstractmethod
    def sample(self, generator: np.random.Generator, count: int) -> Float[ndarray, "s n"]:
        """Draw `count` independent samples of each row."""

    @abstractmethod
    def crps(self, y: Rows) -> Rows:
        """Continuous ranked probability score (Gneiting & Raftery 2007, 21), in the unit of y."""

    def pit(self, y: Rows) -> Rows:
        """Probability integral transform: uniform where the distributions are calibrated."""
        return self.cdf(y)

    def interval(self, level: float) -> Float[ndarray, "2 n"]:
        """Lower and upper end of the central interval with probability `level`."""
        return self.quantile(np.array([0.5 - level / 2, 0.5 + level / 2]))
