"""Metadata of a run: names of neurons and methods, numbers of the learning curve; notes."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.settings import LAYERED, MODELS, MOST_PROCESS, MultiviewSettings
from scant.studies.multiview.splits import AVERAGED, SCORE, learns_censored, logs, views_of
from scant.tables.column_matching import listed

SINGLE_NEURONS = 3  # neurons of a single view, as in `DFGP.build`
EVERY_BLOCK = 12  # up to this number of units, the curve has every number
PARTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # shares of a larger number of units
LEAST_ROWS = 16  # minimum number of rows on the curve


def neurons_of(s: MultiviewSettings, views: list[str]) -> list[str]:
    """Names of the hidden neurons: those of the views, numbered if a view has several."""
    if s.model not in LAYERED:
        return []
    count = s.neurons or (len(views) if len(views) > 1 else SINGLE_NEURONS)
    if count <= len(views):
        return views[:count]
    return [f"{views[i % len(views)]} {i // len(views) + 1}" for i in range(count)]


def methods_of(s: MultiviewSettings, task: str, n_train: int) -> list[str]:
    """Names of the methods in the report, the run's first."""
    if not s.baselines:
        return ["this run"]
    models = [m for m in MODELS if m != s.model]
    if task == "classification" or n_train > MOST_PROCESS:
        models = [m for m in models if m != "student-t"]
    return ["this run", *(MODELS[m] for m in models), AVERAGED[task], _plain(task)]


def _plain(task: str) -> str:
    return "best single view" if task == "classification" else "linear"


def blocks(
    observed: MultiviewData, train: Int[np.ndarray, " n"]
) -> tuple[str, Int[np.ndarray, " n"]]:
    """Units in which labels arrive, and the unit of each training row."""
    if observed.task == "survival":
        return "patients", observed.patient[train]
    if 1 < len(np.unique(observed.group[train])) < len(train):  # else each row is a group
        return "groups", observed.group[train]
    return "rows", np.arange(len(train))


def stops(observed: MultiviewData, train: Int[np.ndarray, " n"]) -> tuple[str, list[int]]:
    """Name of the units, and the numbers of units on the learning curve."""
    name, block = blocks(observed, train)
    count = len(np.unique(block))
    use_all = count <= EVERY_BLOCK
    numbers = range(1, count + 1) if use_all else sorted({round(count * p) for p in PARTS})
    min_units = LEAST_ROWS * count / max(len(train), 1)
    return name, [n for n in numbers if n >= min_units]


def metadata_of(
    s: MultiviewSettings, observed: MultiviewData, train: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """Metadata of a run (`events.Started`)."""
    views = views_of(s, observed)
    unit, counts = stops(observed, train)
    test_patients = (
        list(dict.fromkeys(observed.patient[test].tolist())) if observed.task == "survival" else []
    )
    return {
        "task": observed.task,
        "model": MODELS[s.model],
        "bound": s.bound,
        "logarithm": logs(s, observed.task),
        "views": list(observed.names),
        "looked": views,
        "neurons": neurons_of(s, views),
        "features": list(observed.features),
        "classes": list(observed.classes),
        "patients": [observed.patients[p] for p in test_patients],
        "methods": methods_of(s, observed.task, len(train)),
        "score": SCORE[observed.task],
        "counted": unit,
        "counts": counts if len(test) else [],
        "scarce": ["this run", AVERAGED[observed.task], _plain(observed.task)],
        "rows": {"training": len(train), "test": len(test)},
    }


def notes(s: MultiviewSettings, observed: MultiviewData, train: np.ndarray) -> list[str]:
    """Notes on how the table is used."""
    messages = []
    if logs(s, observed.task):
        messages.append(
            "The model is trained on the logarithm of 1 + y; predictions are in the unit of y."
        )
    if observed.task == "survival":
        censored = ~observed.event
        n_censored = len(np.unique(observed.patient[censored]))
        if censored.any() and not learns_censored(s, observed.task):
            messages.append(
                f"Of the patients, {n_censored:,} are censored: the model does not learn from "
                "their rows, but they count in the survival curves. The stochastic bound of DFGP "
                "learns from them as well."
            )
    flat = [
        name
        for i, name in enumerate(observed.names)
        if not np.ptp(observed.x[np.ix_(train, np.flatnonzero(observed.view == i))], axis=0).any()
    ]
    if flat:
        messages.append(f"Nothing varies among the training rows in {listed(flat)}.")
    if len(np.unique(observed.group)) == 1 and len(observed.groups) == 1:
        messages.append("There is only one group, so rows are held out one by one.")
    return messages
