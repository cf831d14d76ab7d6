"""Compared methods: other models, and methods for views."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int

from scant.deadline import Deadline
from scant.learners import views
from scant.learners.learner import Capabilities, Learner
from scant.problem import Problem
from scant.studies.multiview import splits as rows
from scant.studies.multiview.partners import Average
from scant.studies.multiview.prepared import Prepared, Told
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.settings import MODELS

PLAIN = {"best single view": views.best_view, "linear": views.ridge}
PLAIN |= dict.fromkeys(rows.AVERAGED.values(), views.averaged_kernels)


def predicted(
    data: Prepared,
    name: str,
    train: Int[np.ndarray, " n"],
    query: Int[np.ndarray, " t"],
    transforms: ViewTransforms,
) -> Told:
    """Fit a method to training rows and predict others (see `learner_of`)."""
    learner = learner_of(data, name, train, query, transforms)
    predictive = learner.predict(data.problem(train, query, transforms))
    assert isinstance(predictive, Told)
    return predictive


def learner_of(
    data: Prepared,
    name: str,
    train: Int[np.ndarray, " n"],
    query: Int[np.ndarray, " t"],
    transforms: ViewTransforms,
) -> Learner:
    """Return a method by its name; predictions are on the scale of learning (see `Prepared.ask`).

    Args:
        data: The run's rows.
        name: A model's label, or another of `splits.methods_of`; "this run": the run's model.
        train: Rows to learn from.
        query: Rows to predict.
        transforms: Transforms of the views.
    """
    if name in PLAIN:
        return PLAIN[name](name, data.settings.seed)
    model = {label: model for model, label in MODELS.items()}.get(name, data.settings.model)

    def answer(problem: Problem, _: Deadline) -> Told:
        generator = torch.Generator().manual_seed(data.settings.seed)
        learner = data.learner_of(model, train, transforms, generator)
        learner.train(data.settings.max_steps)
        x = data.observed.x[query]
        prediction = data.ask(learner, transforms, x)
        if name == "this run" and data.settings.stack:
            return Average.fit(data, train, transforms).combine(x, prediction)
        return prediction

    return Learner(name, answer, Capabilities(values=True, classes=True, censored=True))


def notes(data: Prepared) -> tuple[str, ...]:
    """Return sentences on rows that the compared methods leave out, and on methods left out."""
    methods, n = data.metadata["methods"], len(data.train)
    if len(methods) < 2:
        return ()
    result, others = [], " and ".join(methods[-2:])
    n_uncensored = len(views.known(data.problem(data.train, data.test, data.transforms)))
    if n_uncensored < n:
        result.append(
            f"{others} learn from the {n_uncensored:,} of {n:,} rows whose time is not censored."
        )
    if n_uncensored > views.MAX_ROWS:
        result.append(
            f"{others} learn from {views.MAX_ROWS:,} of {n_uncensored:,} rows, drawn at random: "
            "with more, a kernel of all pairs takes too long."
        )
    process = MODELS["student-t"]
    if (
        data.observed.task != "classification"
        and data.settings.model != "student-t"
        and process not in methods
    ):
        result.append(
            f"{process} is left out of the comparison: its cost is cubic, and {n:,} rows are too "
            "many for it."
        )
    return tuple(result)
