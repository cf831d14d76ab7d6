"""Other classifiers of the same rows: for honesty, one after the other and bounded in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

if TYPE_CHECKING:
    from engine.studies.omniglot import Study

Chances = Float[np.ndarray, "n c"]
MOST_NUMBERS = 3e8  # rows x features x classes, summed over outputs, that one takes in seconds
LINEAR_STEPS = 100


def compared(study: Study) -> Iterator[tuple[str, Chances | None, str]]:
    """Names of classifiers, their probabilities of the held-out rows, and why one is left out."""
    yield "nearest neighbour", nearest(study), ""
    cost = sum(
        float((study.seen.output[study.learnt] == d).sum()) * study.seen.x.shape[1] * size
        for d, size in enumerate(study.sizes)
    )
    if cost > MOST_NUMBERS:
        note = (
            "Logistic regression is left out of the comparison: with "
            f"{len(study.learnt):,} rows and {int(study.sizes.sum()):,} classes it takes too long."
        )
        yield "logistic regression", None, note
    else:
        yield "logistic regression", linear(study), ""


def nearest(study: Study, learnt: np.ndarray | None = None) -> Chances:
    """Each held-out row has the class of the nearest row of its output, for certain."""
    seen = study.seen
    learnt = study.learnt if learnt is None else learnt
    found = np.zeros((len(study.test), study.sizes.max()))
    for d in np.unique(seen.output[study.test]):
        mine, asked = (rows[seen.output[rows] == d] for rows in (learnt, study.test))
        model = KNeighborsClassifier(1).fit(seen.x[mine], seen.label[mine])
        at = np.flatnonzero(seen.output[study.test] == d)
        found[at, model.predict(seen.x[asked])] = 1.0
    return found


def linear(study: Study) -> Chances:
    """A multinomial logistic regression of each output, with the usual penalty (C = 1)."""
    seen = study.seen
    centre, width = seen.x[study.learnt].mean(0), seen.x[study.learnt].std()
    found = np.zeros((len(study.test), study.sizes.max()))
    scale = width if study.image is not None else seen.x[study.learnt].std(0)
    x = (seen.x - centre) / np.where(scale > 1e-9, scale, 1.0)
    for d in np.unique(seen.output[study.test]):
        mine, asked = (rows[seen.output[rows] == d] for rows in (study.learnt, study.test))
        model = LogisticRegression(max_iter=LINEAR_STEPS).fit(x[mine], seen.label[mine])
        at = np.flatnonzero(seen.output[study.test] == d)
        found[np.ix_(at, model.classes_)] = model.predict_proba(x[asked])
    return found
