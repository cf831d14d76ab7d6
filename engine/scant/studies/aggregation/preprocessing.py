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

LEAST_TEST = 2  # rows that can be scored


@dataclass(frozen=True)
class Scale:
    """y of a task is offset + factor times what the model sees; (0, 1) where nothing is scaled."""

    offset: float
    factor: float


def scarce_task(settings: AggregationSettings, observed: Supports) -> str:
    """The scarce task: the one that was set, else one with rows held out, else the finest.

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
    held = [observed.tasks[t] for t in np.unique(observed.task[observed.test])]
    widths = observed.width.sum(1)
    return min(
        held or observed.tasks, key=lambda task: float(np.median(widths[observed.is_task(task)]))
    )


def divided(
    settings: AggregationSettings, table: pd.DataFrame, observed: Supports, scarce: str
) -> pd.DataFrame:
    """The table with rows of the scarce task marked `test`, if no row of it is marked."""
    own = np.flatnonzero(observed.is_task(scarce) & np.isfinite(observed.y))
    held = min(max(LEAST_TEST, round(settings.test_share * len(own))), len(own) // 2)
    if observed.test.any() or not settings.test_share or held < LEAST_TEST:
        return table
    group = groups(table, settings.split_by)
    own_group = None if group is None else group[own]
    split = marks(table)
    split[own[divide(len(own), settings.seed, test=held, group=own_group).test]] = TEST
    return table.assign(split=split)


def left_out(settings: AggregationSettings, observed: Supports, scarce: str) -> list[str]:
    """Tasks that the setting `leave_out` excludes from training.

    Raises:
        BadInput: An unknown task, or the scarce one.
    """
    named = names_in(settings.leave_out)
    for task in named:
        if task not in observed.tasks:
            raise BadInput(
                f"There is no task {task!r} for the setting 'leave_out'; "
                f"the tasks are {listed(observed.tasks)}."
            )
    if scarce in named:
        raise BadInput(
            f"Task {scarce!r} is the scarce task and cannot be left out; name another in the "
            "setting 'leave_out'."
        )
    return named


def training_rows(
    settings: AggregationSettings, observed: Supports, scarce: str
) -> Bool[np.ndarray, " n"]:
    """Training rows: y is known, not held out, of no task that is left out."""
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
    apart = settings.standardize == "each task"
    if settings.standardize == "auto":
        apart = differ([observed.y[rows & (observed.task == t)] for t in np.flatnonzero(gaussian)])
    results = []
    for t in range(len(kinds)):
        mine = rows & (observed.task == t)
        if not apart or not mine.any():
            mine = rows & gaussian[observed.task]
        if not gaussian[t] or not mine.any():
            results.append(Scale(0.0, 1.0))
            continue
        spread = float(observed.y[mine].std())
        results.append(Scale(float(observed.y[mine].mean()), spread if spread > 0 else 1.0))
    return results


def differ(values: list[Float[np.ndarray, " _"]]) -> bool:
    """Whether scales of tasks differ: deviations, or distances of means, beyond threefold.

    An average of a function varies less than the function, so a smaller difference is no sign.
    """
    many = [y for y in values if len(y) > 2]
    if len(many) < 2:
        return False
    spread, means = np.array([y.std() for y in many]), np.array([y.mean() for y in many])
    least = max(float(spread.min()), 1e-300)
    return bool(spread.max() > 3 * least or np.ptp(means) > 3 * spread.max())


def tensors_of(lo: np.ndarray, hi: np.ndarray, device: torch.device) -> Float[Tensor, "n c"]:
    """Supports as the kernels take them."""
    return boxes(torch.as_tensor(lo), torch.as_tensor(hi)).to(device)


def supports_of(observed: Supports, rows: np.ndarray, device: torch.device) -> Float[Tensor, "m c"]:
    """Rows (by mask or numbers) of a table as the model takes them, covariates in the last columns.

    In dimensions beyond the map's, each point inside a polygon has the bounds of its row.
    """
    if observed.covariates is not None:
        z = torch.as_tensor(observed.covariates[rows]).to(device)
        bare = replace(observed, covariates=None)
        return torch.cat([supports_of(bare, rows, device), z], dim=1)
    lo, hi = observed.lo[rows], observed.hi[rows]
    if observed.inside is None:
        return tensors_of(lo, hi, device)
    inside = observed.inside[rows]
    flat = inside.shape[2] - 1  # dimensions of the map
    ends = [
        np.broadcast_to(e[:, None, flat:], (*inside.shape[:2], e.shape[1] - flat)) for e in (lo, hi)
    ]
    pieces = [inside[..., :flat], ends[0], inside[..., :flat], ends[1], inside[..., flat:]]
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
    """Rows (by mask or numbers) of a table as the model takes them.

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
