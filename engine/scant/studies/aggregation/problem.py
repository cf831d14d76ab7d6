"""The scarce task as a plain regression on box centers and widths, for other tools."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from scant.problem import Problem
from scant.studies.aggregation.classes import in_model
from scant.studies.aggregation.fitted import FittedMTGPA, TrainingData
from scant.studies.aggregation.supports import Supports

OF_CLASSES = ("mean log probability (nats)", "accuracy")  # scores


def problem_of(train: TrainingData, fitted: FittedMTGPA) -> Problem:
    """Values or classes of the scarce task as a function of its boxes, for single-table tools."""
    observed, number = train.observed, fitted.task(fitted.scarce)
    classes = fitted.classes.get(fitted.scarce, [])
    y = in_model(observed, np.arange(len(observed)), fitted.classes)
    in_task = observed.task == number
    test, train_rows = held_out(train, number), train.rows & in_task
    return Problem(
        x=_columns(observed, train_rows),
        y=y[train_rows].astype(int) if classes else y[train_rows],
        x_test=_columns(observed, test),
        y_test=y[test].astype(int) if classes else y[test],
        scores=OF_CLASSES if classes else ("RMSE", "SMSE", "SNLP"),
        classes=len(classes),
    )


def held_out(train: TrainingData, number: int) -> Bool[np.ndarray, " n"]:
    """Mask of a task's rows that are scored."""
    observed = train.observed
    return observed.test & np.isfinite(observed.y) & (observed.task == number)


def _columns(observed: Supports, which: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    lo, hi = observed.lo[which], observed.hi[which]
    columns = [(lo + hi) / 2, hi - lo, observed.exposure[which, None]]
    if observed.covariates is not None:
        columns.append(observed.covariates[which])
    return np.concatenate(columns, axis=1)
