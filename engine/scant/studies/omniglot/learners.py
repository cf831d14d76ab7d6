"""Baselines of the report: models of one output, classifiers of strokes, and plain ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from scant.deadline import Deadline
from scant.learners.general import NEAREST, logistic
from scant.learners.learner import Capabilities, Learner, OutOfTime
from scant.learners.tool import tool
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.predictive import CategoricalPredictive, Predictive
from scant.problem import Problem
from scant.studies.omniglot import models
from scant.studies.omniglot.fitted import FittedOmniglot
from scant.studies.omniglot.models import SINGLE
from scant.studies.omniglot.prepared import Prepared
from scant.studies.omniglot.settings import MODELS

LOGISTIC_MAX_SIZE = 3e8  # rows x features x classes, summed over outputs: seconds of a fit
LINEAR_STEPS = 100
SINGLE_MAX_ROWS, SINGLE_MAX_OUTPUTS = 2000, 6
SINGLE_STEPS = 250
KIND = Capabilities(classes=True, parts=True)


def learners(fitted: FittedOmniglot) -> list[Learner]:
    """Return the classifiers in the order of the report."""
    data = fitted.data
    single = [
        Learner(MODELS[name], partial(of_single_outputs, data, name), KIND, too_many_rows)
        for name in SINGLE
        if name != data.settings.model
    ]
    return [NEAREST, *members(fitted), linear(data.image is not None), *single]


def members(fitted: FittedOmniglot) -> list[Learner]:
    """Return the fitted members of the average, the model and classifiers of strokes."""
    if fitted.average is None or not fitted.average.partners.drawn:
        return []
    model, classifiers = replace(fitted, average=None), fitted.average.partners
    predictors = {f"{MODELS[fitted.data.settings.model]} alone": model.of_features}
    predictors |= {name: partial(classifiers.ask, name) for name in classifiers.drawn}
    return [Learner(name, partial(_fitted, predict), KIND) for name, predict in predictors.items()]


def _fitted(
    predict: Callable[..., CategoricalPredictive], problem: Problem, _: Deadline
) -> CategoricalPredictive:
    return predict(problem.x_test, problem.part_test)


def of_single_outputs(
    data: Prepared, name: str, problem: Problem, deadline: Deadline
) -> CategoricalPredictive:
    """Train a model of each output alone with the run's kernel, until it converges.

    Args:
        data: Rows of the run.
        name: "g-m" or "g-a".
        problem: Rows of the outputs.
        deadline: Time of all steps.

    Raises:
        OutOfTime: The steps do not end in time.
    """
    s = data.settings
    assert problem.part is not None
    assert problem.part_test is not None
    generator = torch.Generator().manual_seed(s.seed)
    x, new = (torch.as_tensor(v).to(data.device) for v in (problem.x, problem.x_test))
    output, query = (torch.as_tensor(v).to(data.device) for v in (problem.part, problem.part_test))
    label = torch.as_tensor(problem.y - data.observed.offset[problem.part]).to(data.device)
    kernel = models.kernel_for(s, data.metadata["kernel"], x, data.image, single=True)
    prepared, sizes = kernel.prepare(x), data.sizes.tolist()
    model = models.build(s, name, kernel, prepared, output, sizes, generator)
    trainer = MOGPARTrainer(
        model, prepared, output, label, generator, batch=s.batch_size, sampled=s.sampled_classes,
        rate=s.learning_rate, horizon=models.horizon(s, SINGLE_STEPS),
    )  # fmt: skip
    for _ in deadline.units(range(SINGLE_STEPS), MODELS[name]):
        if not math.isfinite(trainer.step()):
            break
    if MODELS[name] in deadline.skipped:
        raise OutOfTime
    p = model.probabilities(kernel.prepare(new), query).detach().cpu().numpy()
    return CategoricalPredictive(p, first=data.observed.offset[problem.part_test])


def linear(images: bool) -> Learner:
    """Return a logistic regression of each output with the usual penalty (C = 1).

    Args:
        images: True if all columns, which are pixels, have one scale; else each has its own.
    """
    regression = partial(logistic, max_iter=LINEAR_STEPS, scaled=True)
    plain = tool("logistic regression", regression, "", classes=True)

    def answer(problem: Problem, deadline: Deadline) -> Predictive:
        center = problem.x.mean(0)
        scale = problem.x.std() if images else problem.x.std(0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        x, new = ((v - center) / scale for v in (problem.x, problem.x_test))
        return plain.predict(replace(problem, x=x, x_test=new), deadline)

    return replace(plain, answer=answer, limit=too_many_numbers)


def too_many_numbers(problem: Problem) -> str:
    """Return why a logistic regression takes too long; "" if it does not."""
    numbers = [float(len(rows)) * len(np.unique(problem.y[rows])) for _, rows, _ in problem.parts()]
    return _too_long(problem) if sum(numbers) * problem.x.shape[1] > LOGISTIC_MAX_SIZE else ""


def too_many_rows(problem: Problem) -> str:
    """Return why models of single outputs take too long; "" if they do not."""
    too_large = len(problem.y) > SINGLE_MAX_ROWS or len(problem.parts()) > SINGLE_MAX_OUTPUTS
    return _too_long(problem) if too_large else ""


def _too_long(problem: Problem) -> str:
    return f"with {len(problem.y):,} rows of {problem.classes:,} classes it takes too long."
