"""The figures an aggregation run ends with: ours, and baselines on the same rows."""

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
LEAST_SCORED = 2 * space.LEAST_TEST  # rows of a task, of which some are held out
SHOWN = 2000  # test rows that travel to the page
CHECKED = 2000  # training rows of the aggregate check
LEAST_COUNTS, MOST_COUNTS = 20, 500  # rows of a task that tell whether counts are Poisson
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
        train: What it has learned from.
        problem: Of the scarce task.
        scored: What the model says of the held-out rows; None: there are too few.
        deadline: Of baselines.
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
        held = float(inside.mean())
        rows.append(Metric("this run", "observed averages inside their 95% interval", 100 * held))
        notes.append(
            f"Aggregate check: {100 * held:.0f}% of the observed averages lie within the 95% "
            "interval of the posterior average over their own box."
        )
    notes += overdispersed(fitted, train.data)
    empty = np.empty(0)
    for name in ("test_y", "test_mean", "test_std"):
        arrays.setdefault(name, empty)
    arrays.setdefault("coverage", np.empty((2, 0)))
    return Report(tuple(rows), {**fitted.snapshot(), **arrays, "check": check}, tuple(notes))


def nothing_held_out(task: str, rows: int) -> str:
    """Why there are no scores of a task that has so many rows, and what to do."""
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

    By the mean of (y - mean)^2 / mean over rows: it is below 1 where rates follow the counts, and
    is counted as more where it is by three of its deviations above 1, those of Poisson counts.
    """
    notes = []
    for t, kind in enumerate(fitted.kinds):
        own = data.of_task(t)
        if kind != "poisson" or len(own.y) < LEAST_COUNTS:
            continue
        few = torch.linspace(0, len(own.y) - 1, min(len(own.y), MOST_COUNTS)).long()
        own = own.at(few.to(own.y.device))
        told = fitted.model.predict(own.supports, t, own.exposures())
        rate = told.mean.clamp(min=1e-6)
        ratio = float(((own.y - rate).square() / rate).mean())
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
    """Scores of this run and of the baselines, and the predictions themselves."""
    own, s = scored.predictive, slice(0, SHOWN)
    if isinstance(own, CategoricalPredictive):
        p = own.probabilities[:, 0]
        rarest = (problem.y_test == 0).astype(float)
        arrays = {"test_y": rarest[s], "test_mean": p[s], "test_std": np.sqrt(p * (1 - p))[s]}
        return metrics_of(problem, scored, "this run", problem.scores, "run"), arrays
    assert isinstance(own, ValuePredictive)
    names = [n for n in NAMES if n != "SNLP" or len(problem.y) > 1]  # measured by their variance
    rows = metrics_of(problem, scored, "this run", (*names, *COVERAGE), "run")
    if fitted.kinds[fitted.task(fitted.scarce)] in COUNTED and len(problem.y) > 1:
        density = metrics.log_density(problem.y_test, own.mean, own.variance)
        value = metrics.snlp(problem.y_test, density, problem.y)
        rows.append(Metric("this run", OF_GAUSSIAN, value))
    rows += baselines(fitted, train, problem, deadline)
    arrays = {"test_y": problem.y_test[s], "test_mean": own.mean[s], "test_std": own.std[s]}
    return rows, {**arrays, "coverage": coverage(scored)}


def answer_of(fitted: FittedMTGPA, train: TrainingData) -> ValuePredictive | CategoricalPredictive:
    """What the run says of the held-out rows of the scarce task."""
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
    """Exact models on the same training rows, where all is Gaussian and the rows are not many."""
    if any(kind != "gaussian" for kind in fitted.kinds) or len(train.data.y) > most_rows:
        return []
    pieces = 1 if train.observed.inside is None else train.observed.inside.shape[1]
    if pieces > 1 and pieces * len(train.data.y) > MOST_PIECES:
        return []
    number = fitted.task(fitted.scarce)
    scale, rows = fitted.scale[number], []
    own = fitted.data_of(train.observed, held_out(train, number))
    d, split = len(fitted.dims), fitted.model.prior.split
    data, own = (part._replace(supports=split(part.supports)[0]) for part in (train.data, own))
    label = "comparing with baselines"
    for name in deadline.units(names, "baselines", label=label):
        if name in ("kriging", "single"):
            given, task = alone(data, number), 0
            if len(given.y) < 3:
                continue
        elif len(fitted.kinds) > 1:
            given, task = data, number
        else:
            continue
        generator = torch.Generator().manual_seed(fitted.settings.seed)
        model = baseline(name, given, d, generator)
        model.fit(FIT_STEPS)
        prediction = model.predict(own.supports, task)
        mean = scale.offset + scale.factor * prediction.mean.cpu().numpy()
        density = model.log_predictive(own._replace(task=torch.full_like(own.task, task)))
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
    """Those that a page's run has no time for: dependent GPs, and all where rows are many."""
    problem = problem_of(train, fitted)
    names = DEPENDENT if len(train.data.y) <= BASELINE_ROWS else {**BASELINES, **DEPENDENT}
    return baselines(fitted, train, problem, names=names, most_rows=math.inf)


def agreement(fitted: FittedMTGPA, data: Data) -> Float[np.ndarray, "5 n"]:
    """Does the posterior average over each observed box return the observation?

    Rows of the answer: task, observed value, posterior mean of the average, deviation of a new
    observation, 1 where the 95% interval holds the observation.
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
    held = np.abs(result.error.cpu().numpy()) <= 1.959964
    return np.stack([task.astype(float), y, mean, factor * np.sqrt(variance), held.astype(float)])
