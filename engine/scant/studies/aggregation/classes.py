"""Classes of categorical tasks: their order, numbers in the model, and probabilities.

Classes are numbered from the rarest (0), whose probability is shown in figures and maps, to the
most frequent, the reference of the log odds (`scant.models.mtgpa.categorical`). Tables have labels,
or any whole numbers, such as codes of land cover.
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

COLUMNS = of_classes(doubt=False)[:-1]  # columns of predictions in addition to those of values
Classes = Mapping[str, Sequence[float]]  # class values in the table, by task


def classes_of(
    observed: Supports, rows: Bool[np.ndarray, " n"], kinds: Sequence[str]
) -> dict[str, list[float]]:
    """Class values of each categorical task, the rarest first.

    Args:
        observed: The table.
        rows: Its training rows. Classes without any precede the last, most frequent class.
        kinds: Likelihood of each task.

    Raises:
        BadInput: A task has too many classes, or fewer than two in the training rows.
    """
    result = {}
    for t, (task, kind) in enumerate(zip(observed.tasks, kinds)):
        if kind != CATEGORICAL:
            continue
        labeled = (observed.task == t) & np.isfinite(observed.y)
        trained, count = np.unique(observed.y[labeled & rows], return_counts=True)
        others = np.setdiff1d(observed.y[labeled], trained)
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
    """Class number of each row; -1 where y is no class value."""
    match = y[:, None] == np.asarray(values)
    return np.where(match.any(1), match.argmax(1), -1)


def in_model(observed: Supports, rows: np.ndarray, classes: Classes) -> Float[np.ndarray, " m"]:
    """y of selected rows (mask or indices), with class numbers for categorical tasks."""
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
                labeled = (observed.task == t) & np.isfinite(values)
                values[labeled] = values[labeled] == classes[name][0]
    return replace(observed, y=y, truth=truth)


def with_class_counts(
    kinds: Sequence[str], tasks: Sequence[str], classes: Classes
) -> list[str | Likelihood]:
    """Likelihoods for `MTGPA`, with the number of classes of each categorical task."""
    return [
        Categorical(len(classes[task])) if kind == CATEGORICAL else kind
        for kind, task in zip(kinds, tasks)
    ]


def latent_functions(metadata: Mapping[str, Any]) -> int:
    """Default number of latent functions: one for two numeric tasks and for each log odds."""
    classes = metadata.get("classes", {})
    log_odds = sum(len(values) - 1 for values in classes.values())
    return -(-(len(metadata["tasks"]) - len(classes)) // 2) + log_odds


def names_of(observed: Supports, classes: Classes) -> dict[str, list[str]]:
    """Class names for columns and sentences: labels, or else codes.

    Raises:
        BadInput: A code without a label equals the label of another code.
    """
    result = {
        task: [observed.labels.get(task, {}).get(v, f"{v:g}") for v in values]
        for task, values in classes.items()
    }
    for task, names in result.items():
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise BadInput(
                f"Two classes of the categorical task {task!r} are called {duplicate!r}: a code, "
                "and the label of another; give all of them labels."
            )
    return result


def further(metadata: Mapping[str, Any]) -> tuple[ArraySpec, ...]:
    """Additional columns of predictions of a run with categorical tasks."""
    return COLUMNS if metadata.get("classes") else ()


def notes(observed: Supports, rows: Bool[np.ndarray, " n"], classes: Classes) -> list[str]:
    """Sentences on the outputs of categorical tasks (arguments of `classes_of`)."""
    sentences = []
    for task, names in names_of(observed, classes).items():
        rarest, all_names = names[0], ", ".join(names)
        sentences.append(
            f"Classes of task {task}, the rarest first: {all_names}. Means, deviations, figures "
            f"and maps of this task are of the probability of {rarest}."
        )
        trained = observed.y[rows & observed.is_task(task)]
        sentences += [
            f"Class {name} of task {task} has no training row; its probability is a guess."
            for name, value in zip(names, classes[task])
            if value not in trained
        ]
    return sentences
