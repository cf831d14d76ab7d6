"""Choice of the inference of a fit, and of its number of latent functions."""

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
    """Return True for counts on a map whose rates are sums over polygons."""
    counted = any(kind in COUNTED for kind in metadata["likelihoods"])
    return bool(metadata.get("system")) and counted and settings.counts == SUMMED


def ranks(settings: AggregationSettings, functions: int) -> tuple[int, ...]:
    """Rank of each latent function's coregionalization matrix.

    By default there is one function for two tasks, which may measure one quantity; more quantities
    need more functions (four tasks of births: SMSE 0.28 with one function, 0.008 with two).

    Args:
        settings: Settings of the run.
        functions: Default number of latent functions (`classes.latent_functions`).
    """
    n_latent = 0 if settings.n_latent == AUTO else settings.n_latent
    return (settings.rank,) * (n_latent or min(functions, MOST_LATENT))


def exact(
    settings: AggregationSettings, kinds: list[str], rows: int, points: bool, pieces: int = 1
) -> bool:
    """Return True if inference is exact (setting `inference`).

    Args:
        settings: Settings of the run.
        kinds: Likelihood of each task.
        rows: Number of training rows.
        points: Whether all rows are points.
        pieces: Points per row; covariances of all pairs are computed for polygons.

    Raises:
        BadInput: The setting is exact, and a likelihood, kernel or batch size excludes it.
    """
    obstacles = [f"a {kind} likelihood" for kind in kinds if kind not in EXACT]
    if settings.batch_size:
        obstacles.append(f"batch_size {settings.batch_size}")
    if settings.kernel not in (AUTO, "eq") and not points:  # slow quadrature over boxes
        obstacles.append(f"kernel {settings.kernel}")
    if settings.inference == "exact" and obstacles:
        raise BadInput(
            "Setting 'inference' is exact, which takes Gaussian likelihoods, kernel eq (or "
            f"points alone) and all rows at once, but this run has {obstacles[0]}. Choose auto or "
            "variational."
        )
    quick = rows <= (MOST_KNOWN if settings.kernel == AUTO else MOST_EXACT) and not obstacles
    quick &= pieces == 1 or rows * pieces <= MOST_PIECES
    return settings.inference == "exact" or (settings.inference == "auto" and quick)


def by_laplace(
    settings: AggregationSettings, kinds: list[str], rows: int, latents: int, summed: bool
) -> bool:
    """Return True if inference is Laplace's approximation (setting `inference`).

    Args:
        settings: Settings of the run.
        kinds: Likelihood of each task.
        rows: Number of training rows.
        latents: Number of latent values: points inside all supports.
        summed: Whether rates are sums over polygons of a map.

    Raises:
        BadInput: The setting is laplace, and a task or the batch size excludes it.
    """
    obstacles = [f"a {kind} likelihood" for kind in kinds if kind not in COUNTED]
    if not summed:
        obstacles.append("no map of counts whose rates are sums")
    if settings.batch_size:
        obstacles.append(f"batch_size {settings.batch_size}")
    if not settings.constant_mean:
        obstacles.append("constant_mean off")
    if settings.inference == "laplace" and obstacles:
        raise BadInput(
            "Setting 'inference' is laplace, which takes counts on a map, sums of rates, constant "
            f"means, and all rows at once, but this run has {obstacles[0]}. Choose auto or "
            "variational."
        )
    quick = not obstacles and fits(rows, latents)
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
    """Inference of a run (arguments of `exact` and `by_laplace`)."""
    if exact(settings, kinds, rows, points, pieces):
        return EXACT_GP
    return LAPLACE if by_laplace(settings, kinds, rows, latents, summed) else VARIATIONAL


def over_nodes(settings: AggregationSettings, rows: int) -> bool:
    """Return True if a model of `rows` rows averages over its hyperparameters."""
    automatic = settings.hyperparameters == AUTO and rows <= MOST_NODE_ROWS
    return automatic or settings.hyperparameters == "nodes"


def learned(s: AggregationSettings, data: Data) -> Data:
    """Rows for the hyperparameters of an exact model: all, or a random sample of each task.

    All rows are used if the kernel is set.
    """
    n = len(data.y)
    if s.kernel != AUTO or n <= MOST_EXACT:
        return data
    order = torch.as_tensor(np.random.default_rng(s.seed).permutation(n)).to(data.task.device)
    parts = [order[data.task[order] == t] for t in data.task.unique()]
    return data.at(torch.cat([p[: -(-len(p) * MOST_LEARNED // n)] for p in parts]).sort().values)
