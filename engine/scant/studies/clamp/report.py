"""Report of a labeling session: its scores, others on the same budget, Table 4.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import confusion_matrix

from scant import metrics
from scant.events import Metric, Report
from scant.studies.clamp import baselines
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.fitted import FittedClamp
from scant.studies.clamp.prepared import Prepared
from scant.studies.clamp.settings import CNN, COMPARED, METHODS
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import NO_CLAMP as NON_CLAMP
from scant.studies.published import printed

Measured = Mapping[str, Sequence[Any]]
SCORES = ("F1", "precision", "recall")
NETWORKS = 1  # trained for the report; more would take minutes
LIKE = "trenches, as published"  # experiment compared with Table 4.1


def write_report(
    fitted: FittedClamp,
    snapshot: dict[str, np.ndarray],
    measured: Measured,
    messages: tuple[str, ...],
) -> Report:
    """Metrics of the held-out rows, the methods compared, arrays for the page.

    Args:
        fitted: The session.
        snapshot: Its snapshot for the page.
        measured: Values of every round, by name.
        messages: Sentences before those on the comparison.
    """
    rows, p = fitted.data.rows, fitted.active.p.cpu().numpy()
    at = rows.scored if fitted.active.rows else rows.scored[:0]
    label, predicted = rows.pool.label[at], fitted.active.predicted[at]
    classes = range(len(rows.pool.classes))
    is_sought = (label == rows.sought).astype(float)
    scores = [
        Metric("this run", name, value)
        for name, value in zip(SCORES, rows_of.scores(label, predicted, rows.sought))
        if len(at)
    ]
    labels = len(fitted.active.rows) + fitted.data.spent
    scores.append(Metric("this run", "labels", float(labels)))
    each = np.array([rows_of.scores(label, predicted, c)[0] for c in classes])
    if len(at):
        ece = metrics.expected_calibration_error(p[at], is_sought)
        scores.append(Metric("this run", "ECE", ece))
        scores += pictures(rows, fitted.active.predicted)
        scores += [
            Metric("this run", f"F1 of {name}", float(each[c]))
            for c, name in enumerate(rows.pool.classes[:-1])
        ]
        if len(classes) > 2:
            scores.append(Metric("this run", "mean F1 of the classes", float(each.mean())))
    compared, figures, more = compare(fitted.data, measured)
    arrays = {
        **snapshot,
        "picture": rows.pool.picture,
        "eigenvalues": rows.scaling.share[:50],
        "compare_f1": figures[..., 0].mean(1),
        "compare_sd": figures[..., 0].std(1),
        "reliability": metrics.reliability(p[at], is_sought),
        "confusion": confusion_matrix(label, predicted, labels=list(classes)).astype(float)
        if len(at)
        else np.zeros((len(classes), len(classes))),
        "class_f1": each,
        "test_row": at,
        "test_p": p[at],
        "test_label": label,
    }
    if rows.pool.classes[-1] != NON_CLAMP:
        more = [
            *more,
            "Table 4.1 gives the F1 of non-clamps; this run's F1 is that of "
            f"{rows.pool.classes[-1]}.",
        ]
    return Report((*scores, *compared, *published()), arrays, (*messages, *more))


def compare(
    data: Prepared, measured: Measured
) -> tuple[list[Metric], Float[np.ndarray, "c s r 3"], list[str]]:
    """Compare methods from several starts: metrics at the end, and curves.

    Args:
        data: The pool.
        measured: Values of every round, by name.

    Returns:
        Metrics with their spread over the sessions; scores by method, session and round; a
        sentence.
    """
    s, values = data.settings, measured
    counts = [int(v) - data.spent for v in values["labels"]]  # to learn from
    if s.expert == "you" or not counts or not len(data.rows.scored):
        return [], np.empty((0, 1, len(counts), 3)), []
    run_curve = np.array(values[METHODS[0]], dtype=float)
    curves = [run_curve[None], np.array(values[METHODS[1]], dtype=float).transpose(1, 0, 2)]
    if s.baselines:
        more = [baselines.active(data, r, counts) for r in range(1, s.repeats)]
        curves[0] = np.stack([run_curve, *more])
        curves.append(np.stack([baselines.linear(data, r, counts) for r in range(s.repeats)]))
        top = np.array(baselines.ceiling(data))
        curves.append(np.broadcast_to(top, (1, len(counts), 3)))
    names = list(COMPARED[: len(curves)])
    if s.network and data.rows.pool.images:
        names.append(CNN)
        curves.append(np.stack([baselines.network(data, r, counts) for r in range(NETWORKS)]))
    metrics = []
    for name, curve in zip(names, curves):
        for i, score in enumerate(SCORES):
            last = curve[:, -1, i]
            spread = float(last.std()) if len(last) > 1 else None
            metrics.append(Metric(name, score, float(last.mean()), spread, "baseline"))
    gain = area(counts, curves[0][..., 0].mean(0) - curves[1][..., 0].mean(0))
    metrics.append(Metric(COMPARED[0], "mean gain of F1 over random", gain, source="baseline"))
    n_sessions = max(len(c) for c in curves)
    padded = np.stack(
        [np.concatenate([c, np.repeat(c.mean(0)[None], n_sessions - len(c), 0)]) for c in curves]
    )
    message = (
        f"Between {counts[0]:,} and {counts[-1]:,} labels to learn from, active sampling changes "
        f"F1 by {gain:+.3f} on average, compared with random sampling."
    )
    return metrics, padded, [message] if len(counts) > 1 else []


def area(counts: list[int], gain: Float[np.ndarray, " r"]) -> float:
    """Area between two curves over the number of labels, divided by the range: a mean gain."""
    if len(counts) < 2:
        return float(gain[0])
    return float(np.trapezoid(gain, counts) / (counts[-1] - counts[0]))


def pictures(rows: Rows, predicted: Int[np.ndarray, " n"]) -> list[Metric]:
    """F1 of the verdicts on whole held-out pictures, of the class of interest.

    A picture has the rarer class if one of its patches does, and else the other.
    """
    at = rows.scored
    if not rows.pool.pictures:
        return []
    rare, picture = rows_of.rarer(rows.pool), rows.pool.picture[at]
    numbers = np.unique(picture)
    has_rare, predicted_rare = (
        np.array([(values[picture == i] == rare).any() for i in numbers])
        for values in (rows.pool.label[at], predicted[at])
    )
    if rare != rows.sought:
        has_rare, predicted_rare = ~has_rare, ~predicted_rare
    score = rows_of.scores(has_rare.astype(int), predicted_rare.astype(int))[0]
    return [Metric("this run", "F1 of whole pictures", score)]


def published() -> list[Metric]:
    """Table 4.1, for other pictures."""
    return [
        Metric(f"{p.method} (published, other pictures)", p.metric, p.value, p.spread, "published")
        for p in printed("clamp", LIKE)
    ]
