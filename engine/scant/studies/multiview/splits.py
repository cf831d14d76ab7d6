"""Settings that depend on the table, training and held-out rows, scales of targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import skew

from scant.errors import BadInput
from scant.studies.auto import set_or
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.settings import (
    LAYERED,
    PUBLISHED_SHARE,
    SHOWN,
    MultiviewSettings,
)
from scant.studies.multiview.table import of
from scant.studies.query import names_in
from scant.studies.split import EVERYTHING, TEST, evenly_spaced, marks, with_groups

POINTS = {"classification": 50, "regression": 10, "survival": 10}  # published: 10
WIDTHS = {"classification": 4.0, "regression": 1.0, "survival": 1.0}  # initial lengthscales
MOST_SKEW = 1.0  # maximum skewness of values that are learned without logarithm
TRIES = 200  # maximum number of random splits until both sides have both classes
LEAST = 8  # minimum number of training rows
SCORE = {"classification": "F1", "regression": "NMSE", "survival": "NMSE by patient (log time)"}
AVERAGED = {
    "classification": "SVM, averaged kernels",
    "regression": "ridge, averaged kernels",
    "survival": "ridge, averaged kernels",
}


def settled(s: MultiviewSettings, observed: MultiviewData) -> MultiviewSettings:
    """Replace `auto` and 0 in the settings by values for the task and table.

    Raises:
        BadInput: The model, or the logarithm, does not suit the task.
    """
    classes = observed.task == "classification"
    if s.model == "student-t" and classes:
        raise BadInput(
            "Setting 'model' is student-t, which learns values, but this table has classes; choose "
            "dfgp, dfgp-wp or sgp."
        )
    values = s.values() | {"task": observed.task}
    for name in (
        "neurons",
        "n_inducing",
        "n_components",
    ):  # models that are created without their table
        values[name] = set_or(values[name], 0)
    if s.bound == "auto":
        learns_censored_times = observed.task == "survival" and s.model in LAYERED
        values["bound"] = "stochastic" if learns_censored_times else "published"
    if not values["n_inducing"]:
        values["n_inducing"] = POINTS[observed.task]
    if not s.start_width:
        values["start_width"] = WIDTHS[observed.task]
    if s.inducing_init == "auto":
        values["inducing_init"] = "learned" if classes else "fixed"
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
            f"Setting 'log_target' is yes, but y has the value {np.nanmin(observed.target):g}, and "
            "the logarithm of 1 + y is for values of at least zero; set it to no."
        )
    return type(s)(**values)


def _skewed(y: Float[np.ndarray, " n"]) -> bool:
    """True if values are nonnegative, skewed, and less so as logarithms."""
    observed = y[np.isfinite(y)]
    if not len(observed) or observed.min() < 0:
        return False
    skewness, log_skewness = float(skew(observed)), float(skew(np.log1p(observed)))
    return skewness > MOST_SKEW and abs(log_skewness) < skewness


def known(observed: MultiviewData) -> Int[np.ndarray, " m"]:
    """Rows with a target.

    Raises:
        BadInput: There are too few.
    """
    rows = np.flatnonzero(np.isfinite(observed.target))
    if len(rows) < 2 * LEAST:
        raise BadInput(
            f"Too few rows have a target: {len(rows)}, and at least {2 * LEAST} are needed; add "
            "rows."
        )
    return rows


def split(
    s: MultiviewSettings,
    observed: MultiviewData,
    repeat: int = 0,
    marked: np.ndarray | None = None,
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " t"]]:
    """Training and held-out rows, by whole groups if there are several.

    Held-out rows do not depend on `train_rows`, and smaller sets of training rows are subsets of
    larger ones.

    Args:
        s: Settings.
        observed: Rows with a target.
        repeat: Number of the random split; 0 is the run's own.
        marked: Marks of the rows (`scant.studies.split.marks`).

    Raises:
        BadInput: One class cannot be on both sides, or too few training rows are left.
    """
    groups = np.unique(observed.group)
    block = observed.group if len(groups) > 1 else np.arange(len(observed))
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
            train = np.sort(_stratified(rng, observed, train)[: s.training_size])
        if _both(observed, train) and _both(observed, test):
            break
    else:
        raise BadInput(
            "No split of the groups has both classes among the training rows and among the "
            "held-out rows; change 'train_share' or 'train_rows', or leave the column 'group' out."
        )
    if len(train) < LEAST:
        raise BadInput(
            f"Too few rows are left to learn from: {len(train)}, and at least {LEAST} are needed; "
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
    """Training blocks; single rows are drawn class by class.

    Successive splits train on different blocks until all have been used.
    """
    names = np.unique(block)
    classes, single_rows = observed.task == "classification", len(names) == len(observed)
    share = s.training_share or (
        0.0 if classes and not single_rows else PUBLISHED_SHARE[observed.task]
    )
    parts = (
        [np.flatnonzero(observed.target == c) for c in (0.0, 1.0)]
        if classes and single_rows
        else [names]
    )
    chosen = []
    for part in parts:
        count = min(max(1, round(share * len(part))), len(part) - 1)
        cycle, position = divmod(repeat, len(part) // count)
        shuffled = np.random.default_rng([s.seed, 51, cycle, attempt]).permutation(part)
        chosen.append(shuffled[position * count : (position + 1) * count])
    return np.concatenate(chosen)


def _teaching(
    s: MultiviewSettings, observed: MultiviewData, rows: np.ndarray
) -> Int[np.ndarray, " m"]:
    """Rows that the bound can learn from, with or without censored times."""
    return rows if learns_censored(s, observed.task) else rows[observed.event[rows]]


def learns_censored(s: MultiviewSettings, task: str) -> bool:
    """True unless the model ignores censored times."""
    return task != "survival" or (s.bound == "stochastic" and s.model in LAYERED)


def _stratified(
    rng: np.random.Generator, observed: MultiviewData, rows: np.ndarray
) -> Int[np.ndarray, " m"]:
    """Order rows so that each prefix has the shares of both classes."""
    shuffled = rng.permutation(rows)
    if observed.task != "classification":
        return shuffled
    rank = np.empty(len(shuffled))
    for c in (0.0, 1.0):
        class_rows = np.flatnonzero(observed.target[shuffled] == c)
        rank[class_rows] = (np.arange(len(class_rows)) + 0.5) / max(len(class_rows), 1)
    return shuffled[np.argsort(rank, kind="stable")]


def _both(observed: MultiviewData, rows: np.ndarray) -> bool:
    return observed.task != "classification" or len(np.unique(observed.target[rows])) == 2


def views_of(s: MultiviewSettings, observed: MultiviewData) -> list[str]:
    """Names of the views in the settings, in the table's order.

    Raises:
        BadInput: A view does not exist.
    """
    names = names_in(s.views)
    return observed.only(names).names if names else list(observed.names)


def shown(test: Int[np.ndarray, " t"]) -> Int[np.ndarray, " n"]:
    """Held-out rows of a snapshot, evenly spaced."""
    return evenly_spaced(test, SHOWN)


def model_inputs(s: MultiviewSettings, observed: MultiviewData) -> Float[np.ndarray, " n"]:
    """Targets on the scale of the model."""
    if observed.task == "survival":
        return np.log(observed.target)
    return np.log1p(observed.target) if logs(s, observed.task) else observed.target


def logs(s: MultiviewSettings, task: str) -> bool:
    """True if the model learns logarithms of values."""
    return task == "regression" and s.log_target == "yes"


def check(s: MultiviewSettings, table: pd.DataFrame, name: str) -> None:
    """Check that the study can be fitted to a table (`Entry.check`)."""
    table = with_groups(table, s.split_by)
    whole = of(table, s.task, s.positive_class, name=name)
    positions = known(whole)
    observed = whole.take(positions)
    split(settled(s, observed), observed, marked=marks(table)[positions])
