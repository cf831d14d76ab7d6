"""Other ways to spend the same labels: from other starts, by another model, or all there are."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import UNIT, ActiveLearner, Linear, start_of
from scant.studies.clamp.fitted import Prepared
from scant.studies.clamp.splits import Rows
from sklearn.linear_model import LogisticRegression

Curve = Float[np.ndarray, "r 3"]  # F1, precision and recall by round


def active(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """The session of the run from another start, with the same numbers of labels."""
    session = data.session(repeat, data.settings.acquisition)
    start, _ = first_rows(data, repeat)
    results = []
    for count in counts:
        answer_to(data, session, start, count)
        results.append(data.scores(session))
    return np.array(results)


def answer_to(data: Prepared, session: ActiveLearner, start: list[int], count: int) -> None:
    """Label until there are so many, and learn."""
    known = len(session.rows)
    which = start[:count] if not known else session.ask(count - known)
    session.answer(which, [int(c) for c in data.rows.pool.label[which]])
    session.fit()


def first_rows(data: Prepared, repeat: int) -> tuple[list[int], list[int]]:
    """The start of a session, and all rows in random order."""
    s, rows = data.settings, data.rows
    start, order = start_of(rows.pool.label, rows.answerable, s.start, s.seed, repeat)
    return [int(i) for i in start], [int(i) for i in order]


def linear(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """Active logistic regression on the same components, start and numbers of labels."""
    rows, label = data.rows, data.rows.pool.label
    made = Linear(rows.x, rows.answerable)
    start, _ = first_rows(data, repeat)
    results = []
    for count in counts:
        more = max(0, count - len(made.rows))
        made.rows += made.ask(more, str(data.settings.diverse)) if made.rows else start
        made.fit(label)
        results.append(rows_of.scores(label[rows.scored], made.p[rows.scored]))
    return np.array(results)


def ceiling(rows: Rows) -> tuple[float, float, float]:
    """A linear classifier that knows every label which may be asked about."""
    label = rows.pool.label
    known = rows.answerable
    made = LogisticRegression(C=UNIT, max_iter=1000).fit(rows.x[known], label[known])
    p = made.predict_proba(rows.x[rows.scored])[:, 1] if len(rows.scored) else np.empty(0)
    return rows_of.scores(label[rows.scored], p)
