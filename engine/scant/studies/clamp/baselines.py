"""Baselines with the same labels: other starts, another model, or all labels."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner, Linear, start_of
from scant.studies.clamp.prepared import Prepared

Curve = Float[np.ndarray, "r 3"]  # F1, precision and recall by round


def active(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """Session of the run from another start, with the same numbers of labels."""
    session = data.session(repeat, data.settings.method)
    start, _ = first_rows(data, repeat)
    results = []
    for count in counts:
        answer_to(data, session, start, count)
        results.append(data.scores(session))
    return np.array(results)


def answer_to(data: Prepared, session: ActiveLearner, start: list[int], count: int) -> None:
    """Label until there are `count` labels, and fit."""
    n_labeled = len(session.rows)
    rows = start[:count] if not n_labeled else session.ask(count - n_labeled)
    session.answer(rows, [int(c) for c in data.rows.pool.label[rows]])
    session.fit()


def first_rows(data: Prepared, repeat: int) -> tuple[list[int], list[int]]:
    """Initial rows of a session, and all rows in random order."""
    s, rows = data.settings, data.rows
    start, order = start_of(rows.pool.label, rows.answerable, s.start, s.seed, repeat, rows.sought)
    return [int(i) for i in start], [int(i) for i in order]


def linear(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """Active logistic regression: same components, start, acquisition and numbers of labels."""
    rows, s = data.rows, data.settings
    learner = Linear(rows.x, rows.answerable, len(rows.pool.classes))
    start, _ = first_rows(data, repeat)
    results = []
    for count in counts:
        more = max(0, count - len(learner.rows))
        learner.rows += learner.ask(more, s.method, str(s.diverse)) if learner.rows else start
        learner.fit(rows.pool.label)
        results.append(data.scores(learner))
    return np.array(results)


def ceiling(data: Prepared) -> tuple[float, float, float]:
    """Scores of a linear classifier with all labels that can be queried."""
    rows = data.rows
    learner = Linear(rows.x, rows.answerable, len(rows.pool.classes))
    learner.rows = rows.answerable.tolist()
    learner.fit(rows.pool.label)
    return data.scores(learner)


def network(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """Small convolutional network with as many labels, drawn at random.

    It is trained at the last number of labels only; earlier scores are NaN.
    """
    from scant.studies.clamp.network import trained

    rows = data.rows
    labeled = first_rows(data, repeat)[1][: counts[-1]]
    predict = trained(
        [rows.pool.images[i] for i in labeled], rows.pool.label[labeled], len(rows.pool.classes),
        1_000_003 * data.settings.seed + repeat,
    )  # fmt: skip
    at = rows.scored
    predicted = predict([rows.pool.images[i] for i in at])
    curve = np.full((len(counts), 3), np.nan)
    curve[-1] = rows_of.scores(rows.pool.label[at], predicted, rows.sought)
    return curve
