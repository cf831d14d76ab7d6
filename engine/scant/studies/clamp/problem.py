"""The labels of a session as a plain classification, for other tools."""

from __future__ import annotations

import numpy as np

from scant.events import Report
from scant.predictive import CategoricalPredictive
from scant.problem import Comparison, Problem
from scant.studies.clamp.fitted import FittedClamp


def comparison(fitted: FittedClamp, report: Report) -> Comparison | None:
    """Classification of the queried rows by components; None with one class only."""
    labeled = np.array(fitted.active.rows, dtype=int)
    y = np.array(fitted.active.labels, dtype=int)
    if len(set(y.tolist())) < 2:
        return None
    at, label = report.arrays["test_row"], report.arrays["test_label"].astype(int)
    each, sought = fitted.active.each.cpu().numpy()[at], fitted.data.rows.sought
    problem = Problem(
        x=fitted.data.rows.x[labeled],
        y=y,
        x_test=fitted.data.rows.x[at],
        y_test=label,
        scores=("F1", "recall", "average precision", "mean log probability (nats)"),
        classes=sought + 1,
        rare=sought,
    )
    return Comparison(problem, CategoricalPredictive(each, fitted.active.predicted[at]))
