"""Preprocessing of multiview tables: settings, training rows, scales, metadata."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import skew

from scant.errors import BadInput
from scant.studies.auto import set_or
from scant.studies.multiview.settings import LAYERED, MODELS, MOST_PROCESS, SHOWN, MultiviewSettings
from scant.studies.multiview.table import MultiviewData
from scant.studies.split import EVERYTHING, TEST
from scant.tables.column_matching import listed

SHARE = {"classification": 0.5, "regression": 0.5, "survival": 0.25}  # as published
POINTS = {"classification": 50, "regression": 10, "survival": 10}  # published: 10
WIDTHS = {"classification": 4.0, "regression": 1.0, "survival": 1.0}  # neurons' start
MOST_SKEW = 1.0  # of values that are learned as they are
TRIES = 200  # of a random split, until both classes are on both sides
LEAST = 8  # rows to learn from
SCORE = {"classification": "F1", "regression": "NMSE", "survival": "NMSE by patient (log time)"}
SINGLE_NEURONS = 3  # of one view, as `DFGP.build` has it
EVERY_BLOCK = 12  # numbers of blocks of labels up to which each is offered
PARTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of more
LEAST_ROWS = 16  # of a stop of that curve
AVERAGED = {
    "classification": "SVM, averaged kernels",
    "regression": "ridge, averaged kernels",
    "survival": "ridge, averaged kernels",
}


def settled(s: MultiviewSettings, observed: MultiviewData) -> MultiviewSettings:
    """The settings with what they leave open chosen by what is learned, and of what.

    Raises:
        BadInput: A model, or a logarithm, that does not go with what is learned.
    """
    classes = observed.task == "classification"
    if s.model == "student-t" and classes:
        raise BadInput(
            "Setting 'model' is student-t, which learns values, and this table has classes; "
            "choose dfgp, dfgp-wp or sgp."
        )
    values = s.values() | {"task": observed.task}
    for name in ("neurons", "n_inducing", "n_components"):  # of a model made without its table
        values[name] = set_or(values[name], 0)
    if s.bound == "auto":
        late = observed.task == "survival" and s.model in LAYERED
        values["bound"] = "stochastic" if late else "published"
    if not values["n_inducing"]:
        values["n_inducing"] = POINTS[observed.task]
    if not s.start_width:
        values["start_width"] = WIDTHS[observed.task]
    if s.inducing_init == "auto":
        values["inducing_init"] = "learnt" if classes else "fixed"
    if s.log_target == "auto":
        values["log_target"] = (
            "yes" if observed.task == "regression" and _skewed(observed.target) else "no"
        )
    if (
        values["log_target"] == "yes"
        and observed.task == "regression"
        and np.nanmin(observed.target) < 0
    ):
        raise BadInput(
            f"Setting 'log_target' is yes, and a y is {np.nanmin(observed.target):g}: its "
            "logarithm needs values of at least zero; set it to no."
        )
    result = type(s)(**values)
    return result


def _skewed(y: Float[np.ndarray, " n"]) -> bool:
    """Whether values are never below zero, skewed, and less so as logarithms."""
    own = y[np.isfinite(y)]
    if not len(own) or own.min() < 0:
        return False
    tail, after = float(skew(own)), float(skew(np.log1p(own)))
    return tail > MOST_SKEW and abs(after) < tail


def known(observed: MultiviewData) -> Int[np.ndarray, " m"]:
    """The rows whose target the table says.

    Raises:
        BadInput: There are too few.
    """
    rows = np.flatnonzero(np.isfinite(observed.target))
    if len(rows) < 2 * LEAST:
        raise BadInput(
            f"Only {len(rows)} rows have a target, and at least {2 * LEAST} are needed; add rows."
        )
    return rows


def split(
    s: MultiviewSettings,
    observed: MultiviewData,
    repeat: int = 0,
    marked: np.ndarray | None = None,
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " t"]]:
    """Rows to learn from and rows that are held out; whole groups where there are several.

    The held-out rows are the same whatever `train_rows` is, and fewer rows are among more.

    Args:
        s: Settings.
        observed: Rows of known target.
        repeat: Which of the random splits; 0 is the run's own.
        marked: What the rows are marked for (`scant.studies.split.marks`).

    Raises:
        BadInput: One class cannot be on both sides, or too few rows are left to learn from.
    """
    own = np.unique(observed.group)
    block = observed.group if len(own) > 1 else np.arange(len(observed))
    everything = s.refit == EVERYTHING
    for attempt in range(TRIES):
        if marked is not None and (marked == TEST).any():
            train = np.flatnonzero(marked != TEST)
        else:
            train = np.flatnonzero(np.isin(block, _chosen(s, observed, block, repeat, attempt)))
        test = np.setdiff1d(np.arange(len(observed)), train)
        train = _teaching(s, observed, np.arange(len(observed)) if everything else train)
        if s.training_size and not everything and len(train) > s.training_size:
            rng = np.random.default_rng([s.seed, 54, repeat])
            train = np.sort(_fewest(rng, observed, train)[: s.training_size])
        if _both(observed, train) and _both(observed, test):
            break
    else:
        raise BadInput(
            "No split of the groups has both classes to learn from and to be asked; change "
            "'train_share' or 'train_rows', or leave the column 'group' out."
        )
    if len(train) < LEAST:
        raise BadInput(
            f"Only {len(train)} rows are left to learn from, and at least {LEAST} are needed; "
            "raise 'train_share' or 'train_rows'."
        )
    return train, test


def _chosen(
    s: MultiviewSettings,
    observed: MultiviewData,
    block: Int[np.ndarray, " n"],
    repeat: int,
    attempt: int,
) -> Int[np.ndarray, " b"]:
    """The blocks that may be learned from; single rows are drawn class by class.

    Splits that follow each other learn from other blocks, as long as there are some.
    """
    names = np.unique(block)
    classes, alone = observed.task == "classification", len(names) == len(observed)
    share = s.training_share or (0.0 if classes and not alone else SHARE[observed.task])
    parts = (
        [np.flatnonzero(observed.target == c) for c in (0.0, 1.0)] if classes and alone else [names]
    )
    picked = []
    for part in parts:
        count = min(max(1, round(share * len(part))), len(part) - 1)
        turn, place = divmod(repeat, len(part) // count)
        mixed = np.random.default_rng([s.seed, 51, turn, attempt]).permutation(part)
        picked.append(mixed[place * count : (place + 1) * count])
    return np.concatenate(picked)


def _teaching(
    s: MultiviewSettings, observed: MultiviewData, rows: np.ndarray
) -> Int[np.ndarray, " m"]:
    """Rows that can be learned from: a censored time only by a bound that takes it."""
    return rows if learns_censored(s, observed.task) else rows[observed.event[rows]]


def learns_censored(s: MultiviewSettings, task: str) -> bool:
    """Whether the model learns from censored times."""
    return task != "survival" or (s.bound == "stochastic" and s.model in LAYERED)


def _fewest(
    rng: np.random.Generator, observed: MultiviewData, rows: np.ndarray
) -> Int[np.ndarray, " m"]:
    """The rows in an order that keeps the shares of both classes in every prefix."""
    mixed = rng.permutation(rows)
    if observed.task != "classification":
        return mixed
    place = np.empty(len(mixed))
    for c in (0.0, 1.0):
        own = np.flatnonzero(observed.target[mixed] == c)
        place[own] = (np.arange(len(own)) + 0.5) / max(len(own), 1)
    return mixed[np.argsort(place, kind="stable")]


def _both(observed: MultiviewData, rows: np.ndarray) -> bool:
    return observed.task != "classification" or len(np.unique(observed.target[rows])) == 2


def views_of(s: MultiviewSettings, observed: MultiviewData) -> list[str]:
    """The views that the settings name, in the table's order.

    Raises:
        BadInput: There is no such view.
    """
    wanted = [w.strip() for w in s.views.split(",") if w.strip()]
    return observed.only(wanted).names if wanted else list(observed.names)


def shown(test: Int[np.ndarray, " t"]) -> Int[np.ndarray, " n"]:
    """Held-out rows that a snapshot shows, evenly spread."""
    return test[np.unique(np.linspace(0, len(test) - 1, min(len(test), SHOWN)).astype(int))]


def neurons_of(s: MultiviewSettings, views: list[str]) -> list[str]:
    """Names of the hidden neurons: those of their views, numbered where one has several."""
    if s.model not in LAYERED:
        return []
    count = s.neurons or (len(views) if len(views) > 1 else SINGLE_NEURONS)
    if count <= len(views):
        return views[:count]
    return [f"{views[i % len(views)]} {i // len(views) + 1}" for i in range(count)]


def methods_of(s: MultiviewSettings, task: str, n_train: int) -> list[str]:
    """What the run is compared with, the run itself first."""
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
    """What labels come in, and which of them each row that is learned from belongs to."""
    if observed.task == "survival":
        return "patients", observed.patient[train]
    if 1 < len(np.unique(observed.group[train])) < len(train):  # else each row is one by itself
        return "groups", observed.group[train]
    return "rows", np.arange(len(train))


def stops(observed: MultiviewData, train: Int[np.ndarray, " n"]) -> tuple[str, list[int]]:
    """What is counted, and the numbers of it from which the curve can be learned."""
    name, block = blocks(observed, train)
    count = len(np.unique(block))
    every = (
        range(1, count + 1) if count <= EVERY_BLOCK else sorted({round(count * p) for p in PARTS})
    )
    least = LEAST_ROWS * count / max(len(train), 1)
    return name, [n for n in every if n >= least]


def metadata_of(
    s: MultiviewSettings, observed: MultiviewData, train: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """What labels the arrays on a page (`events.Started`)."""
    views = views_of(s, observed)
    counted, counts = stops(observed, train)
    held = (
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
        "patients": [observed.patients[p] for p in held],
        "methods": methods_of(s, observed.task, len(train)),
        "score": SCORE[observed.task],
        "counted": counted,
        "counts": counts if len(test) else [],
        "scarce": ["this run", AVERAGED[observed.task], _plain(observed.task)],
        "rows": {"training": len(train), "test": len(test)},
    }


def notes(s: MultiviewSettings, observed: MultiviewData, train: np.ndarray) -> list[str]:
    """What a person should know of how the table was taken."""
    messages = []
    if logs(s, observed.task):
        messages.append(
            "The model is trained on the logarithm of 1 + y; predictions are in the unit of y."
        )
    if observed.task == "survival":
        censored = ~observed.event
        lost = len(np.unique(observed.patient[censored]))
        if censored.any() and not learns_censored(s, observed.task):
            messages.append(
                f"{lost:,} patients are censored: their rows are not trained on, but enter the "
                "survival curves; the stochastic bound of DFGP trains on them as well."
            )
    flat = [
        name
        for i, name in enumerate(observed.names)
        if not np.ptp(observed.x[np.ix_(train, np.flatnonzero(observed.view == i))], axis=0).any()
    ]
    if flat:
        messages.append(f"Nothing varies in {listed(flat)} among the training rows.")
    if len(np.unique(observed.group)) == 1 and len(observed.groups) == 1:
        messages.append("There is one group only, so that rows are held out one by one.")
    return messages


def model_inputs(s: MultiviewSettings, observed: MultiviewData) -> Float[np.ndarray, " n"]:
    """Targets on the scale on which they are learned, by settled settings."""
    if observed.task == "survival":
        return np.log(observed.target)
    return np.log1p(observed.target) if logs(s, observed.task) else observed.target


def logs(s: MultiviewSettings, task: str) -> bool:
    """Whether logarithms of values are learned, by settled settings."""
    return task == "regression" and s.log_target == "yes"
