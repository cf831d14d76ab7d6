"""Differences of bands (colors) as coordinates, and further contrasts for trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy import ndarray

from scant.tables.levels import measured

MAX_SUMMED, MAX_PAIRED = 8, 12  # bands, with 64 and 66 contrasts; six have 31
ALIKE_ROWS = 5000
FEWEST_ALIKE = 3  # columns
SPREADS, TOGETHER = 5.0, 0.6  # ratio of spreads at most, and rank correlation at least


def one_quantity(table: pd.DataFrame, bands: Sequence[str]) -> list[str]:
    """Columns that may be one quantity: those with errors, else all that were measured.

    This excludes a morphology or a size next to the magnitudes.
    """
    with_errors = [b for b in bands if f"{b}_err" in table]
    return with_errors if len(with_errors) >= FEWEST_ALIKE else measured(bands)


def alike(bands: pd.DataFrame) -> bool:
    """Return True if the columns are one quantity, as the magnitudes of a galaxy are.

    These are three or more of similar spread, each correlated with its neighbor. Only then do
    differences of neighbors mean anything.
    """
    if bands.shape[1] < FEWEST_ALIKE:
        return False
    rows = bands.iloc[:ALIKE_ROWS]
    spread = rows.quantile(0.75) - rows.quantile(0.25)
    correlations = [rows[a].corr(rows[b], "spearman") for a, b in pairwise(rows.columns)]
    return bool(spread.max() < SPREADS * spread.min() and np.nanmedian(correlations) > TOGETHER)


def color_matrix(b: int) -> Float[ndarray, "b b"]:
    """Matrix to the middle band as reference and the differences of neighboring bands."""
    matrix = np.zeros((b, b))
    matrix[0, b // 2] = 1.0
    for i in range(b - 1):
        matrix[i + 1, i], matrix[i + 1, i + 1] = 1.0, -1.0
    return matrix


def colors(neighbors: Float[ndarray, "n b"]) -> Float[ndarray, "k b"]:
    """Differences of all pairs of bands; none of more than `MAX_PAIRED` bands.

    Args:
        neighbors: Colors of neighboring bands in terms of the bands.
    """
    n = len(neighbors)
    if n >= MAX_PAIRED:
        return neighbors[:0]
    rows = [neighbors[i:j].sum(0) for i in range(n) for j in range(i + 1, n + 1)]
    return np.reshape(rows, (-1, neighbors.shape[1]))


def contrasts(neighbors: Float[ndarray, "n b"]) -> Float[ndarray, "k b"]:
    """Colors, and sums and differences of two neighboring ones.

    A tree splits along its inputs, and RAIL's, SDSS' and DC2's galaxies have steps along these: the
    log-likelihood of trees alone rose from 1.19 to 1.54, 2.14 to 2.19 and 1.48 to 1.64. Their
    number grows as the square of the number of bands, and the time of trees with it, so more than
    `MAX_SUMMED` bands have colors alone.

    Args:
        neighbors: Colors of neighboring bands in terms of the bands.
    """
    n = len(neighbors)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)] if n < MAX_SUMMED else []
    sums = [neighbors[i] + neighbors[j] for i, j in pairs if j > i + 1]  # others are colors
    differences = [neighbors[i] - neighbors[j] for i, j in pairs]
    rows = [*colors(neighbors), *sums, *differences]
    return np.reshape(rows, (-1, neighbors.shape[1]))
