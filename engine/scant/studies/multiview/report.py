"""The figures of a multiview run: ours, other methods on the same rows and on other splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import ttest_rel

from scant import metrics
from scant.deadline import NEVER, Deadline
from scant.evaluate.fitting import fit_all
from scant.evaluate.scores import COVERAGE, coverage, scores_of
from scant.events import Metric, Report
from scant.predictive import CategoricalPredictive, MixturePredictive
from scant.predictive.scored import Scored
from scant.studies.multiview import splits as rows
from scant.studies.multiview import survival
from scant.studies.multiview.fitted import FittedMultiview
from scant.studies.multiview.learners import learner_of, notes, predicted
from scant.studies.multiview.prepared import Prepared, Told, moments
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.problem import problem_of
from scant.studies.multiview.settings import MODELS
from scant.studies.published import printed

BOUND = "bound (nats a row)"
NAMES = {
    "classification": (
        "F1", "precision", "recall", "average precision", "accuracy",
        "mean log probability (nats)", "ECE",
    ),
    "regression": ("NMSE", "NLPD", *COVERAGE),
}  # fmt: skip
THRESHOLDS = np.linspace(0, 1, 101)
LEAST_SPLITS = 3  # for a test of the difference
EVENTS, SO2 = "cell events, as published", "SO2, as published"  # by name of our results
PUBLISHED = {  # by task: experiment, and whose data
    "classification": (EVENTS, "osteosarcoma films"),
    "regression": (SO2, "SO2 in Belfast"),
}


def write_report(
    fitted: FittedMultiview,
    snapshot: dict[str, np.ndarray],
    score: float,
    deadline: Deadline = NEVER,
) -> Report:
    """Metrics of the held-out rows by every method, arrays for the page.

    Args:
        fitted: The model, its training ended.
        snapshot: What a page shows of it.
        score: What training came to, in nats a row.
        deadline: Of the other methods, which a half of it is for, and of further splits.
    """
    data = fitted.data
    test = data.test
    own = fitted.told(data.observed.x[test])
    methods = data.metadata["methods"]
    everyone = {"this run": own}
    split = data.train, test, data.transforms
    learners = [learner_of(data, name, *split) for name in methods[1:]]
    for result in fit_all(data.problem(*split), learners, (), deadline.share(0.5), "other methods"):
        if isinstance(result.predictive, Told):
            everyone[result.name] = result.predictive
    cuts = dict.fromkeys(methods, 0.5) | {"this run": fitted.threshold}
    scores = {name: figures(data, test, told, cuts[name]) for name, told in everyone.items()}
    metrics = [
        Metric(name, kind, value, source="run" if name == "this run" else "baseline")
        for name, found in scores.items()
        for kind, value in found.items()
    ]
    metrics.insert(len(scores["this run"]), Metric("this run", BOUND, score))
    word = data.metadata["score"]
    table = repeated(
        data, cuts, {n: f.get(word, float("nan")) for n, f in scores.items()}, deadline
    )
    tests = t_tests(table)
    return Report(
        (*metrics, *spreads(data, methods, table, tests), *published(data)),
        {
            **snapshot,
            **arrays_of(fitted, own),
            "pr": pr(data, everyone, methods),
            "scores": table,
            "t_test": tests,
        },
        notes(data),
    )


def repeated(
    data: Prepared, methods: Mapping[str, float], first: dict[str, float], deadline: Deadline
) -> Float[np.ndarray, "m r"]:
    """Main score of every method on the run's split, and on further random ones where none is
    marked; `methods` are names and thresholds."""
    s = data.settings
    several = s.baselines and "marked" not in data.metadata
    table = np.full((len(methods), s.repeats if several else 1), np.nan)
    table[:, 0], done = [first.get(name, np.nan) for name in methods], 1
    for r in deadline.units(range(1, table.shape[1]), "further splits"):
        train, test = rows.split(s, data.observed, r)
        transforms = ViewTransforms.at(data.observed, data.transforms.names, train, s.n_components)
        for i, name in enumerate(methods):
            result = predicted(data, name, train, test, transforms)
            table[i, r] = main(data, test, result, methods[name])
        done = r + 1
    return table[:, :done]


def t_tests(table: Float[np.ndarray, "m r"]) -> Float[np.ndarray, " m"]:
    """p of paired t-tests of the first method against each, over the splits."""
    result = np.full(len(table), np.nan)
    for i in range(1, len(table)):
        both = np.isfinite(table[[0, i]]).all(0)
        if both.sum() >= LEAST_SPLITS and np.ptp(table[0, both] - table[i, both]) > 0:
            result[i] = ttest_rel(table[0, both], table[i, both]).pvalue
    return result


def spreads(
    data: Prepared,
    methods: list[str],
    table: Float[np.ndarray, "m r"],
    tests: Float[np.ndarray, " m"],
) -> list[Metric]:
    """Mean and deviation of the main score over the splits, and p of the tests."""
    count = table.shape[1]
    if count < 2:
        return []
    name = f"{data.metadata['score']}, {count} splits"
    results = [
        Metric(
            method,
            name,
            float(np.nanmean(scores)),
            float(np.nanstd(scores, ddof=1)),
            "baseline" if i else "run",
        )
        for i, (method, scores) in enumerate(zip(methods, table))
        if np.isfinite(scores).any()
    ]
    against = f"p of a paired t-test against {MODELS[data.settings.model]}"
    return results + [
        Metric(method, against, float(p), source="baseline")
        for method, p in zip(methods, tests)
        if np.isfinite(p)
    ]


def main(data: Prepared, test: Int[np.ndarray, " t"], told: Told, threshold: float = 0.5) -> float:
    """The main score of the task: F1, NMSE, or NMSE by patient on the log scale."""
    return figures(data, test, told, threshold).get(data.metadata["score"], float("nan"))


def figures(
    data: Prepared, test: Int[np.ndarray, " t"], told: Told, threshold: float = 0.5
) -> dict[str, float]:
    """All scores of the task.

    Args:
        data: The run's rows.
        test: The rows that are predicted.
        told: What a method says of them, on the scale of learning.
        threshold: Of the probability, from which a row is of class 1.
    """
    if data.observed.task == "survival":
        return of_patients(survival.patients(data.observed, test, *moments(told)))
    problem, names = problem_of(data, data.train, test), NAMES[data.observed.task]
    scored = problem.scored(data.predictive(told, threshold))
    return dict(zip(names, scores_of(problem, scored, names)))


def of_patients(cohort: survival.Patients) -> dict[str, float]:
    """Scores by patient: errors of those who died, order and curve of all."""
    died = cohort.event
    measured = {
        "concordance": metrics.concordance(cohort.time, died, cohort.mean),
        "p of the log-rank test": survival.log_rank(cohort),
        "p of D-calibration": survival.calibrated(cohort),
    }
    if died.sum() < 2 or np.ptp(cohort.time[died]) == 0:
        return measured
    y, mean = np.log(cohort.time[died]), cohort.mean[died]
    shares = metrics.coverage(y, mean, cohort.std[died] ** 2)[1]
    return {
        rows.SCORE["survival"]: metrics.nmse(y, mean),
        "NMSE by patient": metrics.nmse(cohort.time[died], np.exp(mean)),
        "NLPD (log time)": metrics.nlpd(y, mean, cohort.std[died] ** 2),
        **measured,
        **{name: 100 * share for name, share in zip(COVERAGE, shares)},
    }


def arrays_of(fitted: FittedMultiview, own: Told) -> dict[str, np.ndarray]:
    """The held-out rows, one by one, and how far the run's uncertainty can be believed."""
    data = fitted.data
    test, task = data.test, data.observed.task
    predicted_, std, low, high = data.in_table_units(own)
    pit, cover, reliable = np.empty(0), np.empty((2, 0)), np.empty((3, 0))
    if isinstance(own, CategoricalPredictive):
        reliable = metrics.reliability(own.probabilities[:, 1], data.observed.target[test])
    else:
        scored = Scored(data.y[test], own)
        if task == "survival":
            result = survival.patients(data.observed, test, *moments(own))
            died = result.event
            times = MixturePredictive.gaussian(result.mean[died], result.std[died] ** 2)
            scored = Scored(np.log(result.time[died]), times)
        if len(scored):
            pit, cover = scored.pit, coverage(scored)
    whole, part = fitted.doubt(data.observed.x[test])
    classes = task == "classification"
    share = np.empty(0) if classes else part / whole
    std_told = std[: len(share)]  # none where the model does not tell the two apart
    return {
        "test_index": data.places[test],
        "test_truth": data.observed.target[test],
        "test_predicted": predicted_,
        "test_std": std,
        "test_low": low,
        "test_high": high,
        "test_entropy": whole if classes else np.empty(0),
        "test_information": part if classes else np.empty(0),
        "test_std_model": std_told * np.sqrt(share),
        "test_std_noise": std_told * np.sqrt(1 - share),
        "pit": pit,
        "coverage": cover,
        "reliability": reliable,
    }


def pr(
    data: Prepared, everyone: dict[str, Told], methods: Sequence[str]
) -> Float[np.ndarray, "m 3 h"]:
    """Threshold, precision and recall of every method; precision is 1 where nothing is named.

    Those of a method that was left out are NaN.
    """
    if data.observed.task != "classification":
        return np.empty((len(methods), 3, 0))
    y = data.observed.target[data.test]
    results = []
    for name in methods:
        if name not in everyone:
            results.append(np.full((3, len(THRESHOLDS)), np.nan))
            continue
        p = moments(everyone[name])[0]
        named = p[:, None] >= THRESHOLDS
        right = (named & (y[:, None] == 1)).sum(0)
        count = named.sum(0)
        precision = np.where(count > 0, right / np.maximum(count, 1), 1.0)
        results.append(np.stack([THRESHOLDS, precision, right / max(int(y.sum()), 1)]))
    return np.array(results)


def published(data: Prepared) -> list[Metric]:
    """The publication's figures of the same task, each named as of other data."""
    if data.observed.task not in PUBLISHED:
        return []
    experiment, whose = PUBLISHED[data.observed.task]
    return [
        Metric(f"{p.method} (published, {whose})", p.metric, p.value, p.spread, "published")
        for p in printed("multiview", experiment)
    ]
