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
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, or words in it that it does not.
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
    """The image that a person drew.

    Args:
        data: The run's rows.
        pixels: Ink in [0, 1], row by row: numbers, or a text of them with commas, or base64 of
            bytes from 0 to 255.

    Raises:
        BadInput: The model has learned no images, or these are no pixels of one.
    """
    if data.image is None:
        raise BadInput("This model was not trained on images, so there is nothing to draw.")
    count = data.image[0] * data.image[1]
    why = f"the model's images have {data.image[1]} x {data.image[0]} = {count:,}"
    values = numbers(pixels, "pixels", count, why, shades=rows.SHADES)
    return rows.shaded(data.settings, values)


def respond(
    fitted: FittedOmniglot, x: Float[np.ndarray, " v"], query: dict[str, Any]
) -> dict[str, Any]:
    """Probabilities of every class within its output, and what each patch adds to one of them."""
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
    """Output and label in question: as asked (`label`, or `output/label`), or the most probable."""
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
    """The most probable classes of each output, and a learned image of each."""
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
    named = names_in(query.get("outputs", "") or data.observed.outputs)
    lost = [name for name in named if name not in data.observed.outputs]
    if lost:
        raise BadInput(f"There is no output {lost[0]!r}; there is {listed(data.observed.outputs)}.")
    outputs = np.array([data.observed.outputs.index(name) for name in dict.fromkeys(named)])
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
    """Accuracy with k examples of each class, by the model trained anew and by the nearest.

    The kernel and its inducing points are the run's; what knows labels begins afresh.

    Raises:
        BadInput: No row is held out, or k is no such number.
    """
    data = fitted.data
    most = int(data.metadata["shots_most"])
    k = whole(query.get("k", query.get("shots", 1)), "k", 1, most)
    if not len(data.test):
        raise BadInput("No row is held out, so there is nothing to score; set 'test_share'.")
    few = rows.few(data.settings, data.observed, data.test, k)
    asked_of = rows.some(data.test, data.observed.output[data.test], models.SHOT_ROWS)
    which = np.concatenate([few, asked_of])
    at = torch.as_tensor(which).to(data.device)
    p = models.with_fewer(
        fitted.model,
        data.settings,
        fitted.model.kernel.prepare(data.x[at]),
        data.output[at],
        data.label[at],
        len(few),
    )[len(few) :]
    first = data.observed.offset[data.observed.output[asked_of]]
    own = first + p.cpu().numpy().argmax(1)
    nearest = NEAREST.predict(problem_of(data, few, asked_of)).point
    return {
        "shots": np.array([k]),
        "accuracy": rows.accuracy(data.observed, asked_of, own),
        "nearest": rows.accuracy(data.observed, asked_of, nearest),
    }


def predictions(fitted: FittedOmniglot, table: pd.DataFrame) -> pd.DataFrame:
    """The table with predictions (see `Study.predict`)."""
    data = fitted.data
    pixels = data.image is not None
    given = checked(table, () if pixels else data.observed.features)
    given = checked(given, columns_of(given)) if pixels else given
    query = rows_to_predict(data, given)
    told = fitted.of_features(query.x, query.output)
    p = told.probabilities
    assert told.information is not None, "the model gives it"
    best = p.argmax(1)
    each: dict[str, np.ndarray] = {}
    if data.sizes.sum() <= MOST_COLUMNS:
        for d, names in enumerate(query.classes):
            own = np.where((query.output == d)[:, None], p[:, : len(names)], np.nan)
            each |= {f"{query.outputs[d]}/{label}": own[:, i] for i, label in enumerate(names)}
    names = [query.classes[d][c] for d, c in zip(query.output, best)]
    outside = data.region.outside(query.x).astype(np.int64)
    return with_classes(
        table, names, p[np.arange(len(p)), best], each,
        entropy=told.entropy, information=told.information, outside=outside,
    )  # fmt: skip


def rows_to_predict(data: Prepared, table: pd.DataFrame) -> Characters:
    """A table's rows as the model has learned its own.

    Raises:
        BadInput: A column is absent, an output was not trained on, images are of another shape.
    """
    observed = data.observed
    own = columns_of(table) if data.image is not None else observed.features
    query = of(table, observed.outputs, observed.classes, own, **words(table))
    if data.image is None:
        return query
    x = images(
        data.settings,
        data.image,
        len(own) if query.pixels else 0,
        lambda shape: rows.model_inputs(data.settings, query.x, shape),
    )
    return Characters(query.outputs, query.classes, query.output, query.label, x, observed.features)
