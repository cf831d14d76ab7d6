"""The multiview study as plain classification or regression on all columns, for rivals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from scant.predictive import MixturePredictive
from scant.rivals.comparison import Comparison
from scant.studies.multiview import splits as rows
from scant.studies.multiview import survival
from scant.studies.multiview.fitted import FittedMultiview
from scant.studies.multiview.table import MultiviewData

RESTRICTED = ("restricted NMSE (log time)", "censored NLPD (log time)", "concordance")
NO_COX = (
    "Censored times count: the censored NLPD takes the probability of a longer time; the restricted"
    " NMSE is of log times up to a horizon, weighted inversely to the probability of not being "
    "censored before. General tools learn from all patients, censored log times replaced by their "
    "expectation under one normal distribution; no method of censored times, such as Cox regression"
    " (lifelines, scikit-survival), is among them."
)


def comparison(fitted: FittedMultiview) -> Comparison:
    """All views' columns to the target in its unit."""
    data = fitted.data
    observed, train, test = data.observed, data.train, data.test
    if observed.task == "survival":
        return _of_patients(fitted)
    own = fitted.predictive(observed.x[test])
    y, classes = observed.target[test], observed.task == "classification"
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
    """The average row of each patient to the log time, as patients are scored."""
    observed, test = fitted.data.observed, fitted.data.test
    cohort = survival.patients(observed, test, *fitted.ask(observed.x[test]))
    x, y, late = _averages(observed, fitted.data.train)
    x_test, y_test, late_test = _averages(observed, test)
    made = Comparison(
        x=x,
        y=y,
        x_test=x_test,
        y_test=y_test,
        own=MixturePredictive.gaussian(cohort.mean, cohort.std**2),
        scores=(rows.SCORE["survival"], "NLPD (log time)", "concordance"),
    )
    if not late.any() and not late_test.any():
        return made
    return replace(made, scores=RESTRICTED, late=late, late_test=late_test, note=NO_COX)


def _averages(
    observed: MultiviewData, which: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "p d"], Float[np.ndarray, " p"], Bool[np.ndarray, " p"]]:
    """Averages of the rows of patients in order of their first row, log times, whether censored."""
    by = pd.DataFrame(observed.x[which]).groupby(observed.patient[which], sort=False)
    own = pd.DataFrame({"time": observed.target[which], "event": observed.event[which]})
    first = own.groupby(observed.patient[which], sort=False).first()
    return by.mean().to_numpy(), np.log(first["time"].to_numpy()), ~first["event"].to_numpy()
