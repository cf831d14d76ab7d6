"""The multiview study as plain classification or regression on all columns, for rivals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scant.rivals.comparison import Comparison, Prediction, gaussian, of_classes
from scant.studies.multiview import splits as rows
from scant.studies.multiview import survival
from scant.studies.multiview.fitted import FittedMultiview
from scant.studies.multiview.table import MultiviewData

NO_COX = (
    "General tools are compared on the log time of patients who died, and learn from those only; "
    "no method of censored times, such as Cox regression (lifelines, scikit-survival), is among "
    "them."
)


def comparison(fitted: FittedMultiview) -> Comparison:
    """All views' columns to the target in its unit."""
    data = fitted.data
    observed, train, test = data.observed, data.train, data.test
    if observed.task == "survival":
        return _of_patients(fitted)
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


def _of_patients(fitted: FittedMultiview) -> Comparison:
    """The average row of each patient to his log time, of those who died, as they are scored."""
    observed, test = fitted.data.observed, fitted.data.test
    cohort = survival.patients(observed, test, *fitted.ask(observed.x[test]))
    died = np.flatnonzero(cohort.event)
    x, y = _averages(observed, fitted.data.train)
    x_test, y_test = _averages(observed, test)
    return Comparison(
        x=x,
        y=y,
        x_test=x_test,
        y_test=y_test,
        own=gaussian(y_test, cohort.mean[died], cohort.std[died] ** 2),
        scores=(rows.SCORE["survival"], "NLPD (log time)"),
        note=NO_COX,
    )


def _averages(
    observed: MultiviewData, which: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "p d"], Float[np.ndarray, " p"]]:
    """Averages of the rows of patients who died, in order of their first row, and log times."""
    which = which[observed.event[which]]
    by = pd.DataFrame(observed.x[which]).groupby(observed.patient[which], sort=False)
    time = pd.Series(observed.target[which]).groupby(observed.patient[which], sort=False).first()
    return by.mean().to_numpy(), np.log(time.to_numpy())
