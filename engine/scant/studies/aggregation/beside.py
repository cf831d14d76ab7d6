"""What a table has beside supports and values: exposures, known errors, covariates, people."""

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
from scant.studies.aggregation.table import TABLE, Covariate, Supports
from scant.tables.column_matching import listed
from scant.tables.geometry import COLUMN
from scant.tables.geometry import words as words_of
from scant.tables.schema import COVARIATE

MOST_COUNTED = 100.0  # mean of counts; noise of larger ones is mostly not that of counting


def fitting(y: Float[np.ndarray, " n"], exposure: Float[np.ndarray, " n"]) -> str:
    """The likelihood that values call for; exposures that differ say that counts are behind them.

    Whether counts vary more than Poisson's does not show before there is a field that they may vary
    by, so that the size of the counts decides: of large ones chance is the least reason to vary.
    """
    populated = len(exposure) > 0 and float(np.ptp(exposure)) > 0
    whole = len(y) > 0 and bool((y == np.round(y)).all() and (y >= 0).all())
    if whole and y.max() <= 1 and not populated:
        return "bernoulli"
    if whole and y.mean() <= MOST_COUNTED:
        return "poisson"
    if populated:
        return "negative_binomial" if whole else "gaussian_rate"
    return "gaussian"


def counts_of(
    rate: Float[np.ndarray, " n"], exposure: Float[np.ndarray, " n"], per: float
) -> Float[np.ndarray, " n"]:
    """The counts behind rates per so many units of the exposure."""
    return np.round(rate * exposure / per)


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
    words = [word.strip() for word in settings.covariates.split(",") if word.strip()]
    found = []
    for word in words:
        name = next((n for n in (word, COVARIATE + word) if n in columns), None)
        if name is None:
            raise BadInput(
                f"There is no column {word!r} for the setting 'covariates'; the columns are "
                f"{listed(columns)}."
            )
        if name in (c.name for c in TABLE.columns):
            raise BadInput(
                f"Column {word!r} cannot be a covariate, for it is {name!r} to this study; name "
                "another in the setting 'covariates'."
            )
        found.append(name)
    return list(dict.fromkeys(found)) or [c for c in columns if c.startswith(COVARIATE)]


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
            f"Setting 'population_task' is {task!r}, and the tasks are {names}; name the one with "
            "the population, beside which there are others."
        )
    if COLUMN not in table:
        raise BadInput(
            "Setting 'population_task' weighs the points inside polygons, and the table has no "
            f"column {COLUMN!r}; leave the setting empty."
        )
    own = table[theirs]
    number = own["y"].to_numpy(dtype=np.float64, na_value=np.nan)
    cells = words_of(own[COLUMN]).tolist()
    return ~theirs, people(cells, number, "the table", np.flatnonzero(theirs) + 2)
