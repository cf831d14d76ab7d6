"""The figures an omniglot run ends with: ours, and other classifiers on the same rows."""

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
# Recall, precision and F1 are those of each class, weighted by its rows (3.36-3.41).
NAMES = ("recall", "precision", "F1", "mean log probability (nats)", "ECE")
RIVALS = 20_000_000  # of rows times classes that compete at once
OWN_ALPHABETS = "Ojibwe and Blackfoot, as published"  # experiment, by name of our results


def write_report(
    fitted: FittedOmniglot,
    predictive: CategoricalPredictive,
    snapshot: dict[str, np.ndarray],
    score: float,
    deadline: Deadline = NEVER,
) -> Report:
    """Metrics of the held-out rows, arrays for the page, and the other classifiers.

    Args:
        fitted: The model, its training ended.
        predictive: Of the held-out rows.
        snapshot: What a page shows of it.
        score: What training came to, in nats a row.
        deadline: Of the other classifiers.
    """
    data = fitted.data
    test = data.test
    p, information = predictive.probabilities, predictive.information
    assert information is not None, "the model gives it"
    problem = problem_of(data, data.train, test)
    own = metrics_of(problem, problem.scored(predictive), "this run", NAMES, "run")
    metrics = [*own, Metric("this run", BOUND, score)]
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
    """The held-out rows, one by one and by bins of confidence."""
    observed, test = data.observed, data.test
    label, sure = observed.label[test], p.max(1, initial=0.0)
    best = p.argmax(1) if len(test) else label
    right = (best == label).astype(float)
    return {
        "test_row": data.places[test],
        "test_class": observed.number[test],
        "test_predicted": observed.offset[observed.output[test]] + best,
        "test_p": p[np.arange(len(p)), label],
        "test_confidence": sure,
        "test_right": right,
        "test_output": observed.output[test],
        "reliability": metrics.reliability(sure, right),
    }


def confusion(data: Prepared, p: Chances) -> Float[np.ndarray, "c c"]:
    """Of each shown class's held-out rows, the share taken for each class of its output."""
    observed, shown, test = data.observed, rows.shown(data.observed), data.test
    owner = np.repeat(np.arange(len(data.sizes)), data.sizes)[: len(shown)]
    result = np.full((len(shown), len(shown)), np.nan)
    result[owner[:, None] == owner] = 0.0
    true = observed.number[test]
    best = observed.offset[observed.output[test]] + (p.argmax(1) if len(test) else 0)
    count = np.bincount(true, minlength=data.sizes.sum())
    kept = (true < len(shown)) & (best < len(shown))
    np.add.at(result, (true[kept], best[kept]), 1.0 / count[true[kept]])
    return result


def across(fitted: FittedOmniglot) -> Float[np.ndarray, "d d"]:
    """Of each output's held-out rows, the outputs whose class has the largest mean of all.

    The model is trained to tell the classes of one output apart, and no constant holds outputs
    against one another: an exploration, not a measure of what was trained.
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
    """The publication's figures, where the rows are the publication's."""
    s, observed = data.settings, data.observed
    whole = not s.shots and not s.n_classes and data.sizes.tolist() == [14, 14]
    if set(observed.outputs) != set(PUBLISHED) or not whole:
        return []
    own = dict(zip(observed.outputs, rows.accuracy(observed, data.test, predictive.point)))
    mine = [
        Metric("this run", f"recall of {name.split('_')[0]}", float(value))
        for name, value in own.items()
    ]
    theirs = [
        Metric(_short(p.method), f"{p.metric} of {name}", p.value, p.spread, "published")
        for name in (alphabet.split("_")[0] for alphabet in observed.outputs)
        for p in printed("omniglot", f"{OWN_ALPHABETS}: {name}")
    ]
    return [*mine, *theirs]


def _short(method: str) -> str:
    """Return a method's name without the words by which our results tell variants apart."""
    return f"{method.removesuffix(', as published')} (published)"
