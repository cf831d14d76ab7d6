"""Queries of a fitted mitosis study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from scant.errors import BadInput
from scant.evaluate.scores import scores_of
from scant.studies.mitosis import models
from scant.studies.mitosis import splits as rows
from scant.studies.mitosis.entry import RATIOS, SHOWN, STRIP
from scant.studies.mitosis.fitted import FittedMitosis
from scant.studies.mitosis.learners import fit_methods, mixed
from scant.studies.mitosis.prepared import Prepared
from scant.studies.mitosis.problem import OF_RARE, problem_of
from scant.studies.mitosis.table import LabeledImages
from scant.studies.omniglot.table import UNKNOWN, columns_of
from scant.studies.predicted_table import checked, images, with_classes, words
from scant.studies.query import numbers, whole
from scant.tables.column_matching import listed

HURRY = 0.5  # part of a method's usual steps, of one that is trained again at another ratio
AT_ONCE = 500  # rows that such a method is asked


def answer(fitted: FittedMitosis, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, or words in it that it does not.
    """
    data = fitted.data
    if question == "decode":
        return decoded(fitted, query)
    if question == "place":
        x = given(data, query.get("pixels", query.get("features", "")))
        return placed(fitted, data.look(x[None]), x, UNKNOWN)
    if question == "row":
        row = row_of(data, query)
        picture, label = data.picture(row).ravel(), int(data.label[row])
        return placed(fitted, data.seen[[row]], picture, label)
    if question == "generate":
        count = whole(query.get("count", STRIP), "count", 1, 64)
        seed = whole(query.get("seed", 0), "seed", 0, 2**31 - 1)
        return {"generated": fitted.generate(_class(data, query), count, seed)}
    if question == "redraw":
        return redrawn(fitted, query)
    if question == "imbalance":
        return imbalanced(fitted, query)
    raise BadInput(
        f"There is no question {question!r}; there are 'decode', 'place', 'row', 'generate', "
        "'redraw' and 'imbalance'."
    )


def decoded(fitted: FittedMitosis, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """What the model expects at a position of the latent space, and how surely."""
    data = fitted.data
    q = data.metadata["n_shared"] + data.metadata["n_private"]
    x = numbers(query.get("x", ""), "x", q, "the latent space has as many dimensions")
    at = torch.tensor(x[None]).to(data.device)
    mean, variance = (v.cpu().numpy() for v in models.decode(fitted.model, at, _class(data, query)))
    shape = data.image or (1, -1)
    std = data.columns.spread(variance[:, : data.z.shape[1]]).reshape(shape)
    return {"image": data.drawn(mean).reshape(shape), "std": std}


def placed(
    fitted: FittedMitosis,
    seen: Float[np.ndarray, "1 _"],
    x: Float[np.ndarray, " d"],
    label: int,
) -> dict[str, np.ndarray]:
    """Classes of a row, where it lies under each, and what the model makes of it."""
    data = fitted.data
    z = seen[:, : data.width]
    own = data.filled(z) if data.settings.model == "dgplvm" else z
    result, p = fitted.ask(torch.tensor(own).to(data.device), seen, restarts=2)
    back = [
        models.decode(fitted.model, result.mean[:, c], c)[0].cpu().numpy()
        for c in range(data.n_classes)
    ]
    return {
        "p": p[0],
        "mean": result.mean[0].cpu().numpy(),
        "std": result.std[0].cpu().numpy(),
        "evidence": result.evidence[0],
        "reconstruction": data.drawn(np.concatenate(back)),
        "image": x.reshape(data.image or (1, -1)),
        "label": np.array([label]),
    }


def redrawn(fitted: FittedMitosis, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Rows of a class, held-out ones if there are any, and what the model makes of each."""
    data = fitted.data
    count = whole(query.get("count", STRIP), "count", 1, 16)
    seed = whole(query.get("seed", 0), "seed", 0, 2**31 - 1)
    c = _class(data, query)
    held = data.test[data.label[data.test] == c]
    own = held if len(held) else data.train[data.label[data.train] == c]
    if data.image is not None and np.isin(own, data.pictured).any():
        own = own[np.isin(own, data.pictured)]  # those whose images were kept
    which = np.sort(np.random.default_rng(seed).permutation(own)[:count])
    at = fitted.ask(data.given(which), data.seen[which], restarts=2)[0].mean[:, c]
    return {
        "rows": data.places[which],
        "real": np.stack([data.picture(row) for row in which.tolist()]),
        "redrawn": data.drawn(models.decode(fitted.model, at, c)[0].cpu().numpy()),
    }


def given(data: Prepared, values: Any) -> Float[np.ndarray, " d"]:
    """A row as a person gives it, brought to what the columns are.

    Args:
        data: The run's rows.
        values: Pixels in [0, 1] row by row, or features: numbers, or a text of them with commas,
            or base64 of bytes from 0 to 255; an empty or NaN cell is missing.

    Raises:
        BadInput: No such row.
    """
    name = "features" if data.image is None else "pixels"
    count = len(data.columns.centre)
    why = f"the model's rows have {count:,}"
    if data.image is not None:
        why = f"the model's images have {data.image[1]} x {data.image[0]} = {count:,}"
    shades = 0 if data.image is None else rows.SHADES
    x = numbers(values, name, count, why, missing=True, shades=shades)
    if data.image is None:
        return x
    return np.round(np.clip(x, 0, 1) * rows.SHADES) / rows.SHADES


def row_of(data: Prepared, query: dict[str, Any]) -> int:
    """A row of the study's own, by its place among those held out or those shown."""
    of = str(query.get("of") or "test")
    if of not in ("test", "shown"):
        raise BadInput(f"of: got {of[:40]!r}; ask for a row of 'test' or of 'shown'.")
    which = data.test
    if of == "shown":
        which = data.train[rows.shown(data.label[data.train], SHOWN)]
    if not len(which):
        raise BadInput("No row is held out; set 'test_share' above 0, or ask for one 'shown'.")
    return int(which[whole(query.get("index", 0), "index", 0, len(which) - 1)])


def imbalanced(fitted: FittedMitosis, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """All methods at another ratio of the classes, trained anew with fewer steps.

    Rows are those that nothing else was taken from; components, temperature rows and held-out rows
    are the run's.

    Raises:
        BadInput: No row is held out, or `ratio` is no such number.
    """
    data, chances = fitted.data, fitted.chances
    low, high = RATIOS
    (ratio,) = numbers([query.get("ratio", low)], "ratio", 1, "one is asked for")
    if not low <= ratio <= high:
        raise BadInput(f"ratio: got {ratio:g}; ask for {low} to {high} others for each rare row.")
    if not len(data.test):
        raise BadInput("No row is held out, so there is nothing to score; set 'test_share'.")
    cells = LabeledImages(data.metadata["classes"], data.label, [], data.label, data.z, [])
    train = rows.thinned(data.settings, cells, data.split.pool, ratio)
    rng = np.random.default_rng([data.settings.seed, 43])
    test = rows.some(rng, cells, data.test, AT_ONCE)
    names = data.metadata["methods"]
    scores = np.full((len(names), len(OF_RARE)), np.nan)
    problem = problem_of(data, test)
    every = {r.name: r.scored for r in fit_methods(data, train, test, names, (), HURRY)}
    if chances is not None and chances.gp is not None:
        latent = every.get(names[1])
        p = latent.classes.probabilities if latent is not None else None
        every[names[0]] = problem.scored(mixed(data, chances, train, test, p))
    for name, scored in every.items():
        scores[names.index(name)] = scores_of(problem, scored, OF_RARE)
    count = np.bincount(data.label[train], minlength=data.n_classes)
    return {
        "ratio": np.array([count[1:].sum() / count[0]]),
        "rows": np.array([count[0], count[1:].sum()]),
        "scores": scores,
    }


def predictions(fitted: FittedMitosis, table: pd.DataFrame) -> pd.DataFrame:
    """The table with predictions (see `Study.predict`)."""
    data = fitted.data
    pixels = data.image is not None
    own = checked(table, gaps=() if pixels else data.metadata["features"])
    if pixels:
        own = checked(own, gaps=columns_of(own.drop(columns="group", errors="ignore")))
    x = rows_to_predict(data, own)
    z = data.columns.forward(x)
    outside = data.region.outside(z).astype(np.int64)
    p = fitted.probabilities(data.look(x))
    assert fitted.chances is not None
    taken, classes = fitted.chances.decide(p), data.metadata["classes"]
    each = {name: p[:, c] for c, name in enumerate(classes)}
    sure = p[np.arange(len(p)), taken]
    return with_classes(table, [classes[c] for c in taken], sure, each, outside=outside)


def rows_to_predict(data: Prepared, table: pd.DataFrame) -> Float[np.ndarray, "n d"]:
    """A table's rows as the model has learned its own.

    Raises:
        BadInput: A column is absent, or images are of another shape.
    """
    at = words(table)
    if data.image is None:
        return LabeledImages.of(table, data.metadata["classes"], data.metadata["features"], **at).x
    own = columns_of(table.drop(columns="group", errors="ignore"))
    query = LabeledImages.of(table, data.metadata["classes"], own, **at)
    return images(
        data.settings,
        data.image,
        len(own) if query.pixels else 0,
        lambda shape: rows.model_inputs(data.settings, query, shape),
    )


def _class(data: Prepared, query: dict[str, Any]) -> int:
    """The number of the class that is asked for by name; the rare one where none is."""
    classes = data.metadata["classes"]
    name = str(query.get("label") or classes[0])
    if name not in classes:
        raise BadInput(f"There is no class {name[:40]!r}; the classes are {listed(classes)}.")
    return int(classes.index(name))
