"""The genes study as a plain regression of input, output and replica, in its scores' units."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from scant.predictive import MixturePredictive
from scant.problem import Problem
from scant.studies.genes.fitted import FittedReplicas
from scant.studies.genes.table import Replicas

MOST_COLUMNS = 60  # of indicators; of more outputs or replicas their numbers are given


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


def answer_of(fitted: FittedReplicas, told: MixturePredictive) -> MixturePredictive:
    """What a model says of the held-out rows (`FittedReplicas.on_test_rows`), in these units."""
    d = fitted.observed.output[fitted.test]
    centre, width = (values[d] for values in fitted.units)
    return told.scaled(1 / width, -centre / width, log=False)


def _columns(observed: Replicas, which: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    """Input, then indicators of output and sample, or their numbers where they are many."""
    parts = [observed.x[which, None]]
    for number in (observed.output, observed.sample):
        count = int(number.max()) + 1
        own = number[which]
        parts.append(np.eye(count)[own] if 1 < count <= MOST_COLUMNS else own[:, None])
    return np.concatenate(parts, axis=1).astype(float)
