"""The scarce task as a plain regression on the centers and widths of its boxes, for rivals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from scant.problem import Problem
from scant.studies.aggregation.fitted import TrainingData
from scant.studies.aggregation.supports import Supports


def problem_of(train: TrainingData, number: int) -> Problem:
    """Boxes of a task to its values, as a tool for one table would take them."""
    observed = train.observed
    mine = observed.task == number
    test, learned = held_out(train, number), train.rows & mine
    return Problem(
        x=_columns(observed, learned),
        y=observed.y[learned],
        x_test=_columns(observed, test),
        y_test=observed.y[test],
        scores=("RMSE", "SMSE", "SNLP"),
    )


def held_out(train: TrainingData, number: int) -> Bool[np.ndarray, " n"]:
    """The rows of a task that are scored."""
    observed = train.observed
    return observed.test & np.isfinite(observed.y) & (observed.task == number)


def _columns(observed: Supports, which: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    lo, hi = observed.lo[which], observed.hi[which]
    columns = [(lo + hi) / 2, hi - lo, observed.exposure[which, None]]
    if observed.covariates is not None:
        columns.append(observed.covariates[which])
    return np.concatenate(columns, axis=1)
