"""The mitosis study as a plain classification, for rivals."""

from __future__ import annotations

from scant.events import Report
from scant.predictive import CategoricalPredictive
from scant.rivals.comparison import Comparison
from scant.studies.mitosis.fitted import FittedMitosis


def comparison(fitted: FittedMitosis, report: Report) -> Comparison:
    """Columns or components as classifiers are given them; validation rows are learned from too."""
    data = fitted.data
    assert fitted.chances is not None, "finalize comes first"
    rows = data.known
    p, label = report.arrays["test_p"], data.label[data.test]
    return Comparison(
        x=data.seen[rows],
        y=data.label[rows],
        x_test=data.seen[data.test],
        y_test=label,
        own=CategoricalPredictive(p, fitted.chances.decide(p)),
        scores=("F1", "average precision", "recall", "mean log probability (nats)", "ECE"),
        classes=data.n_classes,
        rare=0,
        images=data.image is not None,
    )
