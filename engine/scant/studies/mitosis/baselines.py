"""Every method on the same rows: for honesty, one after the other and bounded in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression

from scant.deadline import NEVER, Deadline
from scant.ensemble.stacking import best_expected_threshold
from scant.predictive import CategoricalPredictive
from scant.random import restart_generator
from scant.studies.mitosis import models
from scant.studies.mitosis.classifier import Classifier, doubted
from scant.studies.mitosis.cost import MOST_DGPLVM, MOST_ROWS, STEPS
from scant.studies.mitosis.entry import OTHERS
from scant.studies.mitosis.fitted import settle
from scant.studies.mitosis.prepared import Prepared
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.settings import MODELS, OURS

LEAST_STEPS, LINEAR_STEPS = 20, 500
FALLBACK = 60  # components that classifiers are given where the model is given pixels


class MethodResult(NamedTuple):
    """Probabilities and decisions of a method for the held-out rows."""

    method: str
    p: Float[np.ndarray, "n c"] | None  # None: left out
    decided: Int[np.ndarray, " n"] | None
    threshold: float
    note: str = ""

    @property
    def predictive(self) -> CategoricalPredictive | None:
        """Both; None of a method that was left out."""
        return None if self.p is None else CategoricalPredictive(self.p, self.decided)


def compared(
    data: Prepared,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    only: Sequence[str],
    hurry: float = 1.0,
    deadline: Deadline = NEVER,
) -> Iterator[MethodResult]:
    """What the methods say that learn from some rows.

    Args:
        data: Whose rows, settings and columns they are.
        train: Rows to learn from.
        query: Rows to classify.
        only: Those that are asked for, by name.
        hurry: Part of the usual steps.
        deadline: Of all.
    """
    named = [(name, method) for name, method in MODELS.items() if method in only]
    begun = deadline.units(named, "other latent variable models")
    for name, method in named:
        if next(begun, None) is None:
            yield MethodResult(method, None, None, np.nan)
            continue
        most = MOST_DGPLVM if name == "dgplvm" else MOST_ROWS
        if len(train) > most:
            message = f"{method} is left out of the comparison: with {len(train):,} rows to learn "
            yield MethodResult(method, None, None, np.nan, message + "from it takes too long.")
            continue
        steps = max(LEAST_STEPS, round(hurry * min(STEPS[name], data.settings.max_steps)))
        yield latent(data, name, train, query, steps)
    if set(OTHERS) & set(only) and deadline.left > 0:
        yield from plain(data, train, query)


def latent(
    data: Prepared,
    name: str,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    steps: int,
) -> MethodResult:
    """A latent variable model, trained anew."""
    s = data.settings
    generator = restart_generator(s.seed)
    label = torch.tensor(data.label[train])
    z = data.given(train, name).cpu()
    model = models.build(s, name, z, label, data.n_classes, generator).to(data.device)
    models.fit(model, steps)
    reader, chances, *_ = settle(data, model, train, name)
    return result_of(MODELS[name], chances, reader.place(data.given(query, name)).evidence)


def mixed(
    data: Prepared,
    run: Classifier,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    latent: Float[np.ndarray, "n c"] | None,
) -> MethodResult:
    """The run's own mixture, its GP classifier trained anew with the kernels that were chosen.

    Args:
        data: As `compared`.
        run: The mixture.
        train: Likewise.
        query: Likewise.
        latent: What the latent variable model says, trained anew; None: it was left out.
    """
    assert run.gp is not None
    gp = run.gp.refit(data.seen[train], data.label[train], data.settings.seed)
    p = gp.probability(data.seen[query])
    if latent is not None:
        p = (1 - run.share) * p + run.share * doubted(latent, run.doubt)
    threshold = best_expected_threshold(p[:, 0])
    return MethodResult(OURS, p, replace(run, threshold=threshold).decide(p), threshold)


def plain(
    data: Prepared, train: Int[np.ndarray, " m"], query: Int[np.ndarray, " n"]
) -> Iterator[MethodResult]:
    """Class-weighted classifiers of what the GP classifier is given as well."""
    spared = data.split.validation
    x, held, new = (
        np.hstack([data.filled(data.z[which]), data.seen[which, data.z.shape[1] :]])
        for which in (train, spared, query)
    )
    if data.network is None and data.image is not None and not len(data.columns.axes):
        turned = Columns.of(x, FALLBACK, pixels=True)
        x, held, new = (turned.forward(v) for v in (x, held, new))
    label, c = data.label[train], data.n_classes
    machine, _ = models.best_svm(x, label, held, data.label[spared], c)
    width = np.where(x.std(0) > 1e-9, x.std(0), 1.0)
    x, line = x / width, LogisticRegression(class_weight="balanced", max_iter=LINEAR_STEPS)
    line.fit(x, label)
    prior = data.prior(train)
    for method, classifier, scale in zip(OTHERS, (machine, line), (1.0, width)):
        evidence = [models.decisions(classifier, v / scale, c) for v in (held, new)]
        result = models.temperature_scaled(
            evidence[0][: len(held)], data.label[spared], prior, None
        )
        yield result_of(method, result, evidence[1])


def result_of(
    method: str, chances: models.CalibratedClassifier, evidence: Float[np.ndarray, "n c"]
) -> MethodResult:
    """Probabilities and decisions of a method, from its evidence."""
    p = chances.of(evidence)
    return MethodResult(method, p, chances.decide(p), chances.threshold)
