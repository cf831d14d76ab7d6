"""Observations over boxes and polygons, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int


class Covariate(NamedTuple):
    """A column that enters linearly, with the mean and deviation that standardize it."""

    column: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class Supports:
    """Observations over boxes, as arrays in the order of the table's rows.

    Attributes:
        tasks: Names of the tasks, in order of first appearance.
        dims: Names of the input dimensions.
        task: Index into `tasks`.
        lo: Lower bounds, each in its dimension's unit.
        hi: Upper bounds; equal to `lo` at a point.
        y: Values; NaN in rows that are only predicted.
        y_err: Standard deviation of y's noise; NaN where unknown.
        exposure: Factor of a Poisson rate; 1 by default.
        truth: Noise-free values; NaN where unknown.
        test: Rows that are held out of training.
        inside: Points in the first two dimensions and their weights, of rows that are polygons
            with the bounds `lo` and `hi`; None where all rows are boxes or points.
        system: The projection to these two dimensions; "" where the table has no geometries.
        covariates: Standardized covariates, in the order of `named`.
        named: Columns of the covariates.
        labels: Label of each code in `y`, by task, for tasks with class labels.
        empty: Number of polygons without people inside, which are weighted by area.
    """

    tasks: tuple[str, ...]
    dims: tuple[str, ...]
    task: Int[np.ndarray, " n"]
    lo: Float[np.ndarray, "n d"]
    hi: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    y_err: Float[np.ndarray, " n"]
    exposure: Float[np.ndarray, " n"]
    truth: Float[np.ndarray, " n"]
    test: Bool[np.ndarray, " n"]
    inside: Float[np.ndarray, "n k 3"] | None = None
    system: str = ""
    covariates: Float[np.ndarray, "n p"] | None = None
    named: tuple[Covariate, ...] = ()
    empty: int = 0
    labels: Mapping[str, Mapping[float, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def width(self) -> Float[np.ndarray, "n d"]:
        """Widths of the boxes, zero at a point."""
        return self.hi - self.lo

    def is_task(self, name: str) -> Bool[np.ndarray, " n"]:
        """Mask of the rows of a task of `tasks`."""
        return np.asarray(self.task == self.tasks.index(name))

    def numbered(self, tasks: Sequence[str]) -> Int[np.ndarray, " n"]:
        """Index of each row's task in `tasks`; -1 for a task that is not in them."""
        numbers = [tasks.index(t) if t in tasks else -1 for t in self.tasks]
        return np.array(numbers, dtype=np.int64)[self.task]

    def at(self, rows: Int[np.ndarray, " m"], tasks: Sequence[str] | None = None) -> Supports:
        """Select rows; with `tasks`, which must contain all of theirs, renumber the tasks."""
        changes = {n: v[rows] for n, v in vars(self).items() if isinstance(v, np.ndarray)}
        if tasks is not None:
            changes |= {"tasks": tuple(tasks), "task": self.numbered(tasks)[rows]}
        return replace(self, **changes)
