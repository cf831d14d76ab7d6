"""Thinning of long curves without losing spikes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

LIMIT = 2000  # points of a thinned curve; thinning starts at twice as many


def keep(values: Float[np.ndarray, "n"], limit: int) -> Int[np.ndarray, "k"]:
    """Return the points to draw: minimum and maximum of each of limit / 2 buckets, and both ends.

    Args:
        values: The curve, evenly spaced; NaN and infinite values are always kept.
        limit: Approximate number of points to keep, at least 4.

    Returns:
        Indices in ascending order; all of them if n is at most `limit`.
    """
    n = len(values)
    if n <= limit:
        return np.arange(n)
    finite = np.isfinite(values)
    edges = np.linspace(0, n, max(limit // 2, 2) + 1).astype(int)
    bucket = np.repeat(np.arange(len(edges) - 1), np.diff(edges))[finite]
    indices = np.flatnonzero(finite)
    order = np.lexsort((values[finite], bucket))
    ordered = bucket[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    last = np.append(first[1:], len(ordered)) - 1 if len(first) else first
    extremes = indices[order[np.concatenate([first, last])]]
    return np.unique(np.concatenate([extremes, np.flatnonzero(~finite), [0, n - 1]]))


def rows(
    step: np.ndarray, elbo: np.ndarray, score: np.ndarray, restart: np.ndarray, first: int
) -> dict[str, np.ndarray]:
    """Return the points from `first` on, thinned, with NaN before each restart."""
    chosen = np.union1d(keep(elbo[first:], LIMIT // 2), keep(score[first:], LIMIT // 2)) + first
    breaks = np.flatnonzero(np.diff(restart[chosen], prepend=restart[max(first - 1, 0)]))
    return {
        "step": np.insert(step[chosen].astype(np.float32), breaks, np.nan),
        "elbo": np.insert(_finite(elbo[chosen]), breaks, np.nan),
        "score": np.insert(_finite(score[chosen]), breaks, np.nan),
    }


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan).astype(np.float32)
