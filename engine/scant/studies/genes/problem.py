"""The genes study as a plain regression on input, output and replica, in the scores' units."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from scant.predictive import MixturePredictive
from scant.problem import Problem
from scant.studies.genes.fitted import FittedReplicas
from scant.studies.genes.table import Replicas

MOST_COLUMNS = 60  # of indicators; with more outputs or replicas, indices replace them


def problem_of(fitted: FittedReplicas) -> Problem:
    """Values in units of their output's mean and deviation."""
    observed, train, test = fitted.observed, fitted.train, fitted.test
    centre, width = (values[observed.output] for values in fitted.units)
    y = (observed.y - centre) / width
    return Problem(
        x=_columns(observed, train),
        y=y[train],
        x_test=_columns(observed, test),
        y_test=y[test],
        scores=("NMSE", "NLPD"),
    )


def answer_of(fitted: FittedReplicas, prediction: MixturePredictive) -> MixturePredictive:
    """Convert predictions of held-out rows (`FittedReplicas.on_test_rows`) to these units."""
    d = fitted.observed.output[fitted.test]
    centre, width = (values[d] for values in fitted.units)
    return prediction.scaled(1 / width, -centre / width, log=False)


def _columns(observed: Replicas, which: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    """Input, then indicators of output and sample, or their indices if there are many."""
    parts = [observed.x[which, None]]
    for number in (observed.output, observed.sample):
        count = int(number.max()) + 1
        indices = number[which]
        parts.append(np.eye(count)[indices] if 1 < count <= MOST_COLUMNS else indices[:, None])
    return np.concatenate(parts, axis=1).astype(float)
