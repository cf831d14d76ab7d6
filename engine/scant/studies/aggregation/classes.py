"""Classes of categorical tasks: their order, their numbers in the model, and their probabilities.

The model numbers classes from the rarest (0), whose probability figures and maps show, to the most
frequent, which is the reference of the log odds (`scant.models.mtgpa.categorical`). Tables have
labels, or any whole numbers, such as codes of land cover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from scant.errors import BadInput
from scant.models.mtgpa.likelihoods import CATEGORICAL, Categorical, Likelihood
from scant.studies.aggregation.supports import Supports
from scant.studies.base import ArraySpec
from scant.studies.predicted_columns import of_classes
from scant.tables.class_labels import MAX_CLASSES

COLUMNS = of_classes(doubt=False)[:-1]  # columns of predictions beside those of values
Classes = Mapping[str, Sequence[float]]  # task to the table's values of its classes


def classes_of(
    observed: Supports, rows: Bool[np.ndarray, " n"], kinds: Sequence[str]
) -> dict[str, list[float]]:
    """Values of the classes of each categorical task, the rarest first.

    Args:
        observed: The table; classes of rows without a training row count as rarest.
        rows: Its training rows.
        kinds: Likelihood of each task.

    Raises:
        BadInput: A task has one class, or too many.
    """
    result = {}
    for t, (task, kind) in enumerate(zip(observed.tasks, kinds)):
        if kind != CATEGORICAL:
            continue
        mine = (observed.task == t) & np.isfinite(observed.y)
        values = np.unique(observed.y[mine])
        if not 2 <= len(values) <= MAX_CLASSES:
            raise BadInput(
                f"Number of classes of the categorical task {task!r}: {len(values):,}; between 2 "
                f"and {MAX_CLASSES} can be learned. Choose another likelihood."
            )
        count = [int((observed.y[mine & rows] == v).sum()) for v in values]
        result[task] = values[np.argsort(count, kind="stable")].tolist()
    return result


def numbered(y: Float[np.ndarray, " n"], values: Sequence[float]) -> Int[np.ndarray, " n"]:
    """Number of each row's class; -1 where y is none of the classes."""
    match = y[:, None] == np.asarray(values)
    return np.where(match.any(1), match.argmax(1), -1)


def in_model(observed: Supports, rows: np.ndarray, classes: Classes) -> Float[np.ndarray, " m"]:
    """y of some rows (by mask or numbers), of categorical tasks the numbers of their classes."""
    y, task = observed.y[rows].copy(), observed.task[rows]
    for t, name in enumerate(observed.tasks):
        if name in classes:
            y[task == t] = numbered(y[task == t], classes[name])
    return y


def as_indicators(observed: Supports, classes: Classes) -> Supports:
    """The table with 1 for the rarest class of a categorical task and 0 for the others."""
    y = observed.y.copy()
    for t, name in enumerate(observed.tasks):
        if name in classes:
            known = (observed.task == t) & np.isfinite(y)
            y[known] = y[known] == classes[name][0]
    return replace(observed, y=y)


def with_classes(
    kinds: Sequence[str], tasks: Sequence[str], classes: Classes
) -> list[str | Likelihood]:
    """Likelihoods as `MTGPA` takes them, with the number of classes of each categorical task."""
    return [
        Categorical(len(classes[task])) if kind == CATEGORICAL else kind
        for kind, task in zip(kinds, tasks)
    ]


def outputs(metadata: Mapping[str, Any]) -> int:
    """Number of tasks, where each log odds of classes counts as two, for a function of its own."""
    classes = metadata.get("classes", {})
    return sum(2 * (len(classes[t]) - 1) if t in classes else 1 for t in metadata["tasks"])


def names_of(observed: Supports, classes: Classes) -> dict[str, list[str]]:
    """Names of the classes in columns and sentences: labels, or else codes."""
    return {
        task: [observed.labels.get(task, {}).get(v, f"{v:g}") for v in values]
        for task, values in classes.items()
    }


def further(metadata: Mapping[str, Any]) -> tuple[ArraySpec, ...]:
    """Columns that predictions of a run with categorical tasks have beside the others."""
    return COLUMNS if metadata.get("classes") else ()


def columns_of(
    probabilities: Float[np.ndarray, "n c"], names: Sequence[str]
) -> dict[str, np.ndarray]:
    """Predicted class, its probability, and a column of probabilities for each class."""
    return {
        "label": np.array(names, dtype=object)[probabilities.argmax(1)],
        "probability": probabilities.max(1),
        **{f"p({name})": p for name, p in zip(names, probabilities.T)},
    }


def notes(names: Mapping[str, Sequence[str]]) -> list[str]:
    """Sentences on what means and figures of categorical tasks are."""
    made = []
    for task, own in names.items():
        rarest, classes = own[0], ", ".join(own)
        made.append(
            f"Classes of task {task}, the rarest first: {classes}. Means, deviations, figures and "
            f"maps of this task are of the probability of {rarest}."
        )
    return made
