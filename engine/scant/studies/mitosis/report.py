"""Report of a mitosis run: scores of the model and of other methods on the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from scant import metrics
from scant.deadline import NEVER, Deadline
from scant.evaluate.fitting import Result
from scant.evaluate.scores import metrics_of
from scant.events import Metric, Report
from scant.learners.calibrated import decided
from scant.predictive import CategoricalPredictive, Predictive
from scant.studies.mitosis.entry import PRECISIONS
from scant.studies.mitosis.fitted import FittedMitosis
from scant.studies.mitosis.learners import fit_methods
from scant.studies.mitosis.problem import OF_RARE, problem_of
from scant.studies.mitosis.settings import OURS

BOUND = "bound (nats a row)"
NAMES = (*OF_RARE, "balanced accuracy", "mean log probability (nats)", "ECE")
THRESHOLDS = np.linspace(0.0, 1.0, PRECISIONS)


def write_report(
    fitted: FittedMitosis,
    snapshot: dict[str, np.ndarray],
    score: float,
    deadline: Deadline = NEVER,
) -> Report:
    """Write metrics of the held-out rows, arrays for the page, and scores of other methods.

    Args:
        fitted: The trained model.
        snapshot: Arrays of its snapshot.
        score: Final bound in nats per row.
        deadline: Deadline of the other methods.
    """
    data = fitted.data
    test, label = data.test, data.label[data.test]
    mixture = fitted.chances
    assert mixture is not None
    p, evidence = np.empty((0, data.n_classes)), np.empty((0, data.n_classes))
    if len(test):
        positions, p = fitted.ask(data.given(test), data.seen[test])
        evidence = positions.evidence
    problem, others = problem_of(data, test), data.metadata["methods"][1:]
    scored = problem.scored(decided(p, mixture.threshold))
    rows = [Metric("this run", BOUND, score), *metrics_of(problem, scored, OURS, NAMES, "run")]
    results = []
    if mixture.gp is not None:
        latent, name = problem.scored(mixture.latent.predictive(evidence)), others.pop(0)
        results = [Result(name, latent, metrics_of(problem, latent, name, NAMES))]
    if data.settings.baselines and len(test):
        results += fit_methods(data, data.train, test, others, NAMES, deadline=deadline)
    rows += [metric for result in results for metric in result.metrics]
    predictions = [scored.predictive, *(result.predictive for result in results)]
    arrays = {
        **snapshot,
        "test_p": p,
        "test_label": label,
        "test_index": data.places[test],
        **curves(predictions, label, len(data.metadata["methods"])),
        "reliability": metrics.reliability(p.max(1, initial=0.0), (p.argmax(1) == label) * 1.0)
        if len(test)
        else np.empty((3, 0)),
    }
    notes = [result.note for result in results if result.note]
    if mixture.shift is not None:
        share = data.prior(data.split.learnt)
        share_held_out = mixture.shares(share)
        notes.append(
            f"An estimated {share_held_out[0]:.1%} of the held-out rows are of class "
            f"{data.metadata['rare']!r}, and {share[0]:.1%} of the training rows. This run's "
            "probabilities assume the share of the held-out rows (setting 'prior'); the estimate "
            "uses none of their labels."
        )
    return Report(tuple(rows), arrays, tuple(notes))


def curves(
    predictions: Sequence[Predictive | None], label: Int[np.ndarray, " n"], methods: int
) -> dict[str, np.ndarray]:
    """Precision, recall and counts of each method over thresholds on its probability.

    Each method's own threshold is included, 0.5 if it predicts the most probable class. There its
    decisions are counted, as in its scores: with more than two classes, the most probable one may
    have a probability below one half.
    """
    pr = np.full((methods, 3, PRECISIONS + 1), np.nan)
    counts = np.full((methods, 4, PRECISIONS + 1), np.nan)
    thresholds = np.full(methods, np.nan)
    rare = label == 0
    for i, prediction in enumerate(predictions):
        threshold = prediction.threshold if isinstance(prediction, CategoricalPredictive) else None
        thresholds[i] = np.nan if threshold is None else threshold
        level = 0.5 if threshold is None else threshold
        pr[i, 0] = np.sort(np.append(THRESHOLDS, level))
        if not isinstance(prediction, CategoricalPredictive) or not len(label):
            continue
        positive = prediction.probabilities[:, :1] >= pr[i, 0]
        positive[:, np.searchsorted(pr[i, 0], level)] = prediction.point == 0
        true_positives, false_positives = (
            (positive & rare[:, None]).sum(0),
            (positive & ~rare[:, None]).sum(0),
        )
        counts[i] = (
            true_positives,
            false_positives,
            rare.sum() - true_positives,
            (~rare).sum() - false_positives,
        )
        pr[i, 1] = np.where(
            true_positives + false_positives,
            true_positives / np.maximum(true_positives + false_positives, 1),
            np.nan,
        )
        pr[i, 2] = true_positives / max(int(rare.sum()), 1)
    return {"pr": pr, "confusion": counts, "threshold": thresholds}
