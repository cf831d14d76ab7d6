"""Answers to what a person asks of a fitted mitosis study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from engine.catalog.mitosis import RATIOS, SHOWN, STRIP
from engine.datasets.characters import UNKNOWN, columns_of
from engine.datasets.naming import listed
from engine.datasets.nuclei import Cells
from engine.errors import BadInput
from engine.studies import mitosis_baselines as baselines
from engine.studies import mitosis_models as models
from engine.studies import mitosis_rows as rows
from engine.studies.asked import numbers, whole
from engine.studies.mitosis_report import of_rare
from engine.studies.predicted import checked, images, with_classes

if TYPE_CHECKING:
    from engine.studies.mitosis import Study

HURRY = 0.5  # part of a method's usual steps, of one that is trained again at another ratio
AT_ONCE = 500  # rows that such a method is asked


def answer(study: Study, question: str, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, or words in it that it does not.
    """
    if question == "decode":
        return decoded(study, asked)
    if question == "place":
        x = given(study, asked.get("pixels", asked.get("features", "")))
        return placed(study, study.columns.forward(x[None])[0], x, UNKNOWN)
    if question == "row":
        row = row_of(study, asked)
        return placed(study, study.z[row], study.picture(row).ravel(), int(study.label[row]))
    if question == "generate":
        count = whole(asked.get("count", STRIP), "count", 1, 64)
        seed = whole(asked.get("seed", 0), "seed", 0, 2**31 - 1)
        return {"generated": study.generate(_class(study, asked), count, seed)}
    if question == "redraw":
        return redrawn(study, asked)
    if question == "imbalance":
        return imbalanced(study, asked)
    raise BadInput(
        f"Nothing is known of {question!r}; ask 'decode', 'place', 'row', 'generate', 'redraw' or "
        "'imbalance'."
    )


def decoded(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """What the model expects at a position of the latent space, and how surely."""
    q = study.words["n_shared"] + study.words["n_private"]
    x = numbers(asked.get("x", ""), "x", q, "the latent space has as many dimensions")
    at = torch.tensor(x[None]).to(study.device)
    mean, variance = (v.cpu().numpy() for v in models.decode(study.model, at, _class(study, asked)))
    shape = study.image or (1, -1)
    std = study.columns.spread(variance).reshape(shape)
    return {"image": study.drawn(mean).reshape(shape), "std": std}


def placed(
    study: Study,
    z: Float[np.ndarray, " k"],
    x: Float[np.ndarray, " d"],
    label: int,
) -> dict[str, np.ndarray]:
    """Classes of a row, where it lies under each, and what the model makes of it."""
    own = study.filled(z[None]) if study.settings.model == "dgplvm" else z[None]
    found, p = study.ask(torch.tensor(own).to(study.device), restarts=2)
    back = [
        models.decode(study.model, found.mean[:, c], c)[0].cpu().numpy()
        for c in range(study.n_classes)
    ]
    return {
        "p": p[0],
        "mean": found.mean[0].cpu().numpy(),
        "std": found.std[0].cpu().numpy(),
        "evidence": found.evidence[0],
        "reconstruction": study.drawn(np.concatenate(back)),
        "image": x.reshape(study.image or (1, -1)),
        "label": np.array([label]),
    }


def redrawn(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """Rows of a class, held-out ones if there are any, and what the model makes of each."""
    count = whole(asked.get("count", STRIP), "count", 1, 16)
    seed = whole(asked.get("seed", 0), "seed", 0, 2**31 - 1)
    c = _class(study, asked)
    held = study.test[study.label[study.test] == c]
    own = held if len(held) else study.learnt[study.label[study.learnt] == c]
    if study.image is not None and np.isin(own, study.pictured).any():
        own = own[np.isin(own, study.pictured)]  # those whose images were kept
    which = np.sort(np.random.default_rng(seed).permutation(own)[:count])
    at = study.ask(study.given(which), restarts=2)[0].mean[:, c]
    return {
        "rows": study.places[which],
        "real": np.stack([study.picture(row) for row in which.tolist()]),
        "redrawn": study.drawn(models.decode(study.model, at, c)[0].cpu().numpy()),
    }


def given(study: Study, values: Any) -> Float[np.ndarray, " d"]:
    """A row as a person gives it, brought to what the columns are.

    Args:
        study: A fitted one.
        values: Pixels in [0, 1] row by row, or features: numbers, or a text of them with commas,
            or base64 of bytes from 0 to 255; an empty or NaN cell is missing.

    Raises:
        BadInput: No such row.
    """
    name = "features" if study.image is None else "pixels"
    count = len(study.columns.centre)
    why = f"the model's rows have {count:,}"
    if study.image is not None:
        why = f"the model's images have {study.image[1]} x {study.image[0]} = {count:,}"
    shades = 0 if study.image is None else rows.SHADES
    x = numbers(values, name, count, why, missing=True, shades=shades)
    if study.image is None:
        return x
    return np.round(np.clip(x, 0, 1) * rows.SHADES) / rows.SHADES


def row_of(study: Study, asked: dict[str, Any]) -> int:
    """A row of the study's own, by its place among those held out or those shown."""
    of = str(asked.get("of") or "test")
    if of not in ("test", "shown"):
        raise BadInput(f"of: got {of[:40]!r}; ask for a row of 'test' or of 'shown'.")
    which = study.test
    if of == "shown":
        which = study.learnt[rows.shown(study.label[study.learnt], SHOWN)]
    if not len(which):
        raise BadInput("No row is held out; set 'test_share' above 0, or ask for one 'shown'.")
    return int(which[whole(asked.get("index", 0), "index", 0, len(which) - 1)])


def imbalanced(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """All methods at another ratio of the classes, trained anew with fewer steps.

    Rows are those that nothing else was taken from; components, temperature rows and held-out rows
    are the run's.

    Raises:
        BadInput: No row is held out, or `ratio` is no such number.
    """
    low, high = RATIOS
    (ratio,) = numbers([asked.get("ratio", low)], "ratio", 1, "one is asked for")
    if not low <= ratio <= high:
        raise BadInput(f"ratio: got {ratio:g}; ask for {low} to {high} others for each rare row.")
    if not len(study.test):
        raise BadInput("No row is held out, so there is nothing to score; set 'test_share'.")
    cells = Cells(study.words["classes"], study.label, [], study.label, study.z, [])
    learnt = rows.thinned(study.settings, cells, study.split.pool, ratio)
    rng = np.random.default_rng([study.settings.seed, 43])
    test = rows.some(rng, cells, study.test, AT_ONCE)
    names = study.words["methods"]
    scores = np.full((len(names), 4), np.nan)
    for told in baselines.compared(study, learnt, test, only=names, hurry=HURRY):
        scores[names.index(told.method)] = of_rare(told, study.label[test])
    count = np.bincount(study.label[learnt], minlength=study.n_classes)
    return {
        "ratio": np.array([count[1:].sum() / count[0]]),
        "rows": np.array([count[0], count[1:].sum()]),
        "scores": scores,
    }


def predictions(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """The table with predictions (see `Study.predict`)."""
    pixels = study.image is not None
    table = checked(table, gaps=() if pixels else study.words["features"])
    if pixels:
        table = checked(table, gaps=columns_of(table.drop(columns="group", errors="ignore")))
    x = rows_to_predict(study, table)
    z = study.columns.forward(x)
    z = study.filled(z) if study.settings.model == "dgplvm" else z
    _, p = study.ask(torch.tensor(z).to(study.device))
    assert study.chances is not None
    taken, classes = study.chances.decide(p), study.words["classes"]
    each = {name: p[:, c] for c, name in enumerate(classes)}
    return with_classes(table, [classes[c] for c in taken], p[np.arange(len(p)), taken], each)


def rows_to_predict(study: Study, table: pd.DataFrame) -> Float[np.ndarray, "n d"]:
    """A table's rows as the model has learnt its own.

    Raises:
        BadInput: A column is absent, or images are of another shape.
    """
    at = range(2, len(table) + 2)  # as a spreadsheet counts
    if study.image is None:
        return Cells.of(table, study.words["classes"], study.words["features"], rows=at).x
    own = columns_of(table.drop(columns="group", errors="ignore"))
    asked = Cells.of(table, study.words["classes"], own, rows=at)
    return images(
        study.settings,
        study.image,
        len(own) if asked.pixels else 0,
        lambda shape: rows.as_learnt(study.settings, asked, shape),
    )


def _class(study: Study, asked: dict[str, Any]) -> int:
    """The number of the class that is asked for by name; the rare one where none is."""
    classes = study.words["classes"]
    name = str(asked.get("label") or classes[0])
    if name not in classes:
        raise BadInput(f"There is no class {name[:40]!r}; the classes are {listed(classes)}.")
    return int(classes.index(name))
