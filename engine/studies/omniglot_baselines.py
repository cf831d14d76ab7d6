"""Other classifiers of the same rows: for honesty, one after the other and bounded in time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin

from engine.catalog.omniglot import MODELS
from engine.models.mogp_training import Training
from engine.studies import omniglot_models as models
from engine.studies.omniglot_models import SINGLE

if TYPE_CHECKING:
    from engine.studies.omniglot import Study

Chances = Float[np.ndarray, "n most"]
MOST_NUMBERS = 3e8  # rows x features x classes, summed over outputs, that one takes in seconds
LINEAR_STEPS = 100
MOST_ROWS, MOST_OUTPUTS = 2000, 6  # up to which models of single outputs are trained as well
SINGLE_STEPS = 250


def compared(study: Study) -> Iterator[tuple[str, Chances | None, str]]:
    """Names of classifiers, their probabilities of the held-out rows, and why one is left out."""
    yield "nearest neighbour", nearest(study, study.learnt, study.test), ""
    rows = len(study.learnt)
    cost = sum(
        float((study.seen.output[study.learnt] == d).sum()) * study.seen.x.shape[1] * size
        for d, size in enumerate(study.sizes)
    )
    many = f"with {rows:,} rows of {int(study.sizes.sum()):,} classes it takes too long."
    for name, small in (
        ("logistic regression", cost <= MOST_NUMBERS),
        *((MODELS[m], rows <= MOST_ROWS and len(study.sizes) <= MOST_OUTPUTS) for m in SINGLE),
    ):
        if name == MODELS[study.settings.model]:
            continue
        if not small:
            yield name, None, f"{name} is left out of the comparison: {many}"
        elif name == "logistic regression":
            yield name, linear(study), ""
        else:
            yield name, single(study, next(m for m in SINGLE if MODELS[m] == name)), ""


def single(study: Study, name: str) -> Chances:
    """A model of each output alone, of the run's kernel, with steps enough to converge.

    Args:
        study: The run.
        name: "g-m" or "g-a".
    """
    s = study.settings
    generator = torch.Generator().manual_seed(s.seed)
    at = torch.as_tensor(study.learnt).to(study.device)
    kernel = models.kernel_for(s, study.words["kernel"], study.x[at], study.image, single=True)
    prepared, output, label = kernel.prepare(study.x[at]), study.output[at], study.label[at]
    sizes = study.sizes.tolist()
    model = models.build(s, name, kernel, prepared, output, sizes, generator)
    training = Training(
        model,
        prepared,
        output,
        label,
        generator,
        batch=s.batch_rows,
        sampled=s.sampled_classes,
        rate=s.learning_rate,
        horizon=SINGLE_STEPS,
    )
    for _ in range(SINGLE_STEPS):
        if not math.isfinite(training.step()):
            break
    test = torch.as_tensor(study.test).to(study.device)
    found = model.probabilities(kernel.prepare(study.x[test]), study.output[test])
    return np.asarray(found.detach().cpu().numpy())


def nearest(
    study: Study, learnt: Int[np.ndarray, " m"], asked: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n most"]:
    """Each row that is asked for has the class of the nearest learnt one of its output."""
    seen = study.seen
    found = np.zeros((len(asked), study.sizes.max()))
    for d in np.unique(seen.output[asked]):
        mine, at = learnt[seen.output[learnt] == d], np.flatnonzero(seen.output[asked] == d)
        near = pairwise_distances_argmin(seen.x[asked[at]], seen.x[mine])
        found[at, seen.label[mine[near]]] = 1.0
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
