"""Final report of an omniglot run: this model, and other classifiers on the same rows."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float

from scant import metrics
from scant.deadline import NEVER, Deadline
from scant.evaluate.fitting import fit_all
from scant.evaluate.scores import metrics_of
from scant.events import Metric, Report
from scant.predictive import CategoricalPredictive
from scant.studies.omniglot import preprocessing as rows
from scant.studies.omniglot.fitted import FittedOmniglot
from scant.studies.omniglot.learners import learners
from scant.studies.omniglot.prepared import Prepared
from scant.studies.omniglot.problem import problem_of
from scant.studies.omniglot.public_alphabets import PUBLISHED
from scant.studies.published import printed

Chances = Float[np.ndarray, "n most"]
BOUND = "bound (nats a row)"
# Recall, precision and F1 of each class, weighted by its rows (3.36-3.41).
NAMES = ("recall", "precision", "F1", "mean log probability (nats)", "ECE")
RIVALS = 20_000_000  # maximum of rows times classes at once
OWN_ALPHABETS = "Ojibwe and Blackfoot, as published"  # experiment, by its name in our results


def write_report(
    fitted: FittedOmniglot,
    predictive: CategoricalPredictive,
    snapshot: dict[str, np.ndarray],
    score: float,
    deadline: Deadline = NEVER,
) -> Report:
    """Metrics of the held-out rows, arrays for the page, and the other classifiers.

    Args:
        fitted: The trained model.
        predictive: Predictions of the held-out rows.
        snapshot: Arrays of `snapshot`.
        score: Final score of training, in nats a row.
        deadline: Deadline of the other classifiers.
    """
    data = fitted.data
    test = data.test
    p, information = predictive.probabilities, predictive.information
    assert information is not None, "the model gives it"
    problem = problem_of(data, data.train, test)
    run_metrics = metrics_of(problem, problem.scored(predictive), "this run", NAMES, "run")
    metrics = [*run_metrics, Metric("this run", BOUND, score)]
    compared = learners(fitted) if data.settings.baselines and len(test) else []
    results = list(fit_all(problem, compared, NAMES, deadline, "other classifiers"))
    points = [r.predictive.point for r in results if r.predictive is not None]
    accuracies = [rows.accuracy(data.observed, test, point) for point in points]
    arrays = {
        **snapshot,
        "accuracy": rows.accuracy(data.observed, test, predictive.point),
        **rows_of(data, p),
        "test_entropy": predictive.entropy,
        "test_information": information,
        "confusion": confusion(data, p),
        "confusion_across": across(fitted),
        "compare_accuracy": np.array(accuracies).reshape(len(accuracies), len(data.sizes)),
    }
    metrics += [metric for result in results for metric in result.metrics]
    notes = tuple(filter(None, (result.note for result in results)))
    return Report((*metrics, *published(data, predictive)), arrays, notes)


def rows_of(data: Prepared, p: Chances) -> dict[str, np.ndarray]:
    """Arrays of the held-out rows, and of bins of confidence."""
    observed, test = data.observed, data.test
    label, confidence = observed.label[test], p.max(1, initial=0.0)
    best = p.argmax(1) if len(test) else label
    correct = (best == label).astype(float)
    return {
        "test_row": data.places[test],
        "test_class": observed.number[test],
        "test_predicted": observed.offset[observed.output[test]] + best,
        "test_p": p[np.arange(len(p)), label],
        "test_confidence": confidence,
        "test_right": correct,
        "test_output": observed.output[test],
        "reliability": metrics.reliability(confidence, correct),
    }


def confusion(data: Prepared, p: Chances) -> Float[np.ndarray, "c c"]:
    """Shares of predicted classes in the held-out rows of each class on the page."""
    observed, visible, test = data.observed, rows.shown(data.observed), data.test
    owner = np.repeat(np.arange(len(data.sizes)), data.sizes)[: len(visible)]
    result = np.full((len(visible), len(visible)), np.nan)
    result[owner[:, None] == owner] = 0.0
    true = observed.number[test]
    best = observed.offset[observed.output[test]] + (p.argmax(1) if len(test) else 0)
    count = np.bincount(true, minlength=data.sizes.sum())
    in_view = (true < len(visible)) & (best < len(visible))
    np.add.at(result, (true[in_view], best[in_view]), 1.0 / count[true[in_view]])
    return result


def across(fitted: FittedOmniglot) -> Float[np.ndarray, "d d"]:
    """Shares of outputs whose class has the largest mean, in the held-out rows of each output.

    Training compares only classes of one output, and no constant calibrates outputs against one
    another: this is an exploration, not a measure of training.
    """
    data = fitted.data
    d, test = len(data.sizes), data.test
    owner = torch.arange(d).repeat_interleave(torch.as_tensor(data.sizes)).numpy()
    result = np.zeros((d, d))
    step = max(1, RIVALS // int(data.sizes.sum()))
    for begin in range(0, len(test), step):
        which = test[begin : begin + step]
        best = fitted.means(which).argmax(1)
        np.add.at(result, (data.observed.output[which], owner[best]), 1.0)
    count = result.sum(1, keepdims=True)
    return np.where(count > 0, result / np.maximum(count, 1), np.nan)


def published(data: Prepared, predictive: CategoricalPredictive) -> list[Metric]:
    """Published results, if the rows are those of the publication."""
    s, observed = data.settings, data.observed
    complete = not s.shots and not s.n_classes and data.sizes.tolist() == [14, 14]
    if set(observed.outputs) != set(PUBLISHED) or not complete:
        return []
    recalls = dict(zip(observed.outputs, rows.accuracy(observed, data.test, predictive.point)))
    run_metrics = [
        Metric("this run", f"recall of {name.split('_')[0]}", float(value))
        for name, value in recalls.items()
    ]
    published_metrics = [
        Metric(_short(p.method), f"{p.metric} of {name}", p.value, p.spread, "published")
        for name in (alphabet.split("_")[0] for alphabet in observed.outputs)
        for p in printed("omniglot", f"{OWN_ALPHABETS}: {name}")
    ]
    return [*run_metrics, *published_metrics]


def _short(method: str) -> str:
    """Return a method's name without the suffix of its variant in our results."""
    return f"{method.removesuffix(', as published')} (published)"
