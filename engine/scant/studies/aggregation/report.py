"""Report of an aggregation run: scores, and baselines on the same rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float

from scant import metrics
from scant.deadline import NEVER, Deadline
from scant.evaluate.scores import COVERAGE, coverage, metrics_of
from scant.events import Metric, Report
from scant.models.mtgpa.baselines import alone, baseline
from scant.models.mtgpa.likelihoods import CATEGORICAL
from scant.models.mtgpa.prior import Data
from scant.predictive import CategoricalPredictive, ValuePredictive
from scant.predictive.scored import Scored
from scant.problem import Problem
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.fitted import FittedMTGPA, TrainingData
from scant.studies.aggregation.predictive import class_predictive, predictive
from scant.studies.aggregation.problem import held_out, problem_of
from scant.studies.aggregation.settings import COUNTED, MOST_PIECES

BASELINE_ROWS = 800  # exact inference costs their cube; with more rows baselines are left out
FIT_STEPS = 40
LEAST_SCORED = 2 * space.LEAST_TEST  # minimum rows of a task with held-out rows
SHOWN = 2000  # test rows sent to the page
CHECKED = 2000  # training rows of the aggregate check
LEAST_COUNTS, MOST_COUNTS = 20, 500  # rows of a task for a test of Poisson counts
WITHOUT_INTERVALS = ("bernoulli", CATEGORICAL)  # an observation is 0 or 1
NAMES = ("SMSE", "SNLP", "RMSE")
OF_GAUSSIAN = "SNLP of a Gaussian"  # as the authors' program scores counts
BASELINES = {
    "kriging": "area-to-point kriging, this task alone",
    "single": "exact GP on centroids, this task alone",
    "icm": "ICM on centroids",
}
DEPENDENT = {"dependent": "dependent GPs on centroids"}


def write_report(
    fitted: FittedMTGPA,
    train: TrainingData,
    problem: Problem,
    scored: Scored | None,
    deadline: Deadline = NEVER,
) -> Report:
    """Metrics of the held-out rows of the scarce task, the aggregate check, and baselines.

    Args:
        fitted: This run's model.
        train: Training data.
        problem: Problem of the scarce task.
        scored: Scored predictions of the held-out rows; None if there are too few.
        deadline: Deadline of the baselines.
    """
    number = fitted.task(fitted.scarce)
    rows, notes, arrays = list[Metric](), list[str](), dict[str, np.ndarray]()
    if scored is not None:
        rows, arrays = on_test_rows(fitted, train, problem, scored, deadline)
    else:
        notes.append(nothing_held_out(fitted.scarce, int((train.observed.task == number).sum())))
    check = agreement(fitted, train.data)
    numeric = [t for t, kind in enumerate(fitted.kinds) if kind not in WITHOUT_INTERVALS]
    inside = check[4][np.isin(check[0], numeric)]
    if len(inside):
        share_inside = float(inside.mean())
        rows.append(
            Metric("this run", "observed averages inside their 95% interval", 100 * share_inside)
        )
        notes.append(
            f"Aggregate check: {100 * share_inside:.0f}% of the observed averages lie within the "
            "95% interval of the posterior average over their own box."
        )
    notes += overdispersed(fitted, train.data)
    empty = np.empty(0)
    for name in ("test_y", "test_mean", "test_std"):
        arrays.setdefault(name, empty)
    arrays.setdefault("coverage", np.empty((2, 0)))
    return Report(tuple(rows), {**fitted.snapshot(), **arrays, "check": check}, tuple(notes))


def nothing_held_out(task: str, rows: int) -> str:
    """Sentence on why a task with `rows` rows has no scores, and what to do."""
    if rows < LEAST_SCORED:
        return (
            f"Task {task!r} has {rows} {'row' if rows == 1 else 'rows'}, all used for training, "
            f"so there is nothing to score; with {LEAST_SCORED} rows or more, some are held out."
        )
    return (
        "No row is held out, so there is nothing to score; mark some rows 'test' in a column "
        "'split' to keep them out of training."
    )


def overdispersed(fitted: FittedMTGPA, data: Data) -> list[str]:
    """Sentences on Poisson tasks whose counts vary about the fitted rates by more than chance.

    The statistic is the mean of (y - mean)^2 / mean over rows. It is below 1 where rates follow the
    counts; three deviations (of Poisson counts) above 1 count as overdispersion.
    """
    notes = []
    for t, kind in enumerate(fitted.kinds):
        task_data = data.of_task(t)
        if kind != "poisson" or len(task_data.y) < LEAST_COUNTS:
            continue
        indices = torch.linspace(0, len(task_data.y) - 1, min(len(task_data.y), MOST_COUNTS)).long()
        task_data = task_data.at(indices.to(task_data.y.device))
        prediction = fitted.model.predict(task_data.supports, t, task_data.exposures())
        rate = prediction.mean.clamp(min=1e-6)
        ratio = float(((task_data.y - rate).square() / rate).mean())
        deviation = float(((2 + (1 / rate).mean()) / len(rate)).sqrt())
        if ratio > 1 + 3 * deviation:
            notes.append(
                f"Counts of {fitted.tasks[t]} vary {ratio:.1f} times as much about the fitted "
                "rates as Poisson counts would; choose likelihood negative_binomial, whose "
                "intervals are wider."
            )
    return notes


def on_test_rows(
    fitted: FittedMTGPA, train: TrainingData, problem: Problem, scored: Scored, deadline: Deadline
) -> tuple[list[Metric], dict[str, np.ndarray]]:
    """Scores of this run and of the baselines, and the predictions."""
    prediction, visible = scored.predictive, slice(0, SHOWN)
    if isinstance(prediction, CategoricalPredictive):
        p = prediction.probabilities[:, 0]
        rarest = (problem.y_test == 0).astype(float)
        arrays = {
            "test_y": rarest[visible],
            "test_mean": p[visible],
            "test_std": np.sqrt(p * (1 - p))[visible],
        }
        return metrics_of(problem, scored, "this run", problem.scores, "run"), arrays
    assert isinstance(prediction, ValuePredictive)
    names = [
        n for n in NAMES if n != "SNLP" or len(problem.y) > 1
    ]  # needs the variance of the training values
    rows = metrics_of(problem, scored, "this run", (*names, *COVERAGE), "run")
    if fitted.kinds[fitted.task(fitted.scarce)] in COUNTED and len(problem.y) > 1:
        density = metrics.log_density(problem.y_test, prediction.mean, prediction.variance)
        value = metrics.snlp(problem.y_test, density, problem.y)
        rows.append(Metric("this run", OF_GAUSSIAN, value))
    rows += baselines(fitted, train, problem, deadline)
    arrays = {
        "test_y": problem.y_test[visible],
        "test_mean": prediction.mean[visible],
        "test_std": prediction.std[visible],
    }
    return rows, {**arrays, "coverage": coverage(scored)}


def answer_of(fitted: FittedMTGPA, train: TrainingData) -> ValuePredictive | CategoricalPredictive:
    """Predict the held-out rows of the scarce task."""
    number, observed = fitted.task(fitted.scarce), train.observed
    test = held_out(train, number)
    supports = space.supports_of(observed, test, fitted.device)
    if fitted.scarce in fitted.classes:
        return class_predictive(fitted, supports, number)
    exposure = torch.as_tensor(observed.exposure[test]).to(fitted.device)
    return predictive(fitted, supports, number, exposure, fitted.known(observed, test, number))


def baselines(
    fitted: FittedMTGPA,
    train: TrainingData,
    problem: Problem,
    deadline: Deadline = NEVER,
    names: Mapping[str, str] = BASELINES,
    most_rows: float = BASELINE_ROWS,
) -> list[Metric]:
    """Exact models on the same training rows, if all tasks are Gaussian and rows are few."""
    if any(kind != "gaussian" for kind in fitted.kinds) or len(train.data.y) > most_rows:
        return []
    pieces = 1 if train.observed.inside is None else train.observed.inside.shape[1]
    if pieces > 1 and pieces * len(train.data.y) > MOST_PIECES:
        return []
    number = fitted.task(fitted.scarce)
    scale, rows = fitted.scale[number], []
    query = fitted.data_of(train.observed, held_out(train, number))
    d, split = len(fitted.dims), fitted.model.prior.split
    data, query = (part._replace(supports=split(part.supports)[0]) for part in (train.data, query))
    label = "comparing with baselines"
    for name in deadline.units(names, "baselines", label=label):
        if name in ("kriging", "single"):
            train_data, task = alone(data, number), 0
            if len(train_data.y) < 3:
                continue
        elif len(fitted.kinds) > 1:
            train_data, task = data, number
        else:
            continue
        generator = torch.Generator().manual_seed(fitted.settings.seed)
        model = baseline(name, train_data, d, generator)
        model.fit(FIT_STEPS)
        prediction = model.predict(query.supports, task)
        mean = scale.offset + scale.factor * prediction.mean.cpu().numpy()
        density = model.log_predictive(query._replace(task=torch.full_like(query.task, task)))
        density = density.detach().cpu().numpy() - np.log(scale.factor)
        values = (
            metrics.smse(problem.y_test, mean),
            metrics.snlp(problem.y_test, density, problem.y),
            metrics.rmse(problem.y_test, mean),
        )
        rows += [
            Metric(names[name], metric, value, source="baseline")
            for metric, value in zip(NAMES, values)
        ]
    return rows


def slow_baselines(fitted: FittedMTGPA, train: TrainingData) -> list[Metric]:
    """Baselines too slow for a page's run: dependent GPs, and all if rows are many."""
    problem = problem_of(train, fitted)
    names = DEPENDENT if len(train.data.y) <= BASELINE_ROWS else {**BASELINES, **DEPENDENT}
    return baselines(fitted, train, problem, names=names, most_rows=math.inf)


def agreement(fitted: FittedMTGPA, data: Data) -> Float[np.ndarray, "5 n"]:
    """Compare the posterior average over each observed box with the observation.

    Rows of the result: task, observed value, posterior mean of the average, deviation of a new
    observation, 1 where the 95% interval contains the observation.
    """
    rows = np.arange(len(data.y))
    if len(rows) > CHECKED:
        rows = np.linspace(0, len(rows) - 1, CHECKED).astype(int)
    chosen = data.at(torch.as_tensor(rows).to(fitted.device))
    result = fitted.model.aggregate_check(chosen)
    task = chosen.task.cpu().numpy()
    offset, factor = space.of_rows(fitted.scale, task)
    if fitted.settings.rate_per:
        exposure = chosen.exposures()
        units = [fitted.unit(t, exposure) for t in range(len(fitted.kinds))]
        table = torch.stack([torch.as_tensor(u).to(exposure).expand_as(exposure) for u in units])
        factor = table[chosen.task, torch.arange(len(task))].cpu().numpy()
    values = chosen.y.clone()
    for t, likelihood in enumerate(fitted.model.likelihoods):
        values[chosen.task == t] = likelihood.value(chosen.y[chosen.task == t])
    y = offset + factor * values.cpu().numpy()
    mean = offset + factor * result.prediction.mean.cpu().numpy()
    variance = (result.prediction.variance + result.prediction.noise).cpu().numpy()
    inside = np.abs(result.error.cpu().numpy()) <= 1.959964
    return np.stack([task.astype(float), y, mean, factor * np.sqrt(variance), inside.astype(float)])
