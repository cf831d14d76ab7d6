"""The multiview study as plain classification or regression on all columns, for rivals."""

from __future__ import annotations

import numpy as np
from scant.rivals.comparison import Comparison, Prediction, gaussian, of_classes
from scant.studies.multiview import splits as rows
from scant.studies.multiview.fitted import FittedMultiview


def comparison(fitted: FittedMultiview) -> Comparison | None:
    """All views' columns to the target in its unit; None of survival, whose times are censored."""
    data = fitted.data
    observed, train, test = data.observed, data.train, data.test
    if observed.task == "survival":
        return None
    mean, variance = fitted.ask(observed.x[test])
    y = observed.target[test]
    classes = observed.task == "classification"
    if classes:
        p = np.stack([1 - mean, mean], 1)
        own = of_classes(y.astype(int), p, 1, (mean >= 0.5).astype(int))
    else:
        # A density of the logarithm becomes one of y by its slope, 1 / (1 + y).
        slope = np.log1p(y) if rows.logs(data.settings, observed.task) else np.zeros(len(y))
        density = gaussian(data.y[test], mean, variance).log_density
        assert density is not None
        value = rows.in_table_units(data.settings, observed.task, mean, variance)[0]
        own = Prediction(value, density - slope)
    chances = ("F1", "average precision", "recall", "mean log probability (nats)", "ECE")
    return Comparison(
        x=observed.x[train],
        y=observed.target[train].astype(int) if classes else observed.target[train],
        x_test=observed.x[test],
        y_test=y.astype(int) if classes else y,
        own=own,
        scores=chances if classes else ("NMSE", "NLPD"),
        classes=2 if classes else 0,
        rare=1 if classes else None,
    )
