"""A supervised problem: training rows, held-out rows, and the roles of columns and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from scant.inference import censored
from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.predictive.scored import Scored


@dataclass(frozen=True)
class Problem:
    """One supervised problem as a matrix.

    Attributes:
        x: Training rows; NaN where a value is missing.
        y: Values or class indices of the training rows.
        x_test: Held-out rows.
        y_test: Values or class indices of the held-out rows.
        scores: Names from `SCORES` that the study's report uses.
        classes: Number of classes; 0 for values.
        rare: Class that F1 and average precision refer to; None: all, weighted by their rows.
        images: True if the columns are pixels or components of them.
        part: Separate problem (an alphabet) that each training row belongs to; None: one problem.
        part_test: The same for each held-out row.
        replaces: True if general tools replace the report's own baselines, which are of the same
            kinds; else tools that bear a baseline's name are not fitted.
        shown: Number of held-out rows of the run's own split, which come first and which the
            report's table shows; the others are of further folds. 0: there are none.
        late: True where a training value is only a lower bound (`scant.inference.censored`); None:
            no value is.
        late_test: The same for the held-out rows.
        note: A sentence on the comparison with general tools.
        by: Name of the values if verdicts are given by bins of them, too; else "".
        blocks: Index of the group of columns that are missing together, for each column; -1 for
            columns that are never missing. Held-out rows with gaps are then predicted by a fit to
            rows with such gaps.
        contrasts: Coefficients of linear combinations of the columns, such as colors of
            magnitudes, which tree methods get as further columns; None: there are none.
        views: Index of the view of each column; None: columns are in no views.
        spared: True for training rows that the study's methods calibrate with and do not fit to;
            None: there are none. General tools fit to all rows.
    """

    x: Float[ndarray, "n d"]
    y: Float[ndarray, " n"] | Int[ndarray, " n"]
    x_test: Float[ndarray, "t d"]
    y_test: Float[ndarray, " t"] | Int[ndarray, " t"]
    scores: tuple[str, ...]
    classes: int = 0
    rare: int | None = None
    images: bool = False
    part: Int[ndarray, " n"] | None = None
    part_test: Int[ndarray, " t"] | None = None
    replaces: bool = False
    shown: int = 0
    late: Bool[ndarray, " n"] | None = None
    late_test: Bool[ndarray, " t"] | None = None
    note: str = ""
    by: str = ""
    blocks: Int[ndarray, " d"] | None = None
    contrasts: Float[ndarray, "k d"] | None = None
    views: Int[ndarray, " d"] | None = None
    spared: Bool[ndarray, " n"] | None = None

    @property
    def table_rows(self) -> Int[ndarray, " s"]:
        """Indices of the held-out rows of the run's own split."""
        return np.arange(self.shown or len(self.y_test))

    def learning_from(self, rows: Int[ndarray, " m"] | Bool[ndarray, " n"] | slice) -> Problem:
        """Return the same problem with some of the training rows."""
        roles = {name: getattr(self, name) for name in ("x", "y", "part", "late", "spared")}
        return replace(self, **{n: v[rows] for n, v in roles.items() if v is not None})

    def trivial(self) -> Predictive:
        """Predictions that ignore the inputs: mean and variance, or frequencies of the classes."""
        if not self.classes:
            mean, variance = float(np.mean(self.y)), max(float(np.var(self.y)), 1e-24)
            if self.late is not None:
                mean, variance, *_ = censored.uncensored(self.y, self.late)
            rows = np.ones(len(self.y_test))
            return MixturePredictive.gaussian(mean * rows, variance * rows)
        share = np.zeros((len(self.y_test), self.classes))
        for _, rows, query in self.parts():
            counts = np.bincount(self.y[rows].astype(int), minlength=self.classes)
            share[query] = counts / counts.sum()
        return CategoricalPredictive(share)

    @cached_property
    def observation(self) -> tuple[float, Float[ndarray, " t"]]:
        """Horizon of bounded values, and weights of the held-out rows' errors up to it."""
        assert self.late is not None
        assert self.late_test is not None
        y, late = np.append(self.y, self.y_test), np.append(self.late, self.late_test)
        horizon, weight = censored.observation(y, late)
        return horizon, weight[len(self.y) :]

    def scored(self, predictive: Predictive) -> Scored:
        """Compare predictions of the held-out rows with their truth."""
        late = self.late_test
        horizon = inf if late is None else self.observation[0]
        return Scored(self.y_test, predictive, late, horizon)

    def parts(self) -> list[tuple[int, Int[ndarray, " m"], Int[ndarray, " q"]]]:
        """Index, training rows and held-out rows of each part."""
        if self.part is None or self.part_test is None:
            return [(0, np.arange(len(self.y)), np.arange(len(self.y_test)))]
        return [
            (int(p), np.flatnonzero(self.part == p), np.flatnonzero(self.part_test == p))
            for p in np.unique(self.part_test)
        ]


@dataclass(frozen=True)
class Comparison:
    """A run's predictions for a problem.

    Attributes:
        problem: The problem.
        own: The run's predictions of the held-out rows.
        others: Predictions of the study's other models, by name; with further folds they are
            compared, too.
    """

    problem: Problem
    own: Predictive
    others: Mapping[str, Predictive] = field(default_factory=dict)

    @cached_property
    def scored(self) -> Scored:
        """The run's predictions beside the truth."""
        return self.problem.scored(self.own)
