"""Methods that the model is compared with: other latent variable models and plain classifiers."""

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
FALLBACK = 60  # components that classifiers are given where the model is given pixels


def fit_methods(
    data: Prepared,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    methods: Sequence[str],
    scores: Sequence[str],
    hurry: float = 1.0,
    deadline: Deadline = NEVER,
) -> list[Result]:
    """Fit the methods to some rows; plain classifiers, the fastest, before latent variable models.

    Args:
        data: The run's rows.
        train: Rows to learn from.
        query: Rows to predict.
        methods: Names of the methods; those that end in `ON_PIXELS` are given no network features.
        scores: Names of the scores.
        hurry: Part of the usual steps.
        deadline: Time of all methods.

    Returns:
        Results in the order of `methods`.
    """
    inputs = {"": data, ON_PIXELS: data.without_network()}
    asked = {
        suffix: inputs[suffix] for suffix in inputs if any(m.endswith(suffix) for m in methods)
    }
    problems = {suffix: plain_problem(given, train, query) for suffix, given in asked.items()}
    prior = data.prior(train)

    def plain(given: Prepared) -> list[Learner]:
        return [calibrated(name, prior) for name in FITS]

    def latent(given: Prepared) -> list[Learner]:
        return [latent_learner(given, name, train, query, hurry) for name in MODELS]

    results = dict[str, Result]()
    for phase, learners in (("", plain), ("other latent variable models", latent)):
        for suffix, given in asked.items():
            named = [replace(one, name=one.name + suffix) for one in learners(given)]
            wanted = [learner for learner in named if learner.name in methods]
            made = fit_all(problems[suffix], wanted, scores, deadline, phase)
            results |= {result.name: result for result in made}
    return [results[name] for name in methods if name in results]


def latent_learner(
    data: Prepared,
    name: str,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    hurry: float,
) -> Learner:
    """Return a latent variable model of the study's own rows `train`, which predicts `query`."""
    s = data.settings
    steps = max(MIN_STEPS, round(hurry * min(STEPS[name], s.max_steps)))

    def answer(problem: Problem, deadline: Deadline) -> CategoricalPredictive:
        generator = restart_generator(s.seed)
        label = torch.tensor(data.label[train])
        z = data.given(train, name).cpu()
        model = models.build(s, name, z, label, data.n_classes, generator).to(data.device)
        models.fit(model, steps)
        reader, chances, *_ = settle(data, model, train, name)
        return chances.predictive(reader.place(data.given(query, name)).evidence)

    def limit(problem: Problem) -> str:
        too_many = len(train) > (DGPLVM_MAX_ROWS if name == "dgplvm" else LATENT_MAX_ROWS)
        return f"with {len(train):,} rows to learn from it takes too long." if too_many else ""

    return Learner(MODELS[name], answer, Capabilities(classes=True, missing=True), limit)


def mixed(
    data: Prepared,
    run: Classifier,
    train: Int[np.ndarray, " m"],
    query: Int[np.ndarray, " n"],
    latent: Float[np.ndarray, "n c"] | None,
) -> CategoricalPredictive:
    """Predict with the run's mixture, its GP classifier trained anew with the chosen kernels.

    Args:
        data: The run's rows.
        run: The mixture.
        train: Rows to learn from.
        query: Rows to predict.
        latent: Probabilities of the latent variable model, trained anew; None: it was left out.
    """
    assert run.gp is not None
    gp = run.gp.refit(data.seen[train], data.label[train], data.settings.seed)
    p = gp.probability(data.seen[query])
    if latent is not None:
        p = (1 - run.share) * p + run.share * doubted(latent, run.doubt)
    return decided(p, best_expected_threshold(p[:, 0]))


def plain_problem(
    data: Prepared, train: Int[np.ndarray, " m"], test: Int[np.ndarray, " t"]
) -> Problem:
    """Columns as the GP classifier sees them, without gaps; components in place of pixels."""
    rows = np.union1d(train, data.split.validation).astype(int)
    spared = np.isin(rows, data.split.validation)
    width = data.z.shape[1]
    x, new = (np.hstack([data.filled(data.z[r]), data.seen[r, width:]]) for r in (rows, test))
    if data.network is None and data.image is not None and not len(data.columns.axes):
        columns = Columns.of(x[~spared], FALLBACK, pixels=True)
        x, new = columns.forward(x), columns.forward(new)
    problem = problem_of(data, test)
    return replace(problem, x=x, y=data.label[rows], x_test=new, spared=spared)
