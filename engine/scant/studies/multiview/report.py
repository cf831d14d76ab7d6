"""Report of a multiview run: scores of all methods on the run's split and on further ones."""

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
LEAST_SPLITS = 3  # minimum for a test of the difference
EVENTS, SO2 = "cell events, as published", "SO2, as published"  # names of our experiments
PUBLISHED = {  # by task: experiment, and published data
    "classification": (EVENTS, "osteosarcoma films"),
    "regression": (SO2, "SO2 in Belfast"),
}


def write_report(
    fitted: FittedMultiview,
    snapshot: dict[str, np.ndarray],
    score: float,
    deadline: Deadline = NEVER,
) -> Report:
    """Write metrics of the held-out rows for all methods, and arrays for the page.

    Args:
        fitted: The trained model.
        snapshot: Arrays of its snapshot.
        score: Final bound in nats per row.
        deadline: Deadline of the other methods, which get half of it, and of further splits.
    """
    data = fitted.data
    test = data.test
    prediction = fitted.told(data.observed.x[test])
    methods = data.metadata["methods"]
    predictions = {"this run": prediction}
    split = data.train, test, data.transforms
    learners = [learner_of(data, name, *split) for name in methods[1:]]
    for result in fit_all(data.problem(*split), learners, (), deadline.share(0.5), "other methods"):
        if isinstance(result.predictive, Told):
            predictions[result.name] = result.predictive
    thresholds = dict.fromkeys(methods, 0.5) | {"this run": fitted.threshold}
    scores = {
        name: figures(data, test, distribution, thresholds[name])
        for name, distribution in predictions.items()
    }
    metrics = [
        Metric(name, kind, value, source="run" if name == "this run" else "baseline")
        for name, values in scores.items()
        for kind, value in values.items()
    ]
    metrics.insert(len(scores["this run"]), Metric("this run", BOUND, score))
    score_name = data.metadata["score"]
    table = repeated(
        data, thresholds, {n: f.get(score_name, float("nan")) for n, f in scores.items()}, deadline
    )
    tests = t_tests(table)
    return Report(
        (*metrics, *spreads(data, methods, table, tests), *published(data)),
        {
            **snapshot,
            **arrays_of(fitted, prediction),
            "pr": pr(data, predictions, methods),
            "scores": table,
            "t_test": tests,
        },
        notes(data),
    )


def repeated(
    data: Prepared, methods: Mapping[str, float], first: dict[str, float], deadline: Deadline
) -> Float[np.ndarray, "m r"]:
    """Main score of each method on the run's split, and on random splits if none is marked;
    `methods` are names and thresholds."""
    s = data.settings
    has_repeats = s.baselines and "marked" not in data.metadata
    table = np.full((len(methods), s.repeats if has_repeats else 1), np.nan)
    table[:, 0], n_done = [first.get(name, np.nan) for name in methods], 1
    for r in deadline.units(range(1, table.shape[1]), "further splits"):
        train, test = rows.split(s, data.observed, r)
        transforms = ViewTransforms.at(data.observed, data.transforms.names, train, s.n_components)
        for i, name in enumerate(methods):
            result = predicted(data, name, train, test, transforms)
            table[i, r] = main(data, test, result, methods[name])
        n_done = r + 1
    return table[:, :n_done]


def t_tests(table: Float[np.ndarray, "m r"]) -> Float[np.ndarray, " m"]:
    """p of paired t-tests of the first method against each other one, over the splits."""
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
    """Mean and standard deviation of the main score over the splits, and p of the tests."""
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


def main(
    data: Prepared, test: Int[np.ndarray, " t"], prediction: Told, threshold: float = 0.5
) -> float:
    """The main score of the task: F1, NMSE, or NMSE by patient on the log scale."""
    return figures(data, test, prediction, threshold).get(data.metadata["score"], float("nan"))


def figures(
    data: Prepared, test: Int[np.ndarray, " t"], prediction: Told, threshold: float = 0.5
) -> dict[str, float]:
    """All scores of the task.

    Args:
        data: The run's rows.
        test: The predicted rows.
        prediction: Predictive distributions on the scale of the model.
        threshold: Minimum probability of class 1 for the prediction of class 1.
    """
    if data.observed.task == "survival":
        return of_patients(survival.patients(data.observed, test, *moments(prediction)))
    problem, names = problem_of(data, data.train, test), NAMES[data.observed.task]
    scored = problem.scored(data.predictive(prediction, threshold))
    return dict(zip(names, scores_of(problem, scored, names)))


def of_patients(cohort: survival.Patients) -> dict[str, float]:
    """Scores by patient: errors of patients who died, concordance and curve of all."""
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


def arrays_of(fitted: FittedMultiview, prediction: Told) -> dict[str, np.ndarray]:
    """Arrays of the held-out rows, and the calibration of the run's uncertainty."""
    data = fitted.data
    test, task = data.test, data.observed.task
    predicted_, std, low, high = data.in_table_units(prediction)
    pit, cover, reliable = np.empty(0), np.empty((2, 0)), np.empty((3, 0))
    if isinstance(prediction, CategoricalPredictive):
        reliable = metrics.reliability(prediction.probabilities[:, 1], data.observed.target[test])
    else:
        scored = Scored(data.y[test], prediction)
        if task == "survival":
            result = survival.patients(data.observed, test, *moments(prediction))
            died = result.event
            times = MixturePredictive.gaussian(result.mean[died], result.std[died] ** 2)
            scored = Scored(np.log(result.time[died]), times)
        if len(scored):
            pit, cover = scored.pit, coverage(scored)
    total, removable = fitted.doubt(data.observed.x[test])
    classes = task == "classification"
    share = np.empty(0) if classes else removable / total
    split_std = std[: len(share)]  # empty if the model does not separate the two
    return {
        "test_index": data.places[test],
        "test_truth": data.observed.target[test],
        "test_predicted": predicted_,
        "test_std": std,
        "test_low": low,
        "test_high": high,
        "test_entropy": total if classes else np.empty(0),
        "test_information": removable if classes else np.empty(0),
        "test_std_model": split_std * np.sqrt(share),
        "test_std_noise": split_std * np.sqrt(1 - share),
        "pit": pit,
        "coverage": cover,
        "reliability": reliable,
    }


def pr(
    data: Prepared, predictions: dict[str, Told], methods: Sequence[str]
) -> Float[np.ndarray, "m 3 h"]:
    """Threshold, precision and recall of each method; NaN for methods that were left out.

    Precision is 1 if no row is predicted positive.
    """
    if data.observed.task != "classification":
        return np.empty((len(methods), 3, 0))
    y = data.observed.target[data.test]
    results = []
    for name in methods:
        if name not in predictions:
            results.append(np.full((3, len(THRESHOLDS)), np.nan))
            continue
        p = moments(predictions[name])[0]
        positive = p[:, None] >= THRESHOLDS
        true_positives = (positive & (y[:, None] == 1)).sum(0)
        count = positive.sum(0)
        precision = np.where(count > 0, true_positives / np.maximum(count, 1), 1.0)
        results.append(np.stack([THRESHOLDS, precision, true_positives / max(int(y.sum()), 1)]))
    return np.array(results)


def published(data: Prepared) -> list[Metric]:
    """Published scores of the same task, labeled with their data."""
    if data.observed.task not in PUBLISHED:
        return []
    experiment, source = PUBLISHED[data.observed.task]
    return [
        Metric(f"{p.method} (published, {source})", p.metric, p.value, p.spread, "published")
        for p in printed("multiview", experiment)
    ]
