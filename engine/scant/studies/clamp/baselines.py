"""Other ways to spend the same labels: from other starts, by another model, or all there are."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner, Linear, start_of
from scant.studies.clamp.prepared import Prepared

Curve = Float[np.ndarray, "r 3"]  # F1, precision and recall by round


def active(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """The session of the run from another start, with the same numbers of labels."""
    session = data.session(repeat, data.settings.method)
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
    start, order = start_of(rows.pool.label, rows.answerable, s.start, s.seed, repeat, rows.sought)
    return [int(i) for i in start], [int(i) for i in order]


def linear(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """Active logistic regression: same components, start, acquisition and numbers of labels."""
    rows, s = data.rows, data.settings
    made = Linear(rows.x, rows.answerable, len(rows.pool.classes))
    start, _ = first_rows(data, repeat)
    results = []
    for count in counts:
        more = max(0, count - len(made.rows))
        made.rows += made.ask(more, s.method, str(s.diverse)) if made.rows else start
        made.fit(rows.pool.label)
        results.append(data.scores(made))
    return np.array(results)


def ceiling(data: Prepared) -> tuple[float, float, float]:
    """A linear classifier that knows every label which may be asked about."""
    rows = data.rows
    made = Linear(rows.x, rows.answerable, len(rows.pool.classes))
    made.rows = rows.answerable.tolist()
    made.fit(rows.pool.label)
    return data.scores(made)


def network(data: Prepared, repeat: int, counts: list[int]) -> Curve:
    """A small convolutional network that learns as many labels, drawn at random.

    It is trained at the last number of labels alone; before it there is no score (NaN).
    """
    from scant.studies.clamp.network import trained

    rows = data.rows
    known = first_rows(data, repeat)[1][: counts[-1]]
    predict = trained(
        [rows.pool.images[i] for i in known], rows.pool.label[known], len(rows.pool.classes),
        1_000_003 * data.settings.seed + repeat,
    )  # fmt: skip
    at = rows.scored
    predicted = predict([rows.pool.images[i] for i in at])
    curve = np.full((len(counts), 3), np.nan)
    curve[-1] = rows_of.scores(rows.pool.label[at], predicted, rows.sought)
    return curve
