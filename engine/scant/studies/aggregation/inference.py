"""Which inference a fit uses, and with how many latent functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from scant.errors import BadInput
from scant.models.mtgpa.areas import fits
from scant.models.mtgpa.prior import Data
from scant.studies.aggregation.settings import (
    COUNTED,
    EXACT,
    MOST_EXACT,
    MOST_KNOWN,
    MOST_LATENT,
    MOST_LEARNED,
    MOST_NODE_ROWS,
    MOST_PIECES,
    SUMMED,
    AggregationSettings,
)
from scant.studies.auto import AUTO

EXACT_GP, LAPLACE, VARIATIONAL = "exact", "laplace", "variational"  # values of `inference`


def summed_on_map(settings: AggregationSettings, metadata: Mapping[str, Any]) -> bool:
    """Whether there are counts on a map, with rates that are sums over their polygons."""
    counted = any(kind in COUNTED for kind in metadata["likelihoods"])
    return bool(metadata.get("system")) and counted and settings.counts == SUMMED


def ranks(settings: AggregationSettings, functions: int) -> tuple[int, ...]:
    """The rank of each latent function's coregionalization matrix.

    By default one function for every two tasks, which may measure one quantity; more quantities
    need more functions (four tasks of births: SMSE 0.28 with one function, 0.008 with two).

    Args:
        settings: Settings of the run.
        functions: Number of latent functions by default (`classes.latent_functions`).
    """
    chosen = 0 if settings.n_latent == AUTO else settings.n_latent
    return (settings.rank,) * (chosen or min(functions, MOST_LATENT))


def exact(
    settings: AggregationSettings, kinds: list[str], rows: int, points: bool, pieces: int = 1
) -> bool:
    """Whether inference is exact; see the setting `inference`.

    Args:
        settings: Settings of the run.
        kinds: Likelihood of each task.
        rows: Number of training rows.
        points: Whether all rows are points.
        pieces: Points of each row; of polygons the covariances of all pairs are computed.

    Raises:
        BadInput: The setting is exact, and a likelihood, kernel or batch size excludes it.
    """
    met = [f"a {kind} likelihood" for kind in kinds if kind not in EXACT]
    if settings.batch_size:
        met.append(f"batch_size {settings.batch_size}")
    if settings.kernel not in (AUTO, "eq") and not points:  # slow quadrature over boxes
        met.append(f"kernel {settings.kernel}")
    if settings.inference == "exact" and met:
        raise BadInput(
            "Setting 'inference' is exact, which takes Gaussian likelihoods, kernel eq (or "
            f"points alone) and all rows at once, but this run has {met[0]}. Choose auto or "
            "variational."
        )
    quick = rows <= (MOST_KNOWN if settings.kernel == AUTO else MOST_EXACT) and not met
    quick &= pieces == 1 or rows * pieces <= MOST_PIECES
    return settings.inference == "exact" or (settings.inference == "auto" and quick)


def by_laplace(
    settings: AggregationSettings, kinds: list[str], rows: int, latents: int, summed: bool
) -> bool:
    """Whether inference is Laplace's approximation; see the setting `inference`.

    Args:
        settings: Settings of the run.
        kinds: Likelihood of each task.
        rows: Number of training rows.
        latents: Number of latent values: points inside all supports.
        summed: Whether rates are sums over polygons of a map.

    Raises:
        BadInput: The setting is laplace, and a task or the batch size excludes it.
    """
    met = [f"a {kind} likelihood" for kind in kinds if kind not in COUNTED]
    if not summed:
        met.append("no map of counts whose rates are sums")
    if settings.batch_size:
        met.append(f"batch_size {settings.batch_size}")
    if not settings.constant_mean:
        met.append("constant_mean off")
    if settings.inference == "laplace" and met:
        raise BadInput(
            "Setting 'inference' is laplace, which takes counts on a map, sums of rates, constant "
            f"means, and all rows at once, but this run has {met[0]}. Choose auto or variational."
        )
    quick = not met and fits(rows, latents)
    return settings.inference == "laplace" or (settings.inference == "auto" and quick)


def chosen(
    settings: AggregationSettings,
    kinds: list[str],
    rows: int,
    points: bool,
    pieces: int,
    latents: int,
    summed: bool,
) -> str:
    """The inference of a run (arguments as of `exact` and `by_laplace`)."""
    if exact(settings, kinds, rows, points, pieces):
        return EXACT_GP
    return LAPLACE if by_laplace(settings, kinds, rows, latents, summed) else VARIATIONAL


def over_nodes(settings: AggregationSettings, rows: int) -> bool:
    """Whether an exact model of so many rows averages over its hyperparameters."""
    few = settings.hyperparameters == AUTO and rows <= MOST_NODE_ROWS
    return few or settings.hyperparameters == "nodes"


def learned(s: AggregationSettings, data: Data) -> Data:
    """The rows from which an exact model learns its hyperparameters: all, or some of each task.

    A kernel that was set learns from all rows.
    """
    n = len(data.y)
    if s.kernel != AUTO or n <= MOST_EXACT:
        return data
    order = torch.as_tensor(np.random.default_rng(s.seed).permutation(n)).to(data.task.device)
    parts = [order[data.task[order] == t] for t in data.task.unique()]
    return data.at(torch.cat([p[: -(-len(p) * MOST_LEARNED // n)] for p in parts]).sort().values)
