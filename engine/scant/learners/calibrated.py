"""Classifiers weighted by class, with probabilities and a threshold from rows not learned from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.svm import SVC

from scant.deadline import Deadline
from scant.learners.learner import Capabilities, Learner, lacks_classes
from scant.predictive import CategoricalPredictive
from scant.problem import Problem

PENALTIES = (1.0, 10.0, 100.0)  # of the SVM, between which held-out rows choose
WIDTHS = (0.3, 1.0, 3.0)  # its gamma, in parts of 1 / (columns x variance)
USUAL = (10.0, 1.0)
LOGISTIC_STEPS = 500

Rows = Float[np.ndarray, "_ k"]
Labels = Int[np.ndarray, " _"]
Evidence = Float[np.ndarray, "n c"]


class CalibratedClassifier(NamedTuple):
    """From evidence to probabilities: softmax(evidence weights + offset + ln prior)."""

    weights: Float[np.ndarray, "c c"]
    offset: Float[np.ndarray, " c"]
    prior: Float[np.ndarray, " c"]
    threshold: float = float("nan")  # of class 0's probability; NaN: the most probable class

    @classmethod
    def fit(
        cls, evidence: Evidence, label: Int[np.ndarray, " n"], prior: Float[np.ndarray, " c"]
    ) -> CalibratedClassifier:
        """Fit a logistic regression of the classes on the evidence (Platt 1999), and a threshold.

        Args:
            evidence: Evidence of rows that were not learned from; without any, nothing is fitted.
            label: Classes of these rows.
            prior: Class probabilities that the result is for.
        """
        c = len(prior)
        if not len(evidence):
            return cls(np.eye(c), np.zeros(c), prior)
        result = LogisticRegression(C=100.0, max_iter=1000).fit(evidence, label)
        weights, offset = np.zeros((c, c)), np.full(c, -30.0)
        if len(result.classes_) == 2:
            low, high = result.classes_
            weights[:, high], offset[[low, high]] = result.coef_[0], [0.0, result.intercept_[0]]
        else:
            weights[:, result.classes_], offset[result.classes_] = result.coef_.T, result.intercept_
        share = np.bincount(label, minlength=c) / len(label)
        offset = offset - np.log(np.maximum(share, 1e-12))
        return cls(weights, offset, prior).with_threshold(evidence, label)

    def with_threshold(
        self, evidence: Evidence, label: Int[np.ndarray, " n"]
    ) -> CalibratedClassifier:
        """Return the classifier with the threshold of the best F1 for rows not learned from."""
        if not len(evidence):
            return self
        return self._replace(threshold=best_threshold(self.of(evidence)[:, 0], label == 0))

    def of(self, evidence: Evidence) -> Evidence:
        """Return the probabilities of the classes."""
        odds = evidence @ self.weights + self.offset + np.log(np.maximum(self.prior, 1e-300))
        odds = np.exp(odds - odds.max(1, keepdims=True, initial=-np.inf))
        return np.asarray(odds / odds.sum(1, keepdims=True))

    def predictive(self, evidence: Evidence) -> CategoricalPredictive:
        """Return probabilities and decisions."""
        return decided(self.of(evidence), self.threshold)


def decided(p: Evidence, threshold: float) -> CategoricalPredictive:
    """Decide for class 0 from a threshold on its probability; NaN: for the most probable class."""
    if np.isnan(threshold):
        return CategoricalPredictive(p, p.argmax(1))
    decision = np.where(p[:, 0] >= threshold, 0, 1 + p[:, 1:].argmax(1))
    return CategoricalPredictive(p, decision, threshold=threshold)


def best_threshold(p: Float[np.ndarray, " v"], rare: Bool[np.ndarray, " v"]) -> float:
    """Return the threshold of the best F1, half way to the next lower probability."""
    order = np.argsort(-p, kind="stable")
    hits = np.cumsum(rare[order])
    f1 = 2 * hits / (np.arange(1, len(p) + 1) + rare.sum())
    cut = np.append(p[order][:-1] > p[order][1:], True)  # equal ones cannot be parted
    best = int(np.argmax(np.where(cut, f1, -1.0)))
    low = p[order][best + 1] if best + 1 < len(p) else 0.0
    return float((p[order][best] + low) / 2)


def weighted_svm(x: Rows, label: Labels, how: tuple[float, float]) -> SVC:
    """Fit an RBF SVM that weighs classes inversely to their rows.

    Args:
        x: Rows.
        label: Their classes.
        how: Penalty C, and gamma in parts of 1 / (columns x variance).
    """
    gamma = how[1] / (x.shape[1] * max(float(x.var()), 1e-12))
    return SVC(C=how[0], gamma=gamma, class_weight="balanced").fit(x, label)


def best_svm(
    x: Rows, label: Labels, held: Rows, held_label: Labels, n_classes: int
) -> tuple[SVC, tuple[float, float]]:
    """Fit SVMs of a small grid; the best average precision of class 0 on held-out rows decides.

    Without such rows the usual one is fitted.
    """
    if not len(held):
        return weighted_svm(x, label, USUAL), USUAL
    grid = [(penalty, width) for penalty in PENALTIES for width in WIDTHS]
    made = [weighted_svm(x, label, how) for how in grid]
    scores = [
        average_precision_score(held_label == 0, decisions(machine, held, n_classes)[:, 0])
        for machine in made
    ]
    best = int(np.argmax(scores))
    return made[best], grid[best]


def decisions(machine: Any, x: Rows, n_classes: int) -> Float[np.ndarray, "_ c"]:
    """Return the evidence for each class; of two classes, the same against and for."""
    if not len(x):  # scikit-learn refuses an empty array
        return np.empty((0, n_classes))
    result = np.asarray(machine.decision_function(x), dtype=np.float64)
    return np.stack([-result, result], 1) if n_classes == 2 else result


def _svm(
    x: Rows, label: Labels, held: Rows, held_label: Labels, c: int
) -> tuple[SVC, Float[np.ndarray, " k"]]:
    return best_svm(x, label, held, held_label, c)[0], np.ones(x.shape[1])


def _logistic(
    x: Rows, label: Labels, *_: Any
) -> tuple[LogisticRegression, Float[np.ndarray, " k"]]:
    scale = np.where(x.std(0) > 1e-9, x.std(0), 1.0)
    model = LogisticRegression(class_weight="balanced", max_iter=LOGISTIC_STEPS)
    return model.fit(x / scale, label), scale


FITS: dict[str, Callable[..., tuple[Any, Float[np.ndarray, " k"]]]] = {
    "weighted SVM": _svm,
    "weighted logistic regression": _logistic,
}


def calibrated(name: str, prior: Float[np.ndarray, " c"] | None = None) -> Learner:
    """Return a classifier that fits to some rows and is calibrated with those that are spared.

    Args:
        name: "weighted SVM" or "weighted logistic regression".
        prior: Class probabilities that the predictions are for; None: the shares of the rows.
    """

    def answer(problem: Problem, _: Deadline) -> CategoricalPredictive:
        spared = np.zeros(len(problem.y), bool) if problem.spared is None else problem.spared
        x, label, c = problem.x[~spared], problem.y[~spared], problem.classes
        model, scale = FITS[name](x, label, problem.x[spared], problem.y[spared], c)
        held, query = (
            decisions(model, rows / scale, c) for rows in (problem.x[spared], problem.x_test)
        )
        share = np.bincount(label, minlength=c) / len(label) if prior is None else prior
        return CalibratedClassifier.fit(held, problem.y[spared], share).predictive(query)

    return Learner(name, answer, Capabilities(classes=True), lacks_classes)
