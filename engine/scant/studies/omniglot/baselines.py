"""Other classifiers of the same rows: for honesty, one after the other and bounded in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin

from scant.deadline import NEVER, Deadline
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.studies.omniglot import models
from scant.studies.omniglot.fitted import FittedOmniglot
from scant.studies.omniglot.models import SINGLE
from scant.studies.omniglot.partners import Partners
from scant.studies.omniglot.prepared import Prepared
from scant.studies.omniglot.settings import MODELS

Chances = Float[np.ndarray, "n most"]
MOST_NUMBERS = 3e8  # rows x features x classes, summed over outputs, that one takes in seconds
LINEAR_STEPS = 100
MOST_ROWS, MOST_OUTPUTS = 2000, 6  # up to which models of single outputs are trained as well
SINGLE_STEPS = 250


def compared(
    fitted: FittedOmniglot, deadline: Deadline = NEVER
) -> Iterator[tuple[str, Chances | None, str]]:
    """Names of classifiers, their probabilities of the held-out rows, and why one is left out."""
    data = fitted.data
    found: dict[str, Callable[[], Chances | None]] = {
        "nearest neighbor": partial(nearest, data, data.train, data.test),
        **members(fitted),
    }
    rows = len(data.train)
    cost = sum(
        float((data.observed.output[data.train] == d).sum()) * data.observed.x.shape[1] * size
        for d, size in enumerate(data.sizes)
    )
    found["logistic regression"] = partial(linear, data)
    found |= {
        MODELS[m]: partial(single, data, m, deadline) for m in SINGLE if m != data.settings.model
    }
    large = set() if cost <= MOST_NUMBERS else {"logistic regression"}
    if rows > MOST_ROWS or len(data.sizes) > MOST_OUTPUTS:
        large |= {MODELS[m] for m in SINGLE}
    many = f"with {rows:,} rows of {int(data.sizes.sum()):,} classes it takes too long."
    for name in deadline.units(found, "other classifiers"):
        if name in large:
            yield name, None, f"{name} is left out of the comparison: {many}"
        else:
            yield name, found[name](), ""


def members(fitted: FittedOmniglot) -> dict[str, Callable[[], Chances]]:
    """What is averaged, each by itself: the model, and classifiers of strokes."""
    average, data = fitted.average, fitted.data
    if average is None or not average.partners.drawn:
        return {}
    own = {n: partial(of_strokes, average.partners, n) for n in average.partners.drawn}
    return {f"{MODELS[data.settings.model]} alone": partial(alone, fitted), **own}


def alone(fitted: FittedOmniglot) -> Chances:
    """The model, without what it is averaged with."""
    return replace(fitted, average=None).predictive(fitted.data.test).probabilities


def of_strokes(partners: Partners, name: str) -> Chances:
    """A classifier of strokes."""
    observed, test = partners.data.observed, partners.data.test
    return partners.ask(name, observed.x[test], observed.output[test]).probabilities


def single(data: Prepared, name: str, deadline: Deadline = NEVER) -> Chances | None:
    """A model of each output alone, of the run's kernel, with steps enough to converge.

    Args:
        data: The run's rows.
        name: "g-m" or "g-a".
        deadline: Of its steps; None is returned if they do not end in time.
    """
    s = data.settings
    generator = torch.Generator().manual_seed(s.seed)
    at = torch.as_tensor(data.train).to(data.device)
    kernel = models.kernel_for(s, data.metadata["kernel"], data.x[at], data.image, single=True)
    prepared, output, label = kernel.prepare(data.x[at]), data.output[at], data.label[at]
    sizes = data.sizes.tolist()
    model = models.build(s, name, kernel, prepared, output, sizes, generator)
    trainer = MOGPARTrainer(
        model,
        prepared,
        output,
        label,
        generator,
        batch=s.batch_size,
        sampled=s.sampled_classes,
        rate=s.learning_rate,
        horizon=SINGLE_STEPS,
    )
    for _ in deadline.units(range(SINGLE_STEPS), MODELS[name]):
        if not math.isfinite(trainer.step()):
            break
    if MODELS[name] in deadline.skipped:
        return None
    test = torch.as_tensor(data.test).to(data.device)
    result = model.probabilities(kernel.prepare(data.x[test]), data.output[test])
    return np.asarray(result.detach().cpu().numpy())


def nearest(
    data: Prepared, train: Int[np.ndarray, " m"], query: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n most"]:
    """Each row that is asked for has the class of the nearest learned one of its output."""
    observed = data.observed
    result = np.zeros((len(query), data.sizes.max()))
    for d in np.unique(observed.output[query]):
        mine, at = train[observed.output[train] == d], np.flatnonzero(observed.output[query] == d)
        near = pairwise_distances_argmin(observed.x[query[at]], observed.x[mine])
        result[at, observed.label[mine[near]]] = 1.0
    return result


def linear(data: Prepared) -> Chances:
    """A multinomial logistic regression of each output, with the usual penalty (C = 1)."""
    observed = data.observed
    center, width = observed.x[data.train].mean(0), observed.x[data.train].std()
    result = np.zeros((len(data.test), data.sizes.max()))
    scale = width if data.image is not None else observed.x[data.train].std(0)
    x = (observed.x - center) / np.where(scale > 1e-9, scale, 1.0)
    for d in np.unique(observed.output[data.test]):
        mine, query = (rows[observed.output[rows] == d] for rows in (data.train, data.test))
        model = LogisticRegression(max_iter=LINEAR_STEPS).fit(x[mine], observed.label[mine])
        at = np.flatnonzero(observed.output[data.test] == d)
        result[np.ix_(at, model.classes_)] = model.predict_proba(x[query])
    return result
