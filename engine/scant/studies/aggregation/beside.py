"""Columns beside supports and values: known errors, covariates, population."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.errors import BadInput
from scant.studies.aggregation.population import People, people
from scant.studies.aggregation.settings import AggregationSettings
from scant.studies.aggregation.supports import Covariate, Supports
from scant.studies.aggregation.table import TABLE
from scant.studies.query import names_in
from scant.tables.column_matching import listed
from scant.tables.geometry import COLUMN
from scant.tables.geometry import words as words_of
from scant.tables.schema import COVARIATE


def known_of(
    settings: AggregationSettings,
    observed: Supports,
    rows: np.ndarray,
    factor: Float[np.ndarray, " m"] | float,
    device: torch.device,
) -> Float[Tensor, " m"] | None:
    """Variances of known noise in the unit of the model; None where none is known or used."""
    errors = observed.y_err[rows]
    if not settings.known_noise or np.isnan(errors).all():
        return None
    return torch.as_tensor((np.nan_to_num(errors) / factor) ** 2).to(device)


def with_errors(observed: Supports) -> Supports:
    """Rows whose error is not known get the median of those of their task."""
    errors = observed.y_err.copy()
    for t in np.unique(observed.task[~np.isnan(errors)]):
        mine = observed.task == t
        errors[mine & np.isnan(errors)] = np.nanmedian(errors[mine])
    return replace(observed, y_err=errors)


def covariates(settings: AggregationSettings, table: pd.DataFrame) -> list[str]:
    """The columns that enter linearly.

    Raises:
        BadInput: The table has no column of a name that the setting gives, or it is of another use.
    """
    columns = [str(c) for c in table]
    chosen = []
    for name in names_in(settings.covariates):
        column = next((n for n in (name, COVARIATE + name) if n in columns), None)
        if column is None:
            raise BadInput(
                f"There is no column {name!r} for the setting 'covariates'; the columns are "
                f"{listed(columns)}."
            )
        if column in (c.name for c in TABLE.columns):
            raise BadInput(
                f"Column {name!r} cannot be a covariate, because this study uses it as {column!r}; "
                "name another in the setting 'covariates'."
            )
        chosen.append(column)
    return list(dict.fromkeys(chosen)) or [c for c in columns if c.startswith(COVARIATE)]


def known_covariates(metadata: dict[str, Any]) -> tuple[Covariate, ...]:
    """The covariates of a fitted study."""
    return tuple(Covariate(*own) for own in metadata.get("covariates", ()))


def parted(
    settings: AggregationSettings, table: pd.DataFrame
) -> tuple[Bool[np.ndarray, " n"], People | None]:
    """Which rows of a table are observations, and the people that the other rows tell of.

    Raises:
        BadInput: There is no such task, or nothing beside it, or it tells of nobody.
    """
    task = settings.population_task
    if not task or "task" not in table:
        return np.ones(len(table), dtype=bool), None
    theirs = (table["task"].astype(str) == task).to_numpy()
    if not theirs.any() or theirs.all():
        names = listed(sorted(table["task"].astype(str).unique()))
        raise BadInput(
            f"Setting 'population_task' is {task!r}, but the tasks are {names}; name the one with "
            "the population, in a table that has other tasks as well."
        )
    if COLUMN not in table:
        raise BadInput(
            "Setting 'population_task' weights the points inside polygons, but the table has no "
            f"column {COLUMN!r}; leave the setting empty."
        )
    own = table[theirs]
    number = own["y"].to_numpy(dtype=np.float64, na_value=np.nan)
    cells = words_of(own[COLUMN]).tolist()
    return ~theirs, people(cells, number, "the table", np.flatnonzero(theirs) + 2)
