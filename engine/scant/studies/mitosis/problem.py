"""The mitosis study as a plain classification problem for general tools."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from scant.problem import Problem
from scant.studies.mitosis.prepared import Prepared

OF_RARE = ("precision", "recall", "F1", "average precision")


def problem_of(data: Prepared, test: Int[np.ndarray, " t"]) -> Problem:
    """Columns or components as inputs of classifiers; training includes validation rows."""
    return Problem(
        x=data.seen[data.known],
        y=data.label[data.known],
        x_test=data.seen[test],
        y_test=data.label[test],
        scores=("F1", "average precision", "recall", "mean log probability (nats)", "ECE"),
        classes=data.n_classes,
        rare=0,
        images=data.image is not None,
    )
