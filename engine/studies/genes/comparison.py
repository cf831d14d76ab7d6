"""The genes study as a plain regression on input, output and replica, for rivals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scant.events import Report
from scant.rivals.comparison import Comparison, gaussian
from scant.studies.genes.fitted import FittedReplicas
from scant.studies.genes.table import Replicas

MOST_COLUMNS = 60  # of indicators; of more outputs or replicas their numbers are given


def comparison(fitted: FittedReplicas, report: Report) -> Comparison:
    """Values in units of their output's mean and deviation, as they are scored."""
    observed, train, test = fitted.observed, fitted.train, fitted.test
    centre, width = fitted.units
    d, arrays = observed.output[test], report.arrays
    y = (arrays["test_y"] - centre[d]) / width[d]
    mean = (arrays["test_mean"] - centre[d]) / width[d]
    return Comparison(
        x=_columns(observed, train),
        y=((observed.y - centre[observed.output]) / width[observed.output])[train],
        x_test=_columns(observed, test),
        y_test=y,
        own=gaussian(y, mean, (arrays["test_std_y"] / width[d]) ** 2),
        scores=("NMSE", "NLPD"),
    )


def _columns(observed: Replicas, which: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    """Input, then indicators of output and sample, or their numbers where they are many."""
    parts = [observed.x[which, None]]
    for number in (observed.output, observed.sample):
        count = int(number.max()) + 1
        own = number[which]
        parts.append(np.eye(count)[own] if 1 < count <= MOST_COLUMNS else own[:, None])
    return np.concatenate(parts, axis=1).astype(float)
