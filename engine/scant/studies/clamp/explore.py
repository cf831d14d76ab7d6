"""Queries of a labeling session: patches, pictures, predictions (`labeling` has the queue)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.errors import BadInput
from scant.models.laplace import acquisition
from scant.models.laplace.one_vs_rest import probabilities
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.fitted import FittedClamp
from scant.studies.clamp.labeling import ask, continued, read_labels
from scant.studies.clamp.patch_views import patches
from scant.studies.clamp.prepared import Prepared
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import PLACE, PatchPool
from scant.studies.predicted_table import checked, with_classes, words
from scant.studies.protocol import blob
from scant.studies.query import whole
from scant.tables.images.features import features


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
            continued(fitted, read_labels(data.rows, query["labels"]))
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
    continued(fitted, read_labels(fitted.data.rows, query.get("labels", [])))
    if fitted.active.model is None:
        raise BadInput("There is no model yet; label patches of both classes first.")
    return {"file": np.frombuffer(blob(*fitted.tensors()), dtype=np.uint8)}


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
    z = torch.as_tensor(rows.scaling.transform(x)).to(data.x)
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


def _row(rows: Rows, query: dict[str, Any]) -> int:
    return whole(query.get("row"), "row", 0, len(rows.row) - 1)
