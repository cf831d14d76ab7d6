"""Queries of a labeling session: the queue, a patch, a picture, predictions."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int
from scipy import stats

from scant.errors import BadInput
from scant.models.laplace import acquisition, stopping
from scant.models.laplace.one_vs_rest import parts_of, probabilities
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.entry import QUEUE
from scant.studies.clamp.fitted import FittedClamp, Prepared, advised
from scant.studies.clamp.patch_views import patches
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import PLACE, PatchPool
from scant.studies.predicted_table import checked, with_classes, words
from scant.studies.protocol import blob
from scant.studies.query import whole
from scant.tables.images.features import features

FOLDS = 4  # where nothing is held out
FEW = 12  # labels, below which not even folds tell anything
MOST_QUEUE = 100
CHECK = "a check, drawn at random and not learned from"


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
            given; "picture" takes them, too. `batch`: how many rows to ask about.
    """
    data = fitted.data
    k = whole(query.get("batch", QUEUE), "batch", 1, MOST_QUEUE)
    if "labels" in query:
        continued(fitted, _labels(data.rows, query["labels"]))
    session = fitted.active
    queue, reasons = queued(fitted, k)
    (f1, precision, recall), interval, held_out = measured(fitted)
    advice = advised(session, heard(fitted), data.settings)
    text = advice.text if queue else "Every patch of the pool is labeled."
    if not queue and session.method == acquisition.STRICT and len(session.free()):
        text = f"No patch is left with p within {data.settings.delta:g} of 0.5."
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
    }


def queued(fitted: FittedClamp, k: int) -> tuple[list[int], list[str]]:
    """Rows to ask about next, and why: of the model's, and checks at their share among them."""
    data, session = fitted.data, fitted.active
    if len(set(session.labels)) > 1:
        own = session.ask(k)
    else:
        order = np.random.default_rng([data.settings.seed, 63, 0]).permutation(session.askable)
        own = [int(i) for i in order[~np.isin(order, session.rows)][:k]]
        session.expected = math.nan
    reasons = session.reasons(own)
    checks = [int(row) for row in data.checks if int(row) not in fitted.checked]
    total = len(session.rows) - len(data.first) + len(fitted.checked)
    share, rows, why = data.settings.check_share, list[int](), list[str]()
    asked, checked = iter(zip(own, reasons)), len(fitted.checked)
    while len(rows) < k:
        due = round(share * (total + len(rows) + 1)) > checked
        if due and checks:
            rows.append(checks.pop(0))
            why.append(CHECK)
            checked += 1
            continue
        row, reason = next(asked, (-1, ""))
        if row < 0 and not checks:
            break
        if row < 0:
            row, reason = checks.pop(0), CHECK
        rows.append(row)
        why.append(reason)
    return rows, why


def continued(fitted: FittedClamp, pairs: list[tuple[int, int]]) -> None:
    """Give the session these labels, and fit it; those of checks are kept apart.

    Its session goes on where the labels begin with those that it knows; otherwise another one
    begins, with the kernel of the last. Nothing else is remembered.
    """
    data = fitted.data
    checks = set(data.checks.tolist())
    fitted.checked = {row: label for row, label in pairs if row in checks}
    pairs = [(row, label) for row, label in pairs if row not in checks]
    given = data.first if data.settings.expert == "you" else ()
    own = {row for row, _ in pairs}  # a person corrects what the table says
    start = [(int(r), int(data.rows.pool.label[r])) for r in given if int(r) not in own]
    every = [*start, *pairs]
    session = fitted.active
    known = list(zip(session.rows, session.labels))
    if every[: len(known)] != known or session.model is None:
        before = session
        session = fitted.active = data.session(0, data.settings.method)
        session.like = before.model or before.like
    new = every[len(session.rows) :]
    if new:
        session.answer([r for r, _ in new], [c for _, c in new])
        session.fit()


def heard(fitted: FittedClamp) -> list[float]:
    """Changes of F1 by batch, the last one to the present predictions.

    A warm worker remembers what it predicted after each batch; a cold one finds it from the labels
    that there were then, with the kernel of now.
    """
    data, session, now = fitted.data, fitted.active, len(fitted.active.rows)
    if session.model is None:
        fitted.heard = {}
        return []
    batch, sought = data.settings.batch_size, session.classes - 1
    fitted.heard = {n: v for n, v in fitted.heard.items() if n < now} | {now: session.predicted}
    window = data.settings.patience or stopping.WINDOW
    counts = [n for n in range(now - window * batch, now, batch) if n > 0]
    past = [_near(fitted, n, batch) for n in counts] + [session.predicted]
    at = session.askable
    return [
        stopping.change(before[at] == sought, after[at] == sought)
        for before, after in pairwise(past)
    ]


def _near(fitted: FittedClamp, count: int, batch: int) -> Int[np.ndarray, " n"]:
    """Predicted classes after about so many labels."""
    close = min(fitted.heard, key=lambda n: abs(n - count))
    if abs(close - count) * 2 >= batch or close == len(fitted.active.rows):
        close = count
        fitted.heard[count] = fitted.active.predicted_from(count)
    return fitted.heard[close]


def measured(
    fitted: FittedClamp,
) -> tuple[tuple[float, float, float], tuple[float, float], bool]:
    """F1, precision and recall; an interval of F1; and whether they are of held-out rows.

    These are the rows of the table's that are held out and the checks of the person. Where there
    are none the scores are of the labels themselves, each predicted from the others by folds,
    hyperparameters as they are. Rows that were asked about are the hard ones.
    """
    data, session = fitted.data, fitted.active
    nothing = (math.nan, math.nan)
    if not session.rows:
        return (math.nan,) * 3, nothing, False
    test = data.rows.scored
    truth = {int(row): int(data.rows.pool.label[row]) for row in test}
    truth |= fitted.checked
    sought = data.rows.sought
    if truth and (len(test) or session.model is not None):
        at, label = np.array(list(truth)), np.array(list(truth.values()))
        predicted = session.predicted[at]
        scores = rows_of.scores(label, predicted, sought)
        return scores, f1_interval(label == sought, predicted == sought), True
    label = np.array(session.labels)
    counts = [count for count in session.counts if count]
    if len(label) < FEW or len(counts) < 2 or min(counts) < 2 or session.model is None:
        return (math.nan,) * 3, nothing, False
    return rows_of.scores(label, by_folds(session), sought), nothing, False


def f1_interval(
    truth: Bool[np.ndarray, " n"], predicted: Bool[np.ndarray, " n"], level: float = 0.95
) -> tuple[float, float]:
    """An interval of F1 by rows drawn at random.

    F1 is 2 q / (1 + q) with q the share of true positives among all rows that are, or are taken
    for, the class of interest; of q it is Jeffreys' interval. NaN where there is no such row.
    """
    hits = int((truth & predicted).sum())
    misses = int((truth | predicted).sum()) - hits
    if not hits + misses:
        return math.nan, math.nan
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = stats.beta.ppf(tails, hits + 0.5, misses + 0.5)
    low, high = (0.0 if not hits else low), (1.0 if not misses else high)
    return float(2 * low / (1 + low)), float(2 * high / (1 + high))


def by_folds(session: ActiveLearner) -> Int[np.ndarray, " n"]:
    """The class of each label of a session, predicted from the labels of the other folds."""
    assert session.model is not None
    label = torch.tensor(session.labels, device=session.x.device)
    x = session.model.x
    fold = torch.arange(len(label), device=x.device) % FOLDS
    predicted = torch.zeros_like(label)
    for i in range(FOLDS):
        out = fold == i
        rest = session.model.refit(x[~out], label[~out])
        for part, whole_of in zip(parts_of(rest), parts_of(session.model)):
            part.a = whole_of.a[~out].clone()
        predicted[out] = probabilities(rest, x[out]).argmax(1)
    return np.asarray(predicted.cpu().numpy())


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
    each = probabilities(session.model, z)
    own_p = each[:, 1] if session.classes == 2 else each
    candidates = acquisition.CandidatePool(own_p, mean, variance)
    doubt = acquisition.entropy(own_p), acquisition.information(candidates, data.settings.link)
    p, entropy, information = (v.cpu().numpy() for v in (each, *doubt))
    best = p.argmax(1)
    classes = rows.pool.classes
    names = [classes[c] for c in best]
    by_name = {name: p[:, c] for c, name in reversed(list(enumerate(classes)))}
    return with_classes(
        table, names, p[np.arange(len(p)), best], by_name,
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
        last[at] = whole(label, "labels, class", 0, rows.sought)
    return list(last.items())


def _row(rows: Rows, query: dict[str, Any]) -> int:
    return whole(query.get("row"), "row", 0, len(rows.row) - 1)
