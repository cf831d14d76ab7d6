"""The scarce task as a plain regression on the centers and widths of its boxes, for rivals."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float

from scant.rivals.comparison import Comparison
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.fitted import FittedMTGPA, TrainingData
from scant.studies.aggregation.predictive import predictive
from scant.studies.aggregation.report import held_out
from scant.studies.aggregation.table import Supports

LEAST_ROWS = 5  # of the task, to learn from


def comparison(fitted: FittedMTGPA, train: TrainingData) -> Comparison | None:
    """Boxes of the scarce task to its values, as a tool for one table would take them."""
    number, observed = fitted.task(fitted.scarce), train.observed
    test, y, _ = held_out(train, number)
    mine = train.rows & (observed.task == number)
    if mine.sum() < LEAST_ROWS or not test.any():
        return None
    exposure = torch.as_tensor(observed.exposure[test]).to(fitted.device)
    supports = space.supports_of(observed, test, fitted.device)
    known = fitted.known(observed, test, number)
    return Comparison(
        x=_columns(observed, mine),
        y=observed.y[mine],
        x_test=_columns(observed, test),
        y_test=y,
        own=predictive(fitted, supports, number, exposure, known),
        scores=("RMSE", "SMSE", "SNLP"),
    )


def _columns(observed: Supports, which: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    lo, hi = observed.lo[which], observed.hi[which]
    columns = [(lo + hi) / 2, hi - lo, observed.exposure[which, None]]
    if observed.covariates is not None:
        columns.append(observed.covariates[which])
    return np.concatenate(columns, axis=1)
