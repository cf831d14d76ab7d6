"""Labeling sessions with a person: what to label next, and reasons for it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Int

from scant.errors import BadInput
from scant.models.laplace import acquisition, stopping
from scant.studies.clamp.fitted import FittedClamp, advised
from scant.studies.clamp.prepared import Prepared
from scant.studies.clamp.session_scores import measured
from scant.studies.clamp.settings import QUEUE
from scant.studies.query import whole

MAX_QUEUE = 100
MAX_IMAGES = 50  # of placed patches that one answer requests
CHECK = "a check, drawn at random and not learned from"


def ask(fitted: FittedClamp, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Rows to label next, after the labels that were sent, or else those of the run.

    Args:
        fitted: The session.
        query: `labels`: all labels as [row, class index], in the order in which they were given;
            "picture" takes them, too. `batch`: number of rows to label next. `images`: image files
            of placed patches, by number (see `learn`).
    """
    data = fitted.data
    k = whole(query.get("batch", QUEUE), "batch", 1, MAX_QUEUE)
    missing = learn(fitted, query) if "labels" in query else []
    session = fitted.active
    queue, reasons = queued(fitted, k)
    (f1, precision, recall), interval, held_out = measured(fitted)
    advice = advised(session, changes_of_f1(fitted), data.settings)
    text = advice.text if queue else "Every row of the pool is labeled."
    if not queue and session.method == acquisition.STRICT and len(session.free()):
        text = f"No row is left with p within {data.settings.delta:g} of 0.5."
    numbers = {
        "evidence": session.evidence * len(session.rows) if session.rows else math.nan,
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "held_out": float(held_out),
        "flips": session.flips,
        "expected": session.expected,
        "remaining": advice.remaining if queue else 0.0,
        "stop": float(advice.stop or not queue),
    }
    p = session.p.cpu().numpy()
    return {
        "queue": np.array(queue, dtype=np.int64),
        "queue_p": p[queue],
        "reason": np.array(reasons, dtype=str),
        "p": p,
        "predicted": session.predicted,
        "held_out_rows": np.array(sorted(fitted.checked), dtype=np.int64),
        "f1_interval": np.array(interval, dtype=float),
        **{name: np.array([value], dtype=float) for name, value in numbers.items()},
        "advice": np.array([text]),
        "missing_images": np.array(missing, dtype=np.int64),
    }


def queued(fitted: FittedClamp, k: int) -> tuple[list[int], list[str]]:
    """Rows to label next, with reasons: queries of the model, and checks at their share."""
    data, session = fitted.data, fitted.active
    if len(set(session.labels)) > 1:
        model_rows = session.ask(k)
    else:
        order = np.random.default_rng([data.settings.seed, 63, 0]).permutation(session.askable)
        model_rows = [int(i) for i in order[~np.isin(order, session.rows)][:k]]
        session.expected = math.nan
    reasons = session.reasons(model_rows)
    checks = [int(row) for row in data.checks if int(row) not in fitted.checked]
    total = len(session.rows) - len(data.first) + len(fitted.checked)
    share, rows, row_reasons = data.settings.check_share, list[int](), list[str]()
    queries, checked = iter(zip(model_rows, reasons)), len(fitted.checked)
    while len(rows) < k:
        due = checks and round(share * (total + len(rows) + 1)) > checked
        row, reason = (-1, "") if due else next(queries, (-1, ""))
        if row < 0 and not checks:
            break
        if row < 0:
            row, reason, checked = checks.pop(0), CHECK, checked + 1
        rows.append(row)
        row_reasons.append(reason)
    return rows, row_reasons


def learn(fitted: FittedClamp, query: dict[str, Any]) -> list[int]:
    """Fit the session to the labels of a query.

    Workers store the components of placed patches, but have no images to compute them.

    Args:
        fitted: The session.
        query: `labels` and `images` as in `ask`.

    Returns:
        Placed patches of the labels whose images must be sent first; the session is then unchanged.

    Raises:
        BadInput: There is no such patch or class.
    """
    data = fitted.data
    pairs = read_labels(data, query.get("labels", []))
    data.add_placed(query.get("images", {}))
    missing = [r for r, _ in pairs if r >= len(data.x) and r not in data.placed_x][:MAX_IMAGES]
    if not missing:
        continued(fitted, pairs)
    return missing


def continued(fitted: FittedClamp, pairs: list[tuple[int, int]]) -> None:
    """Fit the session to these labels; labels of checks are stored separately.

    The session continues if these labels begin with its own; otherwise a new one begins with the
    kernel of the last.
    """
    data = fitted.data
    checks = set(data.checks.tolist())
    fitted.checked = {row: label for row, label in pairs if row in checks}
    pairs = [(row, label) for row, label in pairs if row not in checks]
    given = data.first if data.settings.expert == "you" else ()
    sent_rows = {row for row, _ in pairs}  # these override labels of the table
    start = [(int(r), int(data.rows.pool.label[r])) for r in given if int(r) not in sent_rows]
    every = [*start, *pairs]
    session = fitted.active
    previous = list(zip(session.rows, session.labels))
    if every[: len(previous)] != previous or session.model is None:
        last = session
        session = fitted.active = data.session(0, data.settings.method)
        session.like = last.model or last.like
    new = every[len(session.rows) :]
    if new:
        session.answer([r for r, _ in new], [c for _, c in new])
        session.fit()


def changes_of_f1(fitted: FittedClamp) -> list[float]:
    """Changes of F1 by batch, up to the present predictions.

    A warm worker stores its predictions after each batch; a cold one computes them from the labels
    of that time with the present kernel.
    """
    data, session, now = fitted.data, fitted.active, len(fitted.active.rows)
    if session.model is None:
        fitted.predicted_after = {}
        return []
    batch, sought = data.settings.batch_size, session.classes - 1
    fitted.predicted_after = {n: v for n, v in fitted.predicted_after.items() if n < now} | {
        now: session.predicted
    }
    window = data.settings.patience or stopping.WINDOW
    counts = [n for n in range(now - window * batch, now, batch) if n > 0]
    predictions = [_predicted_after(fitted, n, batch) for n in counts] + [session.predicted]
    at = session.askable
    return [
        stopping.change(before[at] == sought, after[at] == sought)
        for before, after in pairwise(predictions)
    ]


def _predicted_after(fitted: FittedClamp, count: int, batch: int) -> Int[np.ndarray, " n"]:
    """Predicted classes after about `count` labels."""
    close = min(fitted.predicted_after, key=lambda n: abs(n - count))
    if abs(close - count) * 2 >= batch or close == len(fitted.active.rows):
        close = count
        fitted.predicted_after[count] = fitted.active.predicted_from(count)
    return fitted.predicted_after[close]


def read_labels(data: Prepared, sent: Any) -> list[tuple[int, int]]:
    """Read labels by row or placed patch; the last one of a row counts."""
    last = dict[int, int]()
    try:
        pairs = [(row, label) for row, label in sent]
    except (TypeError, ValueError):
        raise BadInput("labels: send a list of pairs of a row and a class index.") from None
    for row, label in pairs:
        at = data.read_row(row, "labels")
        last[at] = whole(label, "labels, class", 0, data.rows.sought)
    return list(last.items())
