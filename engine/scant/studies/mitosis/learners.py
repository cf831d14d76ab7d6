"""Compared methods: other latent variable models and plain classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.deadline import NEVER, Deadline
from scant.ensemble.stacking import best_expected_threshold
from scant.evaluate.fitting import Result, fit_all
from scant.learners.calibrated import FITS, calibrated, decided
from scant.learners.learner import Capabilities, Learner
from scant.predictive import CategoricalPredictive
from scant.problem import Problem
from scant.random import restart_generator
from scant.studies.mitosis import models
from scant.studies.mitosis.classifier import Classifier, doubted
from scant.studies.mitosis.cost import DGPLVM_MAX_ROWS, LATENT_MAX_ROWS, STEPS
from scant.studies.mitosis.fitted import settle
from scant.studies.mitosis.prepared import Prepared
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.problem import problem_of
from scant.studies.mitosis.settings import MODELS, ON_PIXELS

MIN_STEPS = 20
FALLBACK = 60  # components for classifiers if the model learns pixels


def fit_methods(
    data: Prepared,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    methods: Sequence[str],
    scores: Sequence[str],
    hurry: float = 1.0,
    deadline: Deadline = NEVER,
) -> list[Result]:
    """Fit the methods to some rows; fast plain classifiers before latent variable models.

    Args:
        data: The run's rows.
        train: Rows to learn from.
        query: Rows to predict.
        methods: Names of the methods; names that end in `ON_PIXELS` mean no network features.
        scores: Names of the scores.
        hurry: Share of the usual steps.
        deadline: Deadline of all methods.

    Returns:
        Results in the order of `methods`.
    """
    inputs = {"": data, ON_PIXELS: data.without_network()}
    requested = {
        suffix: inputs[suffix] for suffix in inputs if any(m.endswith(suffix) for m in methods)
    }
    problems = {suffix: plain_problem(given, train, query) for suffix, given in requested.items()}
    prior = data.prior(train)

    def plain(given: Prepared) -> list[Learner]:
        return [calibrated(name, prior) for name in FITS]

    def latent(given: Prepared) -> list[Learner]:
        return [latent_learner(given, name, train, query, hurry) for name in MODELS]

    results = dict[str, Result]()
    for phase, learners in (("", plain), ("other latent variable models", latent)):
        for suffix, given in requested.items():
            renamed = [replace(learner, name=learner.name + suffix) for learner in learners(given)]
            selected = [learner for learner in renamed if learner.name in methods]
            fitted = fit_all(problems[suffix], selected, scores, deadline, phase)
            results |= {result.name: result for result in fitted}
    return [results[name] for name in methods if name in results]


def latent_learner(
    data: Prepared,
    name: str,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    hurry: float,
) -> Learner:
    """Return a learner that fits a latent variable model to rows `train` and predicts `query`."""
    s = data.settings
    steps = max(MIN_STEPS, round(hurry * min(STEPS[name], s.max_steps)))

    def answer(problem: Problem, deadline: Deadline) -> CategoricalPredictive:
        generator = restart_generator(s.seed)
        label = torch.tensor(data.label[train])
        z = data.given(train, name).cpu()
        model = models.build(s, name, z, label, data.n_classes, generator).to(data.device)
        models.fit(model, steps)
        reader, calibrated, *_ = settle(data, model, train, name)
        return calibrated.predictive(reader.place(data.given(query, name)).evidence)

    def limit(problem: Problem) -> str:
        over_limit = len(train) > (DGPLVM_MAX_ROWS if name == "dgplvm" else LATENT_MAX_ROWS)
        return f"with {len(train):,} rows to learn from it takes too long." if over_limit else ""

    return Learner(MODELS[name], answer, Capabilities(classes=True, missing=True), limit)


def mixed(
    data: Prepared,
    mixture: Classifier,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    latent: Float[np.ndarray, "n c"] | None,
) -> CategoricalPredictive:
    """Predict with the run's mixture after refitting its GP classifier with the same kernels.

    Args:
        data: The run's rows.
        mixture: The run's classifier.
        train: Rows to learn from.
        query: Rows to predict.
        latent: Probabilities of the refitted latent variable model; None: it was left out.
    """
    assert mixture.gp is not None
    gp = mixture.gp.refit(data.seen[train], data.label[train], data.settings.seed)
    p = gp.probability(data.seen[query])
    if latent is not None:
        p = (1 - mixture.share) * p + mixture.share * doubted(latent, mixture.doubt)
    return decided(p, best_expected_threshold(p[:, 0]))


def plain_problem(
    data: Prepared, train: Int[np.ndarray, " m"], test: Int[np.ndarray, " t"]
) -> Problem:
    """Inputs of the GP classifier without missing values; components in place of pixels."""
    rows = np.union1d(train, data.split.validation).astype(int)
    validation = np.isin(rows, data.split.validation)
    width = data.z.shape[1]
    x, x_test = (np.hstack([data.filled(data.z[r]), data.seen[r, width:]]) for r in (rows, test))
    if data.network is None and data.image is not None and not len(data.columns.axes):
        columns = Columns.of(x[~validation], FALLBACK, pixels=True)
        x, x_test = columns.forward(x), columns.forward(x_test)
    problem = problem_of(data, test)
    return replace(problem, x=x, y=data.label[rows], x_test=x_test, spared=validation)
