"""What is learned, from which rows, and which rows are held out: what every method is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from scant.evaluate.scored import Scored
from scant.inference import censored
from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive


@dataclass(frozen=True)
class Problem:
    """One supervised problem as a matrix.

    Attributes:
        x: Rows learned from; NaN where a value is missing.
        y: Their values, or numbers of their classes.
        x_test: Held-out rows.
        y_test: Their truth.
        scores: Of `SCORES`, those that the study's report names.
        classes: How many there are; 0: values.
        rare: The class that F1 and average precision are of; None: all, weighted by their rows.
        images: Whether the columns are pixels or components of them.
        part: Of each row, the problem of its own that it belongs to (an alphabet); None: one.
        part_test: Of each held-out row.
        replaces: Whether the report's own baselines give way to the rivals, which are of the same
            kinds; else rivals that bear a baseline's name are not fitted.
        shown: Of the held-out rows, how many are of the run's own split, the first ones, which the
            report's table shows: the others are of further folds. 0: there are none.
        late: Whether a row's value is only a bound from below (`scant.inference.censored`); None:
            none is.
        late_test: Of each held-out row.
        note: What a reader should know of the comparison with rivals.
        by: What the values are called, where a verdict is told by bins of them too; "": it is not.
        blocks: Of each column, the number of those that it is missing with; -1: it never is.
            Where held-out rows lack something, rivals then learn what to say of these from rows
            with such gaps.
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

    @property
    def table_rows(self) -> Int[ndarray, " s"]:
        """The held-out rows of the run's own split."""
        return np.arange(self.shown or len(self.y_test))

    def trivial(self) -> Predictive:
        """Predictions that ignore the inputs: mean and variance, or frequencies of the classes."""
        if not self.classes:
            mean, variance = float(np.mean(self.y)), max(float(np.var(self.y)), 1e-24)
            if self.late is not None:
                mean, variance, *_ = censored.uncensored(self.y, self.late)
            rows = np.ones(len(self.y_test))
            return MixturePredictive.gaussian(mean * rows, variance * rows)
        share = np.zeros((len(self.y_test), self.classes))
        for part, mine, asked in self.parts():
            del part
            counts = np.bincount(self.y[mine].astype(int), minlength=self.classes)
            share[asked] = counts / counts.sum()
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
        """Number of each problem, its rows to learn from, its held-out rows."""
        if self.part is None or self.part_test is None:
            return [(0, np.arange(len(self.y)), np.arange(len(self.y_test)))]
        return [
            (int(p), np.flatnonzero(self.part == p), np.flatnonzero(self.part_test == p))
            for p in np.unique(self.part_test)
        ]


@dataclass(frozen=True)
class Comparison:
    """Answers to a problem.

    Attributes:
        problem: What was asked.
        own: What this run says of the held-out rows.
        others: What models of the study's own say of them, by name; they are judged too where there
            are further folds.
    """

    problem: Problem
    own: Predictive
    others: Mapping[str, Predictive] = field(default_factory=dict)

    @cached_property
    def scored(self) -> Scored:
        """This run's answer beside the truth."""
        return self.problem.scored(self.own)
