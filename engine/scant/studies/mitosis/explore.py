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

HURRY = 0.5  # share of the usual steps when a method is retrained at another ratio
AT_ONCE = 500  # maximum number of rows that a retrained method predicts


def answer(fitted: FittedMitosis, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of the catalog for `question`.

    Raises:
        BadInput: The question or one of its arguments is invalid.
    """
    data = fitted.data
    if question == "decode":
        return decoded(fitted, query)
    if question == "place":
        x = given(data, query.get("pixels", query.get("features", "")))
        return placed(fitted, data.look(x[None]), x, UNKNOWN)
    if question == "row":
        row = row_of(data, query)
        pixels, label = data.picture(row).ravel(), int(data.label[row])
        return placed(fitted, data.seen[[row]], pixels, label)
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
    """Predictive mean and standard deviation at a position of the latent space."""
    data = fitted.data
    q = data.metadata["n_shared"] + data.metadata["n_private"]
    x = numbers(query.get("x", ""), "x", q, "the latent space has as many dimensions")
    position = torch.tensor(x[None]).to(data.device)
    mean, variance = (
        v.cpu().numpy() for v in models.decode(fitted.model, position, _class(data, query))
    )
    shape = data.image or (1, -1)
    std = data.columns.spread(variance[:, : data.z.shape[1]]).reshape(shape)
    return {"image": data.drawn(mean).reshape(shape), "std": std}


def placed(
    fitted: FittedMitosis,
    inputs: Float[np.ndarray, "1 _"],
    x: Float[np.ndarray, " d"],
    label: int,
) -> dict[str, np.ndarray]:
    """Class probabilities of a row, its latent position and reconstruction under each class."""
    data = fitted.data
    z = inputs[:, : data.width]
    latent_inputs = data.filled(z) if data.settings.model == "dgplvm" else z
    result, p = fitted.ask(torch.tensor(latent_inputs).to(data.device), inputs, restarts=2)
    reconstructions = [
        models.decode(fitted.model, result.mean[:, c], c)[0].cpu().numpy()
        for c in range(data.n_classes)
    ]
    return {
        "p": p[0],
        "mean": result.mean[0].cpu().numpy(),
        "std": result.std[0].cpu().numpy(),
        "evidence": result.evidence[0],
        "reconstruction": data.drawn(np.concatenate(reconstructions)),
        "image": x.reshape(data.image or (1, -1)),
        "label": np.array([label]),
    }


def redrawn(fitted: FittedMitosis, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Rows of a class, held-out ones if there are any, and their reconstructions."""
    data = fitted.data
    count = whole(query.get("count", STRIP), "count", 1, 16)
    seed = whole(query.get("seed", 0), "seed", 0, 2**31 - 1)
    c = _class(data, query)
    test_rows = data.test[data.label[data.test] == c]
    candidates = test_rows if len(test_rows) else data.train[data.label[data.train] == c]
    if data.image is not None and np.isin(candidates, data.pictured).any():
        candidates = candidates[np.isin(candidates, data.pictured)]  # rows whose images are stored
    selected = np.sort(np.random.default_rng(seed).permutation(candidates)[:count])
    positions = fitted.ask(data.given(selected), data.seen[selected], restarts=2)[0].mean[:, c]
    return {
        "rows": data.places[selected],
        "real": np.stack([data.picture(row) for row in selected.tolist()]),
        "redrawn": data.drawn(models.decode(fitted.model, positions, c)[0].cpu().numpy()),
    }


def given(data: Prepared, values: Any) -> Float[np.ndarray, " d"]:
    """Convert a row from a query to the units of the columns.

    Args:
        data: The run's rows.
        values: Pixels in [0, 1] row by row, or features: numbers, or a text of them with commas,
            or base64 of bytes from 0 to 255; an empty or NaN cell is missing.

    Raises:
        BadInput: The row is invalid.
    """
    name = "features" if data.image is None else "pixels"
    count = len(data.columns.centre)
    expected = f"the model's rows have {count:,}"
    if data.image is not None:
        expected = f"the model's images have {data.image[1]} x {data.image[0]} = {count:,}"
    shades = 0 if data.image is None else rows.SHADES
    x = numbers(values, name, count, expected, missing=True, shades=shades)
    if data.image is None:
        return x
    return np.round(np.clip(x, 0, 1) * rows.SHADES) / rows.SHADES


def row_of(data: Prepared, query: dict[str, Any]) -> int:
    """Return a row of the run's table by its index among held-out or displayed rows."""
    subset = str(query.get("of") or "test")
    if subset not in ("test", "shown"):
        raise BadInput(f"of: got {subset[:40]!r}; ask for a row of 'test' or of 'shown'.")
    rows_of_subset = data.test
    if subset == "shown":
        rows_of_subset = data.train[rows.shown(data.label[data.train], SHOWN)]
    if not len(rows_of_subset):
        raise BadInput("No row is held out; set 'test_share' above 0, or ask for one 'shown'.")
    return int(rows_of_subset[whole(query.get("index", 0), "index", 0, len(rows_of_subset) - 1)])


def imbalanced(fitted: FittedMitosis, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Retrain all methods at another ratio of the classes, with fewer steps.

    Training rows are drawn from the run's pool; components, validation rows and held-out rows are
    the run's.

    Raises:
        BadInput: No row is held out, or `ratio` is invalid.
    """
    data, mixture = fitted.data, fitted.chances
    low, high = RATIOS
    (ratio,) = numbers([query.get("ratio", low)], "ratio", 1, "one is asked for")
    if not low <= ratio <= high:
        raise BadInput(f"ratio: got {ratio:g}; ask for {low} to {high} others for each rare row.")
    if not len(data.test):
        raise BadInput("No row is held out, so there is nothing to score; set 'test_share'.")
    standardized = LabeledImages(data.metadata["classes"], data.label, [], data.label, data.z, [])
    train = rows.thinned(data.settings, standardized, data.split.pool, ratio)
    rng = np.random.default_rng([data.settings.seed, 43])
    test = rows.some(rng, standardized, data.test, AT_ONCE)
    methods = data.metadata["methods"]
    scores = np.full((len(methods), len(OF_RARE)), np.nan)
    problem = problem_of(data, test)
    scores_by_method = {
        r.name: r.scored for r in fit_methods(data, train, test, methods, (), HURRY)
    }
    if mixture is not None and mixture.gp is not None:
        latent = scores_by_method.get(methods[1])
        p = latent.classes.probabilities if latent is not None else None
        scores_by_method[methods[0]] = problem.scored(mixed(data, mixture, train, test, p))
    for name, scored in scores_by_method.items():
        scores[methods.index(name)] = scores_of(problem, scored, OF_RARE)
    count = np.bincount(data.label[train], minlength=data.n_classes)
    return {
        "ratio": np.array([count[1:].sum() / count[0]]),
        "rows": np.array([count[0], count[1:].sum()]),
        "scores": scores,
    }


def predictions(fitted: FittedMitosis, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with predictions (see `Study.predict`)."""
    data = fitted.data
    pixels = data.image is not None
    complete = checked(table, gaps=() if pixels else data.metadata["features"])
    if pixels:
        complete = checked(
            complete, gaps=columns_of(complete.drop(columns="group", errors="ignore"))
        )
    x = rows_to_predict(data, complete)
    z = data.columns.forward(x)
    outside = data.region.outside(z).astype(np.int64)
    (p, predicted), classes = fitted.predicted(data.look(x)), data.metadata["classes"]
    by_class = {name: p[:, c] for c, name in enumerate(classes)}
    confidence = p[np.arange(len(p)), predicted]
    return with_classes(
        table, [classes[c] for c in predicted], confidence, by_class, outside=outside
    )


def rows_to_predict(data: Prepared, table: pd.DataFrame) -> Float[np.ndarray, "n d"]:
    """Return a table's rows in the format of the training rows.

    Raises:
        BadInput: A column is absent, or images are of another shape.
    """
    rows_for_messages = words(table)
    if data.image is None:
        return LabeledImages.of(
            table, data.metadata["classes"], data.metadata["features"], **rows_for_messages
        ).x
    pixels = columns_of(table.drop(columns="group", errors="ignore"))
    query = LabeledImages.of(table, data.metadata["classes"], pixels, **rows_for_messages)
    return images(
        data.settings,
        data.image,
        len(pixels) if query.pixels else 0,
        lambda shape: rows.model_inputs(data.settings, query, shape),
    )


def _class(data: Prepared, query: dict[str, Any]) -> int:
    """Return the number of the class `label` of a query; the rare one by default."""
    classes = data.metadata["classes"]
    name = str(query.get("label") or classes[0])
    if name not in classes:
        raise BadInput(f"There is no class {name[:40]!r}; the classes are {listed(classes)}.")
    return int(classes.index(name))
