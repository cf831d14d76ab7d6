"""The omniglot study as plain classifications, one an output, for rivals."""

from __future__ import annotations

from scant.predictive import CategoricalPredictive
from scant.rivals.comparison import Comparison
from scant.studies.omniglot.prepared import Prepared

MOST_CHANCES = 20_000_000  # probabilities, held-out rows times classes


def comparison(data: Prepared, predictive: CategoricalPredictive) -> Comparison | None:
    """Features to classes, each output by itself; None of too many classes for probabilities."""
    observed, train, test = data.observed, data.train, data.test
    classes = int(data.sizes.sum())
    if too_many(data):
        return None
    return Comparison(
        x=observed.x[train],
        y=observed.number[train],
        x_test=observed.x[test],
        y_test=observed.number[test],
        own=predictive,
        scores=("F1", "recall", "mean log probability (nats)", "ECE"),
        classes=classes,
        images=True,  # the study compares nearest neighbors itself
        part=observed.output[train],
        part_test=observed.output[test],
    )


def too_many(data: Prepared) -> str:
    """Why there are no rivals, in a sentence; "" where there are."""
    rows, classes = len(data.test), int(data.sizes.sum())
    if rows * classes <= MOST_CHANCES:
        return ""
    return (
        f"No rivals were compared: {rows:,} held-out rows of {classes:,} classes are too many for "
        "their probabilities."
    )
