"""Queries of a fitted omniglot study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from scant.errors import BadInput
from scant.learners.general import NEAREST
from scant.studies.omniglot import coregionalization as matrices
from scant.studies.omniglot import models
from scant.studies.omniglot import preprocessing as rows
from scant.studies.omniglot.fitted import FittedOmniglot
from scant.studies.omniglot.prepared import Prepared
from scant.studies.omniglot.problem import problem_of
from scant.studies.omniglot.settings import BLOCK
from scant.studies.omniglot.table import Characters, columns_of, of
from scant.studies.predicted_table import checked, images, with_classes, words
from scant.studies.query import names_in, numbers, whole
from scant.tables.column_matching import listed

MOST_COLUMNS = 500  # classes up to which predictions have a column for each
TOP = 3  # most probable classes of each output that come with an image


def answer(fitted: FittedOmniglot, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of the catalog for `question`.

    Raises:
        BadInput: The question, or a value in its query, is unknown.
    """
    data = fitted.data
    if question == "draw":
        return respond(fitted, drawn(data, query.get("pixels", "")), query)
    if question == "response":
        row = whole(query.get("row", 0), "row", 0, len(data.observed) - 1)
        return respond(fitted, data.observed.x[row], query)
    if question == "block":
        return block(fitted, query)
    if question == "shots":
        return shots(fitted, query)
    raise BadInput(
        f"There is no question {question!r}; there are 'draw', 'response', 'block' and 'shots'."
    )


def drawn(data: Prepared, pixels: Any) -> Float[np.ndarray, " v"]:
    """Image drawn by the user.

    Args:
        data: Rows of the run.
        pixels: Ink in [0, 1], row by row: numbers, text of numbers with commas, or base64 of bytes
            from 0 to 255.

    Raises:
        BadInput: The model was not trained on images, or the pixels do not fit its images.
    """
    if data.image is None:
        raise BadInput("This model was not trained on images, so there is nothing to draw.")
    count = data.image[0] * data.image[1]
    reason = f"the model's images have {data.image[1]} x {data.image[0]} = {count:,}"
    values = numbers(pixels, "pixels", count, reason, shades=rows.SHADES)
    return rows.shaded(data.settings, values)


def respond(
    fitted: FittedOmniglot, x: Float[np.ndarray, " v"], query: dict[str, Any]
) -> dict[str, Any]:
    """Probabilities of all classes within their outputs, and a map of patches for one class."""
    data = fitted.data
    count = len(data.sizes)
    p = fitted.of_features(np.tile(x, (count, 1)), np.arange(count)).probabilities
    flat = np.concatenate([p[i, :size] for i, size in enumerate(data.sizes)])
    d, label = _class(data, query, p)
    top, images = _top(data, p)
    shape = data.image or (0, 0)
    return {
        "p": flat,
        "map": fitted.response(x, d, label),
        "class": np.array([data.observed.offset[d] + label]),
        "image": x.reshape(shape) if data.image else np.empty((0, 0)),
        "top": top,
        "top_image": images,
    }


def _class(data: Prepared, query: dict[str, Any], p: Float[np.ndarray, "d c"]) -> tuple[int, int]:
    """Output and label of the query (`label`, or `output/label`), or the most probable."""
    observed = data.observed
    label, output = str(query.get("label") or ""), str(query.get("output") or "")
    if not output and "/" in label:
        output, _, label = label.partition("/")
    if output and output not in observed.outputs:
        raise BadInput(f"There is no output {output!r}; there is {listed(observed.outputs)}.")
    d = observed.outputs.index(output) if output else 0
    if not label:
        return d, int(p[d].argmax())
    if label not in observed.classes[d]:
        raise BadInput(
            f"There is no class {label!r} of {observed.outputs[d]!r}; it has "
            f"{listed(observed.classes[d])}."
        )
    return d, observed.classes[d].index(label)


def _top(data: Prepared, p: Float[np.ndarray, "d c"]) -> tuple[np.ndarray, np.ndarray]:
    """The most probable classes of each output, and a training image of each."""
    observed, shape = data.observed, data.image or (0, 0)
    top = np.full((len(data.sizes), TOP), -1)
    images = np.zeros((*top.shape, *shape))
    example = dict(zip(observed.number[data.train][::-1].tolist(), data.train[::-1].tolist()))
    for d, size in enumerate(data.sizes):
        best = np.argsort(-p[d, :size], kind="stable")[:TOP]
        top[d, : len(best)] = observed.offset[d] + best
        if data.image is not None:
            for k, c in enumerate(best):
                images[d, k] = observed.x[example[int(observed.offset[d] + c)]].reshape(shape)
    return top, images


def block(fitted: FittedOmniglot, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """One coregionalization matrix among the classes of some outputs."""
    data = fitted.data
    names = names_in(query.get("outputs", "") or data.observed.outputs)
    lost = [name for name in names if name not in data.observed.outputs]
    if lost:
        raise BadInput(f"There is no output {lost[0]!r}; there is {listed(data.observed.outputs)}.")
    outputs = np.array([data.observed.outputs.index(name) for name in dict.fromkeys(names)])
    factors = fitted.factors()
    q = whole(query.get("latent", 0), "latent", 0, len(factors) - 1)
    classes = np.concatenate(
        [data.observed.offset[d] + np.arange(data.sizes[d]) for d in outputs.tolist()]
    )
    if len(classes) <= BLOCK:
        matrix = matrices.blocks(factors[:, classes], np.array([q]))[0]
        return {"matrix": matrix, "class": classes, "aggregated": np.array([0])}
    between = matrices.between_outputs(factors[:, classes], data.sizes[outputs], np.array([q]))
    return {"matrix": between, "class": outputs, "aggregated": np.array([1])}


def shots(fitted: FittedOmniglot, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Accuracy with k examples of each class, of the retrained model and of nearest neighbors.

    Kernel and inducing points are the run's; parameters that depend on labels are retrained.

    Raises:
        BadInput: No row is held out, or k is out of range.
    """
    data = fitted.data
    max_shots = int(data.metadata["shots_most"])
    k = whole(query.get("k", query.get("shots", 1)), "k", 1, max_shots)
    if not len(data.test):
        raise BadInput("No row is held out, so there is nothing to score; set 'test_share'.")
    train = rows.few(data.settings, data.observed, data.test, k)
    scored = rows.some(data.test, data.observed.output[data.test], models.SHOT_ROWS)
    used = np.concatenate([train, scored])
    at = torch.as_tensor(used).to(data.device)
    p = models.with_fewer(
        fitted.model,
        data.settings,
        fitted.model.kernel.prepare(data.x[at]),
        data.output[at],
        data.label[at],
        len(train),
    )[len(train) :]
    first = data.observed.offset[data.observed.output[scored]]
    predicted = first + p.cpu().numpy().argmax(1)
    nearest = NEAREST.predict(problem_of(data, train, scored)).point
    return {
        "shots": np.array([k]),
        "accuracy": rows.accuracy(data.observed, scored, predicted),
        "nearest": rows.accuracy(data.observed, scored, nearest),
    }


def predictions(fitted: FittedOmniglot, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with predictions (see `Study.predict`)."""
    data = fitted.data
    pixels = data.image is not None
    checked_table = checked(table, () if pixels else data.observed.features)
    checked_table = checked(checked_table, columns_of(checked_table)) if pixels else checked_table
    query = rows_to_predict(data, checked_table)
    prediction = fitted.of_features(query.x, query.output)
    p = prediction.probabilities
    assert prediction.information is not None, "the model gives it"
    best = p.argmax(1)
    probabilities: dict[str, np.ndarray] = {}
    if data.sizes.sum() <= MOST_COLUMNS:
        for d, names in enumerate(query.classes):
            values = np.where((query.output == d)[:, None], p[:, : len(names)], np.nan)
            probabilities |= {
                f"{query.outputs[d]}/{label}": values[:, i] for i, label in enumerate(names)
            }
    names = [query.classes[d][c] for d, c in zip(query.output, best)]
    outside = data.region.outside(query.x).astype(np.int64)
    return with_classes(
        table, names, p[np.arange(len(p)), best], probabilities,
        entropy=prediction.entropy, information=prediction.information, outside=outside,
    )  # fmt: skip


def rows_to_predict(data: Prepared, table: pd.DataFrame) -> Characters:
    """Rows of a table, prepared like the training rows.

    Raises:
        BadInput: A column is absent, an output was not trained on, images have another shape.
    """
    observed = data.observed
    columns = columns_of(table) if data.image is not None else observed.features
    query = of(table, observed.outputs, observed.classes, columns, **words(table))
    if data.image is None:
        return query
    x = images(
        data.settings,
        data.image,
        len(columns) if query.pixels else 0,
        lambda shape: rows.model_inputs(data.settings, query.x, shape),
    )
    return Characters(query.outputs, query.classes, query.output, query.label, x, observed.features)
