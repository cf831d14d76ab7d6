"""The figures a mitosis run ends with: ours, and other methods on the same rows."""

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
    """Metrics of the held-out rows, arrays for the page, and the other methods.

    Args:
        fitted: The model, its training ended.
        snapshot: What a page shows of it.
        score: What training came to, in nats a row.
        deadline: Of the other methods.
    """
    data = fitted.data
    test, label = data.test, data.label[data.test]
    chances = fitted.chances
    assert chances is not None
    p, evidence = np.empty((0, data.n_classes)), np.empty((0, data.n_classes))
    if len(test):
        places, p = fitted.ask(data.given(test), data.seen[test])
        evidence = places.evidence
    problem, others = problem_of(data, test), data.metadata["methods"][1:]
    own = problem.scored(decided(p, chances.threshold))
    rows = [Metric("this run", BOUND, score), *metrics_of(problem, own, OURS, NAMES, "run")]
    results = []
    if chances.gp is not None:
        latent, name = problem.scored(chances.latent.predictive(evidence)), others.pop(0)
        results = [Result(name, latent, metrics_of(problem, latent, name, NAMES))]
    if data.settings.baselines and len(test):
        results += fit_methods(data, data.train, test, others, NAMES, deadline=deadline)
    rows += [metric for result in results for metric in result.metrics]
    every = [own.predictive, *(result.predictive for result in results)]
    arrays = {
        **snapshot,
        "test_p": p,
        "test_label": label,
        "test_index": data.places[test],
        **curves(every, label, len(data.metadata["methods"])),
        "reliability": metrics.reliability(p.max(1, initial=0.0), (p.argmax(1) == label) * 1.0)
        if len(test)
        else np.empty((3, 0)),
    }
    notes = [result.note for result in results if result.note]
    if chances.shift is not None:
        share = data.prior(data.split.learnt)
        now = share * chances.shift / (share @ chances.shift)
        notes.append(
            f"An estimated {now[0]:.1%} of the held-out rows are of class "
            f"{data.metadata['rare']!r}, and {share[0]:.1%} of the training rows. This run's "
            "probabilities assume the share of the held-out rows (setting 'prior'); the estimate "
            "uses none of their labels."
        )
    return Report(tuple(rows), arrays, tuple(notes))


def curves(
    every: Sequence[Predictive | None], label: Int[np.ndarray, " n"], methods: int
) -> dict[str, np.ndarray]:
    """Precision, recall and counts of each method, whatever the threshold on its probability.

    Each method's own threshold is among them, 0.5 where it names the most probable class. There its
    decisions are counted, as its scores count them: of more than two classes the most probable one
    may have less than one half.
    """
    pr = np.full((methods, 3, PRECISIONS + 1), np.nan)
    counts = np.full((methods, 4, PRECISIONS + 1), np.nan)
    thresholds = np.full(methods, np.nan)
    rare = label == 0
    for i, one in enumerate(every):
        threshold = one.threshold if isinstance(one, CategoricalPredictive) else None
        thresholds[i] = np.nan if threshold is None else threshold
        own = 0.5 if threshold is None else threshold
        pr[i, 0] = np.sort(np.append(THRESHOLDS, own))
        if not isinstance(one, CategoricalPredictive) or not len(label):
            continue
        taken = one.probabilities[:, :1] >= pr[i, 0]
        taken[:, np.searchsorted(pr[i, 0], own)] = one.point == 0
        hit, wrong = (taken & rare[:, None]).sum(0), (taken & ~rare[:, None]).sum(0)
        counts[i] = hit, wrong, rare.sum() - hit, (~rare).sum() - wrong
        pr[i, 1] = np.where(hit + wrong, hit / np.maximum(hit + wrong, 1), np.nan)
        pr[i, 2] = hit / max(int(rare.sum()), 1)
    return {"pr": pr, "confusion": counts, "threshold": thresholds}
