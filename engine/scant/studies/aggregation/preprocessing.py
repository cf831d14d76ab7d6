"""Preprocessing of aggregation tables: scarce task, training rows, scales, model inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.errors import BadInput
from scant.kernels.box_average.support import boxes
from scant.models.mtgpa.prior import Data
from scant.studies.aggregation.beside import covariates, known_covariates, known_of, with_errors
from scant.studies.aggregation.capacity import inside_each
from scant.studies.aggregation.classes import Classes, in_model
from scant.studies.aggregation.likelihoods import counts_of
from scant.studies.aggregation.population import People
from scant.studies.aggregation.settings import COUNTED, EXACT, AggregationSettings
from scant.studies.aggregation.supports import Supports
from scant.studies.aggregation.table import of
from scant.studies.predicted_table import words
from scant.studies.query import names_in
from scant.studies.split import EVERYTHING, TEST, divide, groups, marks
from scant.tables.column_matching import listed

LEAST_TEST = 2  # minimum number of rows that can be scored


@dataclass(frozen=True)
class Scale:
    """Scale of a task: y = offset + factor * model value; (0, 1) if unscaled."""

    offset: float
    factor: float


def scarce_task(settings: AggregationSettings, observed: Supports) -> str:
    """Scarce task: the one that was set, else one with held-out rows, else the finest.

    Raises:
        BadInput: The table has no task of the name that was set.
    """
    if settings.scarce:
        if settings.scarce not in observed.tasks:
            raise BadInput(
                f"There is no task {settings.scarce!r} for the setting 'scarce'; "
                f"the tasks are {listed(observed.tasks)}."
            )
        return settings.scarce
    tested = [observed.tasks[t] for t in np.unique(observed.task[observed.test])]
    widths = observed.width.sum(1)
    return min(
        tested or observed.tasks, key=lambda task: float(np.median(widths[observed.is_task(task)]))
    )


def divided(
    settings: AggregationSettings, table: pd.DataFrame, observed: Supports, scarce: str
) -> pd.DataFrame:
    """Mark rows of the scarce task as `test`, if no row of the table is marked."""
    task_rows = np.flatnonzero(observed.is_task(scarce) & np.isfinite(observed.y))
    n_test = min(max(LEAST_TEST, round(settings.test_share * len(task_rows))), len(task_rows) // 2)
    if observed.test.any() or not settings.test_share or n_test < LEAST_TEST:
        return table
    group = groups(table, settings.split_by)
    task_group = None if group is None else group[task_rows]
    split = marks(table)
    split[task_rows[divide(len(task_rows), settings.seed, test=n_test, group=task_group).test]] = (
        TEST
    )
    return table.assign(split=split)


def left_out(settings: AggregationSettings, observed: Supports, scarce: str) -> list[str]:
    """Tasks that the setting `leave_out` excludes from training.

    Raises:
        BadInput: A task is unknown, or is the scarce one.
    """
    tasks = names_in(settings.leave_out)
    for task in tasks:
        if task not in observed.tasks:
            raise BadInput(
                f"There is no task {task!r} for the setting 'leave_out'; "
                f"the tasks are {listed(observed.tasks)}."
            )
    if scarce in tasks:
        raise BadInput(
            f"Task {scarce!r} is the scarce task and cannot be left out; name another in the "
            "setting 'leave_out'."
        )
    return tasks


def training_rows(
    settings: AggregationSettings, observed: Supports, scarce: str
) -> Bool[np.ndarray, " n"]:
    """Mask of the training rows: y known and not held out, task not left out."""
    rows = np.isfinite(observed.y)
    if settings.refit != EVERYTHING:
        rows &= ~observed.test
    for task in left_out(settings, observed, scarce):
        rows &= ~observed.is_task(task)
    return rows


def scales(
    settings: AggregationSettings,
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    kinds: list[str],
) -> list[Scale]:
    """Mean and deviation of the training rows, of all Gaussian tasks together or of each."""
    gaussian = np.array([kind in (*EXACT, "heteroscedastic") for kind in kinds])
    separate = settings.standardize == "each task"
    if settings.standardize == "auto":
        separate = differ(
            [observed.y[rows & (observed.task == t)] for t in np.flatnonzero(gaussian)]
        )
    results = []
    for t in range(len(kinds)):
        selected = rows & (observed.task == t)
        if not separate or not selected.any():
            selected = rows & gaussian[observed.task]
        if not gaussian[t] or not selected.any():
            results.append(Scale(0.0, 1.0))
            continue
        spread = float(observed.y[selected].std())
        results.append(Scale(float(observed.y[selected].mean()), spread if spread > 0 else 1.0))
    return results


def differ(values: list[Float[np.ndarray, " _"]]) -> bool:
    """Return True if deviations or distances of means of tasks differ beyond threefold.

    An average of a function varies less than the function, so smaller differences do not count.
    """
    samples = [y for y in values if len(y) > 2]
    if len(samples) < 2:
        return False
    spread, means = np.array([y.std() for y in samples]), np.array([y.mean() for y in samples])
    smallest = max(float(spread.min()), 1e-300)
    return bool(spread.max() > 3 * smallest or np.ptp(means) > 3 * spread.max())


def tensors_of(lo: np.ndarray, hi: np.ndarray, device: torch.device) -> Float[Tensor, "n c"]:
    """Supports in the kernels' form."""
    return boxes(torch.as_tensor(lo), torch.as_tensor(hi)).to(device)


def supports_of(observed: Supports, rows: np.ndarray, device: torch.device) -> Float[Tensor, "m c"]:
    """Rows (mask or indices) of a table in the model's form, covariates in the last columns.

    In dimensions beyond the map's, each point inside a polygon has the bounds of its row.
    """
    if observed.covariates is not None:
        z = torch.as_tensor(observed.covariates[rows]).to(device)
        without_covariates = replace(observed, covariates=None)
        return torch.cat([supports_of(without_covariates, rows, device), z], dim=1)
    lo, hi = observed.lo[rows], observed.hi[rows]
    if observed.inside is None:
        return tensors_of(lo, hi, device)
    inside = observed.inside[rows]
    flat = inside.shape[2] - 1  # dimensions of the map
    further_bounds = [
        np.broadcast_to(e[:, None, flat:], (*inside.shape[:2], e.shape[1] - flat)) for e in (lo, hi)
    ]
    pieces = [
        inside[..., :flat],
        further_bounds[0],
        inside[..., :flat],
        further_bounds[1],
        inside[..., flat:],
    ]
    return torch.as_tensor(np.concatenate(pieces, axis=2)).flatten(1).to(device)


def of_rows(
    scale: list[Scale], task: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Offset and factor of each row's task."""
    pairs = np.array([(s.offset, s.factor) for s in scale])[task]
    return pairs[:, 0], pairs[:, 1]


def data_of(
    settings: AggregationSettings,
    observed: Supports,
    rows: np.ndarray,
    tasks: list[str],
    kinds: list[str],
    scale: list[Scale],
    device: torch.device,
    classes: Classes = MappingProxyType({}),
) -> Data:
    """Rows (mask or indices) of a table in the model's form.

    Args:
        settings: Settings of the run.
        observed: The table.
        rows: Rows of these tasks.
        tasks: Tasks of the model in the order of their numbers.
        kinds: Likelihood of each task.
        scale: Scale of each task.
        device: Device of the tensors.
        classes: Values of the classes of categorical tasks.
    """
    number = observed.numbered(tasks)[rows]
    offset, factor = of_rows(scale, number)
    y, exposure = in_model(observed, rows, classes), observed.exposure[rows]
    if settings.rate_per:
        counted = np.isin(np.array(kinds, dtype=object)[number], COUNTED)
        y = np.where(counted, counts_of(y, exposure, settings.rate_per), y)
    return Data(
        supports_of(observed, rows, device),
        torch.as_tensor((y - offset) / factor).to(device),
        torch.as_tensor(number).to(device),
        torch.as_tensor(exposure).to(device),
        known_of(settings, observed, rows, factor, device),
    )


def read(
    settings: AggregationSettings,
    table: pd.DataFrame,
    metadata: dict[str, Any] | None = None,
    people: People | None = None,
) -> Supports:
    """Convert a table to arrays; with the tasks and dimensions in `metadata` of a fitted study.

    Raises:
        BadInput: See `table.of`.
    """
    points = inside_each(settings, len(table))
    if metadata is None:
        columns = covariates(settings, table)
        supports = of(table, points=points, covariates=columns, people=people)
        return with_errors(supports) if settings.known_noise else supports
    return of(
        table,
        dims=metadata["dims"],
        tasks=metadata["tasks"],
        system=metadata.get("system", ""),
        points=points,
        covariates=known_covariates(metadata),
        people=people,
        **words(table),
    )
