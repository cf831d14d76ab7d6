"""Optional columns of a table: known errors, covariates, population."""

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
    """Known noise variances in the model's unit; None if unknown or unused."""
    errors = observed.y_err[rows]
    if not settings.known_noise or np.isnan(errors).all():
        return None
    return torch.as_tensor((np.nan_to_num(errors) / factor) ** 2).to(device)


def with_errors(observed: Supports) -> Supports:
    """Fill in unknown errors with the median error of their task."""
    errors = observed.y_err.copy()
    for t in np.unique(observed.task[~np.isnan(errors)]):
        in_task = observed.task == t
        errors[in_task & np.isnan(errors)] = np.nanmedian(errors[in_task])
    return replace(observed, y_err=errors)


def covariates(settings: AggregationSettings, table: pd.DataFrame) -> list[str]:
    """Columns that enter linearly.

    Raises:
        BadInput: A column in the setting is absent from the table, or has another use.
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
    """Covariates of a fitted study."""
    return tuple(Covariate(*values) for values in metadata.get("covariates", ()))


def parted(
    settings: AggregationSettings, table: pd.DataFrame
) -> tuple[Bool[np.ndarray, " n"], People | None]:
    """Mask of the rows that are observations, and the population given by the others.

    Raises:
        BadInput: The population task is absent, is the only one, or has no people.
    """
    task = settings.population_task
    if not task or "task" not in table:
        return np.ones(len(table), dtype=bool), None
    is_population = (table["task"].astype(str) == task).to_numpy()
    if not is_population.any() or is_population.all():
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
    population_rows = table[is_population]
    number = population_rows["y"].to_numpy(dtype=np.float64, na_value=np.nan)
    cells = words_of(population_rows[COLUMN]).tolist()
    return ~is_population, people(cells, number, "the table", np.flatnonzero(is_population) + 2)
