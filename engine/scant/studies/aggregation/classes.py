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
        observed: The table.
        rows: Its training rows. Classes without one are second to last, before the most frequent.
        kinds: Likelihood of each task.

    Raises:
        BadInput: A task has too many classes, or fewer than two in the training rows.
    """
    result = {}
    for t, (task, kind) in enumerate(zip(observed.tasks, kinds)):
        if kind != CATEGORICAL:
            continue
        known = (observed.task == t) & np.isfinite(observed.y)
        trained, count = np.unique(observed.y[known & rows], return_counts=True)
        others = np.setdiff1d(observed.y[known], trained)
        if len(trained) < 2 or len(trained) + len(others) > MAX_CLASSES:
            raise BadInput(
                f"Number of classes of the categorical task {task!r}: {len(trained):,} in the "
                f"training rows and {len(others):,} more; between 2 and {MAX_CLASSES} can be "
                "learned. Choose another likelihood."
            )
        *rare, frequent = trained[np.argsort(count, kind="stable")].tolist()
        result[task] = [*rare, *others.tolist(), frequent]
    return result


def class_numbers(y: Float[np.ndarray, " n"], values: Sequence[float]) -> Int[np.ndarray, " n"]:
    """Number of each row's class; -1 where y is none of the classes."""
    match = y[:, None] == np.asarray(values)
    return np.where(match.any(1), match.argmax(1), -1)


def in_model(observed: Supports, rows: np.ndarray, classes: Classes) -> Float[np.ndarray, " m"]:
    """y of some rows (by mask or numbers), of categorical tasks the numbers of their classes."""
    y, task = observed.y[rows].copy(), observed.task[rows]
    for t, name in enumerate(observed.tasks):
        if name in classes:
            y[task == t] = class_numbers(y[task == t], classes[name])
    return y


def as_indicators(observed: Supports, classes: Classes) -> Supports:
    """The table with 1 for the rarest class of a categorical task and 0 for the others."""
    y, truth = observed.y.copy(), observed.truth.copy()
    for t, name in enumerate(observed.tasks):
        if name in classes:
            for values in (y, truth):
                known = (observed.task == t) & np.isfinite(values)
                values[known] = values[known] == classes[name][0]
    return replace(observed, y=y, truth=truth)


def with_class_counts(
    kinds: Sequence[str], tasks: Sequence[str], classes: Classes
) -> list[str | Likelihood]:
    """Likelihoods as `MTGPA` takes them, with the number of classes of each categorical task."""
    return [
        Categorical(len(classes[task])) if kind == CATEGORICAL else kind
        for kind, task in zip(kinds, tasks)
    ]


def latent_functions(metadata: Mapping[str, Any]) -> int:
    """Latent functions by default: one for every two numeric tasks, and one for each log odds."""
    classes = metadata.get("classes", {})
    log_odds = sum(len(values) - 1 for values in classes.values())
    return -(-(len(metadata["tasks"]) - len(classes)) // 2) + log_odds


def names_of(observed: Supports, classes: Classes) -> dict[str, list[str]]:
    """Names of the classes in columns and sentences: labels, or else codes.

    Raises:
        BadInput: A code without a label is written like the label of another one.
    """
    result = {
        task: [observed.labels.get(task, {}).get(v, f"{v:g}") for v in values]
        for task, values in classes.items()
    }
    for task, names in result.items():
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(
                f"Two classes of the categorical task {task!r} are called {twice!r}: a code, and "
                "the label of another; give all of them labels."
            )
    return result


def further(metadata: Mapping[str, Any]) -> tuple[ArraySpec, ...]:
    """Columns that predictions of a run with categorical tasks have beside the others."""
    return COLUMNS if metadata.get("classes") else ()


def notes(observed: Supports, rows: Bool[np.ndarray, " n"], classes: Classes) -> list[str]:
    """Sentences on what means and figures of categorical tasks are (arguments as `classes_of`)."""
    sentences = []
    for task, names in names_of(observed, classes).items():
        rarest, every = names[0], ", ".join(names)
        sentences.append(
            f"Classes of task {task}, the rarest first: {every}. Means, deviations, figures and "
            f"maps of this task are of the probability of {rarest}."
        )
        learned = observed.y[rows & observed.is_task(task)]
        sentences += [
            f"Class {name} of task {task} has no training row; its probability is a guess."
            for name, value in zip(names, classes[task])
            if value not in learned
        ]
    return sentences
