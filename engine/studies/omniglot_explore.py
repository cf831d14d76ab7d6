"""Answers to what a person asks of a fitted omniglot study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from engine.catalog.omniglot import BLOCK
from engine.datasets.characters import Characters, columns_of, of
from engine.datasets.naming import listed
from engine.errors import BadInput
from engine.studies import omniglot_baselines as baselines
from engine.studies import omniglot_matrices as matrices
from engine.studies import omniglot_models as models
from engine.studies import omniglot_rows as rows
from engine.studies.asked import numbers, whole
from engine.studies.predicted import checked, images, with_classes

if TYPE_CHECKING:
    from engine.studies.omniglot import Study

MOST_COLUMNS = 500  # classes up to which predictions have a column for each
TOP = 3  # most probable classes of each output that come with an image


def answer(study: Study, question: str, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, or words in it that it does not.
    """
    if question == "draw":
        return respond(study, drawn(study, asked.get("pixels", "")), asked)
    if question == "response":
        row = whole(asked.get("row", 0), "row", 0, len(study.seen) - 1)
        return respond(study, study.seen.x[row], asked)
    if question == "block":
        return block(study, asked)
    if question == "shots":
        return shots(study, asked)
    raise BadInput(f"Nothing is known of {question!r}; ask 'draw', 'response', 'block' or 'shots'.")


def drawn(study: Study, pixels: Any) -> Float[np.ndarray, " v"]:
    """The image that a person drew.

    Args:
        study: A fitted one.
        pixels: Ink in [0, 1], row by row: numbers, or a text of them with commas, or base64 of
            bytes from 0 to 255.

    Raises:
        BadInput: The model has learnt no images, or these are no pixels of one.
    """
    if study.image is None:
        raise BadInput("This model has not learnt from images, so there is nothing to draw.")
    count = study.image[0] * study.image[1]
    why = f"the model's images have {study.image[1]} x {study.image[0]} = {count:,}"
    values = numbers(pixels, "pixels", count, why, shades=rows.SHADES)
    return rows.shaded(study.settings, values)


def respond(study: Study, x: Float[np.ndarray, " v"], asked: dict[str, Any]) -> dict[str, Any]:
    """Probabilities of every class within its output, and what each patch adds to one of them."""
    count = len(study.sizes)
    each = torch.tensor(x).repeat(count, 1).to(study.device)
    found = study.of_features(each, torch.arange(count).to(study.device)).probability
    p = found.cpu().numpy()
    flat = np.concatenate([p[i, :size] for i, size in enumerate(study.sizes)])
    d, label = _class(study, asked, p)
    top, images = _top(study, p)
    shape = study.image or (0, 0)
    return {
        "p": flat,
        "map": study.response(x, d, label),
        "class": np.array([study.seen.offset[d] + label]),
        "image": x.reshape(shape) if study.image else np.empty((0, 0)),
        "top": top,
        "top_image": images,
    }


def _class(study: Study, asked: dict[str, Any], p: Float[np.ndarray, "d c"]) -> tuple[int, int]:
    """Output and label in question: as asked (`label`, or `output/label`), or the most probable."""
    seen = study.seen
    label, output = str(asked.get("label") or ""), str(asked.get("output") or "")
    if not output and "/" in label:
        output, _, label = label.partition("/")
    if output and output not in seen.outputs:
        raise BadInput(f"There is no output {output!r}; there is {listed(seen.outputs)}.")
    d = seen.outputs.index(output) if output else 0
    if not label:
        return d, int(p[d].argmax())
    if label not in seen.classes[d]:
        raise BadInput(
            f"There is no class {label!r} of {seen.outputs[d]!r}; it has {listed(seen.classes[d])}."
        )
    return d, seen.classes[d].index(label)


def _top(study: Study, p: Float[np.ndarray, "d c"]) -> tuple[np.ndarray, np.ndarray]:
    """The most probable classes of each output, and a learnt image of each."""
    seen, shape = study.seen, study.image or (0, 0)
    top = np.full((len(study.sizes), TOP), -1)
    images = np.zeros((*top.shape, *shape))
    example = dict(zip(seen.number[study.learnt][::-1].tolist(), study.learnt[::-1].tolist()))
    for d, size in enumerate(study.sizes):
        best = np.argsort(-p[d, :size], kind="stable")[:TOP]
        top[d, : len(best)] = seen.offset[d] + best
        if study.image is not None:
            for k, c in enumerate(best):
                images[d, k] = seen.x[example[int(seen.offset[d] + c)]].reshape(shape)
    return top, images


def block(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """One coregionalisation matrix among the classes of some outputs."""
    named = asked.get("outputs", "") or study.seen.outputs
    named = [w.strip() for w in named.split(",")] if isinstance(named, str) else list(named)
    lost = [name for name in named if name not in study.seen.outputs]
    if lost:
        raise BadInput(f"There is no output {lost[0]!r}; there is {listed(study.seen.outputs)}.")
    outputs = np.array([study.seen.outputs.index(name) for name in dict.fromkeys(named)])
    factors = study.factors()
    q = whole(asked.get("latent", 0), "latent", 0, len(factors) - 1)
    classes = np.concatenate(
        [study.seen.offset[d] + np.arange(study.sizes[d]) for d in outputs.tolist()]
    )
    if len(classes) <= BLOCK:
        matrix = matrices.blocks(factors[:, classes], np.array([q]))[0]
        return {"matrix": matrix, "class": classes, "aggregated": np.array([0])}
    between = matrices.between_outputs(factors[:, classes], study.sizes[outputs], np.array([q]))
    return {"matrix": between, "class": outputs, "aggregated": np.array([1])}


def shots(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """Accuracy with k examples of each class, by the model trained anew and by the nearest.

    The kernel and its inducing points are the run's; what knows labels begins afresh.

    Raises:
        BadInput: No row is held out, or k is no such number.
    """
    most = int(study.words["shots_most"])
    k = whole(asked.get("k", asked.get("shots", 1)), "k", 1, most)
    if not len(study.test):
        raise BadInput("No row is held out, so there is nothing to score; set 'test_share'.")
    few = rows.few(study.settings, study.seen, study.test, k)
    asked_of = rows.some(study.test, study.seen.output[study.test], models.SHOT_ROWS)
    which = np.concatenate([few, asked_of])
    at = torch.as_tensor(which).to(study.device)
    p = models.with_fewer(
        study.model,
        study.settings,
        study.model.kernel.prepare(study.x[at]),
        study.output[at],
        study.label[at],
        len(few),
    )[len(few) :]
    near = baselines.nearest(study, few, asked_of)
    return {
        "shots": np.array([k]),
        "accuracy": rows.accuracy(study.seen, asked_of, p.cpu().numpy()),
        "nearest": rows.accuracy(study.seen, asked_of, near),
    }


def predictions(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """The table with predictions (see `Study.predict`)."""
    pixels = study.image is not None
    table = checked(table, () if pixels else study.seen.features)
    table = checked(table, columns_of(table)) if pixels else table
    asked = rows_to_predict(study, table)
    x = torch.as_tensor(asked.x, dtype=torch.float64).to(study.device)
    output = torch.as_tensor(asked.output).to(study.device)
    p = study.of_features(x, output).probability.cpu().numpy()
    best = p.argmax(1)
    each: dict[str, np.ndarray] = {}
    if study.sizes.sum() <= MOST_COLUMNS:
        for d, names in enumerate(asked.classes):
            own = np.where((asked.output == d)[:, None], p[:, : len(names)], np.nan)
            each |= {f"{asked.outputs[d]}/{label}": own[:, i] for i, label in enumerate(names)}
    names = [asked.classes[d][c] for d, c in zip(asked.output, best)]
    return with_classes(table, names, p[np.arange(len(p)), best], each)


def rows_to_predict(study: Study, table: pd.DataFrame) -> Characters:
    """A table's rows as the model has learnt its own.

    Raises:
        BadInput: A column is absent, an output was not trained on, images are of another shape.
    """
    seen = study.seen
    own = columns_of(table) if study.image is not None else seen.features
    asked = of(table, seen.outputs, seen.classes, own, rows=range(2, len(table) + 2))
    if study.image is None:
        return asked
    x = images(
        study.settings,
        study.image,
        len(own) if asked.pixels else 0,
        lambda shape: rows.as_learnt(study.settings, asked.x, shape),
    )
    return Characters(asked.outputs, asked.classes, asked.output, asked.label, x, seen.features)
