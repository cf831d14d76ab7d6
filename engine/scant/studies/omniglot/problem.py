"""The omniglot study as one classification per output."""

from __future__ import annotations

import numpy as np

from scant.problem import Problem
from scant.studies.omniglot.prepared import Prepared

MOST_CHANCES = 20_000_000  # probabilities, held-out rows times classes


def problem_of(data: Prepared, train: np.ndarray, test: np.ndarray) -> Problem:
    """Features to classes, each output by itself."""
    observed = data.observed
    return Problem(
        x=observed.x[train],
        y=observed.number[train],
        x_test=observed.x[test],
        y_test=observed.number[test],
        scores=("F1", "recall", "mean log probability (nats)", "ECE"),
        classes=int(data.sizes.sum()),
        images=True,  # features, too, are compared with nearest neighbors
        part=observed.output[train],
        part_test=observed.output[test],
    )


def too_many(data: Prepared) -> str:
    """Return why no general tools are compared, in a sentence; "" if they are."""
    rows, classes = len(data.test), int(data.sizes.sum())
    if rows * classes <= MOST_CHANCES:
        return ""
    return (
        f"No other methods were compared: {rows:,} held-out rows of {classes:,} classes are too "
        "many for their probabilities."
    )
