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
from scant.studies.clamp.labeling import ask, learn
from scant.studies.clamp.patch_views import patches
from scant.studies.clamp.prepared import Prepared
from scant.studies.clamp.table import PLACE, UNKNOWN, PatchPool
from scant.studies.predicted_table import checked, with_classes, words
from scant.studies.protocol import blob
from scant.tables.images.features import features


def answer(fitted: FittedClamp, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """See `Study.explore`.

    Raises:
        BadInput: The question is unknown, or a row, class or number is invalid.
    """
    data = fitted.data
    if question == "patch":
        return {"image": data.shown.cut(*data.mosaic_box(data.read_row(query.get("row"), "row")))}
    if question == "patches":
        return patches(data, [data.read_row(r, "rows") for r in query.get("rows", [])])
    if question == "picture":
        if query.get("labels"):
            learn(fitted, query)
        return picture(fitted, data.read_row(query.get("row"), "row"))
    if question == "ask":
        return ask(fitted, query)
    if question == "model":
        return model(fitted, query)
    raise BadInput(
        f"There is no question {question!r}; there are 'ask', 'model', 'patch', 'patches' and "
        "'picture'."
    )


def model(fitted: FittedClamp, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Study fitted to the labels that were sent, as the bytes of a safetensors file.

    The file is empty while images of placed patches are missing (`labeling.learn`).
    """
    missing = learn(fitted, query)
    if fitted.active.model is None and not missing:
        raise BadInput("There is no model yet; label patches of both classes first.")
    file = b"" if missing else blob(*fitted.tensors())
    return {
        "file": np.frombuffer(file, dtype=np.uint8),
        "missing_images": np.array(missing, dtype=np.int64),
    }


def picture(fitted: FittedClamp, row: int) -> dict[str, np.ndarray]:
    """Picture of a row, with all its patches and the placed ones in training."""
    data, session = fitted.data, fitted.active
    number, _ = data.mosaic_box(row)
    in_picture = np.flatnonzero(data.shown.picture == number)
    p = session.p.cpu().numpy()[in_picture]
    labeled = [r for r in session.rows if r >= len(session.x)]
    placed = [r for r in labeled if data.placed.picture_of(r) == number]
    if placed:
        assert session.model is not None
        each = probabilities(session.model, session.inputs(placed))
        p = np.append(p, each[:, -1].cpu().numpy())
    empty = np.empty((0, 0, 3), dtype=np.uint8)
    rows = np.append(in_picture, np.array(placed, dtype=np.int64))
    return {
        "image": data.shown.whole(number) if data.shown.files else empty,
        "boxes": np.array([data.mosaic_box(int(r))[1] for r in rows]),
        "p": p,
        "rows": rows,
        "truth": np.append(data.rows.pool.label[in_picture], np.full(len(placed), UNKNOWN)),
        "verdict": np.array([p.max()]),
    }


def predictions(data: Prepared, session: ActiveLearner, table: pd.DataFrame) -> pd.DataFrame:
    """Add predictions to the table (see `Study.predict`)."""
    rows = data.rows
    if session.model is None:
        raise BadInput("Nothing has been labeled yet, so nothing can be predicted; label first.")
    train = rows.pool.features if rows.given == "columns" else ()
    query = checked(table, [*PLACE, *train])
    if rows.given != "columns" and "image" not in query:
        raise BadInput("The model was trained on images, and the table has none; add them.")
    columns = rows.pool.features if rows.given == "columns" else []
    pool = PatchPool.of(query, classes=rows.pool.classes, features=columns, **words(table))
    x = pool.x if rows.given == "columns" else features(pool.images, rows.given)
    z = torch.as_tensor(rows.scaling.transform(x)).to(data.x)
    mean, variance = session.model.latent(z)
    each = probabilities(session.model, z)
    acquisition_p = each[:, 1] if session.classes == 2 else each
    candidates = acquisition.CandidatePool(acquisition_p, mean, variance)
    doubt = (
        acquisition.entropy(acquisition_p),
        acquisition.information(candidates, data.settings.link),
    )
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
