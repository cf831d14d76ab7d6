"""Queries of a labeling session: the queue, a patch, a picture, predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scant.errors import BadInput
from scant.models.laplace import acquisition, stopping
from scant.models.laplace.classifier import LaplaceGPC
from scant.models.laplace.links import probability
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.entry import QUEUE
from scant.studies.clamp.fitted import TOLERANCE, FittedClamp, Prepared
from scant.studies.clamp.patch_views import patches
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import PLACE, PatchPool
from scant.studies.predicted_table import checked, with_classes, words
from scant.studies.query import whole
from scant.tables.images.features import features
from scant.training.loop import blob

FOLDS = 4  # where nothing is held out
FEW = 12  # labels, below which not even folds tell anything
MOST_QUEUE = 100


def answer(fitted: FittedClamp, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """See `Study.explore`.

    Raises:
        BadInput: Another question, or a row, class or number that cannot be.
    """
    data = fitted.data
    if question == "patch":
        return {"image": data.shown.patch(_row(data.rows, query))}
    if question == "patches":
        most = len(data.rows.row) - 1
        return patches(
            data.rows.pool, data.shown, [whole(r, "rows", 0, most) for r in query.get("rows", [])]
        )
    if question == "picture":
        if query.get("labels"):
            continued(fitted, _labels(data.rows, query["labels"]))
        return picture(fitted, _row(data.rows, query))
    if question == "ask":
        return ask(fitted, query)
    if question == "model":
        return model(fitted, query)
    raise BadInput(
        f"There is no question {question!r}; there are 'ask', 'model', 'patch', 'patches' and "
        "'picture'."
    )


def model(fitted: FittedClamp, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """The study fitted to the labels that were sent, as the bytes of a safetensors file."""
    continued(fitted, _labels(fitted.data.rows, query.get("labels", [])))
    if fitted.active.model is None:
        raise BadInput("There is no model yet; label patches of both classes first.")
    return {"file": np.frombuffer(blob(*fitted.tensors()), dtype=np.uint8)}


def ask(fitted: FittedClamp, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """What to label next, after the labels that were sent; without any sent, after the run's.

    Args:
        fitted: The session.
        query: `labels`: all that count, as [row, class index], in the order in which they were
            given; "picture" takes them, too. `batch`: how many rows to ask about. `f1`: scores that
            were answered before, in order, for the advice; where they are not sent, those that this
            worker remembers.
    """
    data = fitted.data
    k = whole(query.get("batch", QUEUE), "batch", 1, MOST_QUEUE)
    if "labels" in query:
        continued(fitted, _labels(data.rows, query["labels"]))
    session = fitted.active
    both = len(set(session.labels)) > 1
    if both:
        queue = session.ask(k)
    else:
        order = np.random.default_rng([data.settings.seed, 63, 0]).permutation(session.askable)
        queue = [int(i) for i in order[~np.isin(order, session.rows)][:k]]
        session.expected = float("nan")
    (f1, precision, recall), held_out = measured(data, session)
    past = [float(v) for v in query["f1"]] + [f1] if "f1" in query else heard(fitted, f1)
    advice = stopping.advise(
        [v for v in past if not math.isnan(v)] if both else [],
        session.flips if session.rows else math.nan,
        session.expected,
        len(session.askable),
        patience=max(1, data.settings.patience),
        tolerance=TOLERANCE,
        both=both,
    )
    p = session.p.cpu().numpy()
    text = advice.text if queue else "Every patch of the pool is labeled."
    numbers = {
        "evidence": session.evidence * len(session.rows) if session.rows else math.nan,
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "held_out": float(held_out),
        "flips": session.flips,
        "expected": session.expected,
        "stop": float(advice.stop or not queue),
    }
    return {
        "queue": np.array(queue, dtype=np.int64),
        "queue_p": p[queue],
        "reason": np.array(session.reasons(queue), dtype=str),
        "p": p,
        **{name: np.array([value], dtype=float) for name, value in numbers.items()},
        "advice": np.array([text]),
    }


def continued(fitted: FittedClamp, pairs: list[tuple[int, int]]) -> None:
    """Give the session these labels, and fit it.

    Its session goes on where the labels begin with those that it knows; otherwise another one
    begins, with the kernel of the last. Nothing else is remembered.
    """
    data = fitted.data
    given = data.first if data.settings.expert == "you" else ()
    own = {row for row, _ in pairs}  # a person corrects what the table says
    start = [(int(r), int(data.rows.pool.label[r])) for r in given if int(r) not in own]
    every = [*start, *pairs]
    session = fitted.active
    known = list(zip(session.rows, session.labels))
    if every[: len(known)] != known or session.model is None:
        before = session
        session = fitted.active = data.session(0, data.settings.acquisition)
        session.like = before.model or before.like
    new = every[len(session.rows) :]
    if new:
        session.answer([r for r, _ in new], [c for _, c in new])
        session.fit()


def heard(fitted: FittedClamp, f1: float) -> list[float]:
    """F1 so far, once for each batch of labels as the settings have it, the present one last.

    Kept by a warm worker alone: a cold one begins anew, and advises to go on a while longer.
    """
    data = fitted.data
    now = len(fitted.active.rows) // data.settings.batch_size
    fitted.heard = {batch: v for batch, v in fitted.heard.items() if batch < now} | {now: f1}
    return [fitted.heard[batch] for batch in sorted(fitted.heard)]


def measured(data: Prepared, session: ActiveLearner) -> tuple[tuple[float, float, float], bool]:
    """F1, precision and recall; and whether they are of held-out rows.

    Where none is held out they are of the labels themselves, each predicted from the others by
    folds, hyperparameters as they are. Rows that were asked about are the hard ones.
    """
    if not session.rows:
        return (math.nan,) * 3, False
    at = data.rows.scored
    if len(at):
        p = session.p.cpu().numpy()[at]
        return rows_of.scores(data.rows.pool.label[at], p), True
    label = np.array(session.labels)
    if len(label) < FEW or min(np.bincount(label, minlength=2)) < 2 or session.model is None:
        return (math.nan,) * 3, False
    return rows_of.scores(label, by_folds(session.model)), False


def by_folds(model: LaplaceGPC) -> Float[np.ndarray, " n"]:
    """p of each row of a model, learned from the rows of the other folds."""
    fold = torch.arange(len(model.y)) % FOLDS
    p = torch.zeros_like(model.y)
    for i in range(FOLDS):
        out = fold == i
        label = (model.y[~out] > 0).long()
        part = LaplaceGPC.build(
            model.x[~out], label, model.link_name, model.ard, kernel=model.kernel
        )
        part.a = model.a[~out].clone()
        p[out] = part.probability(model.x[out])
    result: np.ndarray = p.cpu().numpy()
    return result


def picture(fitted: FittedClamp, row: int) -> dict[str, np.ndarray]:
    """The picture of a row, with all its patches."""
    data = fitted.data
    own = np.flatnonzero(data.shown.picture == data.shown.picture[row])
    p = fitted.active.p.cpu().numpy()[own]
    empty = np.empty((0, 0, 3), dtype=np.uint8)
    shown = data.shown.whole(int(data.shown.picture[row])) if data.shown.files else empty
    return {
        "image": shown,
        "boxes": data.shown.boxes[own],
        "p": p,
        "rows": own,
        "truth": data.rows.pool.label[own],
        "verdict": np.array([p.max()]),
    }


def predictions(data: Prepared, session: ActiveLearner, table: pd.DataFrame) -> pd.DataFrame:
    """The table with predictions (see `Study.predict`)."""
    rows = data.rows
    if session.model is None:
        raise BadInput("Nothing has been labeled yet, so nothing can be predicted; label first.")
    train = rows.pool.features if rows.given == "columns" else ()
    own = checked(table, [*PLACE, *train])
    if rows.given != "columns" and "image" not in own:
        raise BadInput("The model was trained on images, and the table has none; add them.")
    columns = rows.pool.features if rows.given == "columns" else []
    pool = PatchPool.of(own, classes=rows.pool.classes, features=columns, **words(table))
    x = pool.x if rows.given == "columns" else features(pool.images, rows.given)
    z = torch.as_tensor(rows.scaling.of(x)).to(data.x)
    mean, variance = session.model.latent(z)
    told = probability(session.model.link_name, mean, variance)
    candidates = acquisition.CandidatePool(told, mean, variance)
    doubt = acquisition.entropy(told), acquisition.information(candidates, data.settings.link)
    p, entropy, information = (v.cpu().numpy() for v in (told, *doubt))
    best = (p > 0.5).astype(int)
    classes = rows.pool.classes
    names = [classes[c] for c in best]
    return with_classes(
        table, names, np.where(best == 1, p, 1 - p), {classes[1]: p, classes[0]: 1 - p},
        entropy=entropy, information=information,
        outside=data.region.outside(z.cpu().numpy()).astype(np.int64),
    )  # fmt: skip


def _labels(rows: Rows, sent: Any) -> list[tuple[int, int]]:
    """Labels that count; the last of a row where there are several."""
    most, last = len(rows.row) - 1, dict[int, int]()
    try:
        pairs = [(row, label) for row, label in sent]
    except (TypeError, ValueError):
        raise BadInput("labels: send a list of pairs of a row and a class index.") from None
    for row, label in pairs:
        at = whole(row, "labels", 0, most)
        last[at] = whole(label, "labels, class", 0, 1)
    return list(last.items())


def _row(rows: Rows, query: dict[str, Any]) -> int:
    return whole(query.get("row"), "row", 0, len(rows.row) - 1)
