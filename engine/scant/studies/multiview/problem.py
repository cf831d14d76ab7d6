"""The multiview study as a plain classification or regression problem for rivals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from scant.predictive import MixturePredictive
from scant.problem import Comparison, Problem
from scant.studies.multiview import splits as rows
from scant.studies.multiview import survival
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.fitted import FittedMultiview
from scant.studies.multiview.prepared import Prepared

SCORES = {
    "classification": ("F1", "average precision", "recall", "mean log probability (nats)", "ECE"),
    "regression": ("NMSE", "NLPD"),
    "survival": (rows.SCORE["survival"], "NLPD (log time)", "concordance"),
}

RESTRICTED = ("restricted NMSE (log time)", "censored NLPD (log time)", "concordance")
NO_COX = (
    "Censored times count in two scores: the censored NLPD takes the probability of a longer time; "
    "the restricted NMSE is of log times up to a horizon, weighted inversely to the probability of "
    "not being censored before. General tools learn from all patients, with censored log times "
    "replaced by their expectation under one normal distribution. They include no method for "
    "censored times, such as Cox regression (lifelines, scikit-survival)."
)


def comparison(fitted: FittedMultiview) -> Comparison:
    """The run's predictions; for survival, by patient."""
    data = fitted.data
    x, problem = data.observed.x[data.test], problem_of(data, data.train, data.test)
    if data.observed.task != "survival":
        return Comparison(problem, fitted.predictive(x))
    cohort = survival.patients(data.observed, data.test, *fitted.ask(x))
    return Comparison(problem, MixturePredictive.gaussian(cohort.mean, cohort.std**2))


def problem_of(
    data: Prepared, train: Int[np.ndarray, " m"], test: Int[np.ndarray, " t"]
) -> Problem:
    """Problem from all columns to the target in its unit; for survival, from the average row of
    each patient to the log time."""
    observed = data.observed
    if observed.task == "survival":
        x, y, censored = _averages(observed, train)
        x_test, y_test, censored_test = _averages(observed, test)
        if not censored.any() and not censored_test.any():
            return Problem(x, y, x_test, y_test, SCORES[observed.task])
        return Problem(
            x, y, x_test, y_test, RESTRICTED, late=censored, late_test=censored_test, note=NO_COX
        )
    classes = observed.task == "classification"
    target = observed.target.astype(int) if classes else observed.target
    return Problem(
        x=observed.x[train],
        y=target[train],
        x_test=observed.x[test],
        y_test=target[test],
        scores=SCORES[observed.task],
        classes=2 if classes else 0,
        rare=1 if classes else None,
    )


def _averages(
    observed: MultiviewData, selected: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "p d"], Float[np.ndarray, " p"], Bool[np.ndarray, " p"]]:
    """Average row of each patient in order of first rows, log times, and censoring."""
    grouped = pd.DataFrame(observed.x[selected]).groupby(observed.patient[selected], sort=False)
    targets = pd.DataFrame({"time": observed.target[selected], "event": observed.event[selected]})
    first = targets.groupby(observed.patient[selected], sort=False).first()
    return grouped.mean().to_numpy(), np.log(first["time"].to_numpy()), ~first["event"].to_numpy()
