"""The scarce task as a plain regression on the centers and widths of its boxes, for rivals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from scant.problem import Problem
from scant.studies.aggregation.classes import in_model
from scant.studies.aggregation.fitted import FittedMTGPA, TrainingData
from scant.studies.aggregation.supports import Supports

OF_CLASSES = ("mean log probability (nats)", "accuracy")  # scores


def problem_of(train: TrainingData, fitted: FittedMTGPA) -> Problem:
    """Boxes of the scarce task to its values or classes, as a tool for one table takes them."""
    observed, number = train.observed, fitted.task(fitted.scarce)
    classes = fitted.classes.get(fitted.scarce, [])
    y = in_model(observed, np.arange(len(observed)), fitted.classes)
    mine = observed.task == number
    test, learned = held_out(train, number), train.rows & mine
    return Problem(
        x=_columns(observed, learned),
        y=y[learned].astype(int) if classes else y[learned],
        x_test=_columns(observed, test),
        y_test=y[test].astype(int) if classes else y[test],
        scores=OF_CLASSES if classes else ("RMSE", "SMSE", "SNLP"),
        classes=len(classes),
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
