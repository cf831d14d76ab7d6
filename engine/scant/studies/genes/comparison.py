"""The genes study as a plain regression on input, output and replica, for rivals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from scant.events import Report
from scant.predictive import MixturePredictive
from scant.rivals.comparison import Comparison
from scant.studies.genes.fitted import FittedReplicas
from scant.studies.genes.models import Model
from scant.studies.genes.table import Replicas

Values = Float[np.ndarray, " t"]
MOST_COLUMNS = 60  # of indicators; of more outputs or replicas their numbers are given


def comparison(fitted: FittedReplicas, report: Report, members: Mapping[str, Model]) -> Comparison:
    """Values in units of their output's mean and deviation, as they are scored.

    Args:
        fitted: The run's model.
        report: What it came to.
        members: Models that a stack is made of, by name.
    """
    observed, train, test = fitted.observed, fitted.train, fitted.test
    centre, width = fitted.units
    d, arrays = observed.output[test], report.arrays
    y = (arrays["test_y"] - centre[d]) / width[d]

    def prediction(mean: Values, std: Values) -> MixturePredictive:
        return MixturePredictive.gaussian((mean - centre[d]) / width[d], (std / width[d]) ** 2)

    told = {name: replace(fitted, model=m).on_test_rows() for name, m in members.items()}
    return Comparison(
        x=_columns(observed, train),
        y=((observed.y - centre[observed.output]) / width[observed.output])[train],
        x_test=_columns(observed, test),
        y_test=y,
        own=prediction(arrays["test_mean"], arrays["test_std_y"]),
        scores=("NMSE", "NLPD"),
        others={name: prediction(mean, std_y) for name, (mean, _, std_y) in told.items()},
    )


def _columns(observed: Replicas, which: Bool[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    """Input, then indicators of output and sample, or their numbers where they are many."""
    parts = [observed.x[which, None]]
    for number in (observed.output, observed.sample):
        count = int(number.max()) + 1
        own = number[which]
        parts.append(np.eye(count)[own] if 1 < count <= MOST_COLUMNS else own[:, None])
    return np.concatenate(parts, axis=1).astype(float)
