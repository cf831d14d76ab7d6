"""Thin a long curve for the screen without losing a spike."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

LIMIT = 2000  # points of a curve thinned to its extremes, which is done at twice as many


def keep(values: Float[np.ndarray, "n"], limit: int) -> Int[np.ndarray, "k"]:
    """Which points to draw: the least and the greatest of each of limit / 2 buckets, and both ends.

    Args:
        values: The curve, evenly spaced; every NaN and infinity is kept, for each is news.
        limit: About how many points may remain, at least 4.

    Returns:
        Their places, ascending. All of them where n is at most `limit`.
    """
    n = len(values)
    if n <= limit:
        return np.arange(n)
    finite = np.isfinite(values)
    edges = np.linspace(0, n, max(limit // 2, 2) + 1).astype(int)
    bucket = np.repeat(np.arange(len(edges) - 1), np.diff(edges))[finite]
    places = np.flatnonzero(finite)
    order = np.lexsort((values[finite], bucket))
    ordered = bucket[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    last = np.append(first[1:], len(ordered)) - 1 if len(first) else first
    extremes = places[order[np.concatenate([first, last])]]
    return np.unique(np.concatenate([extremes, np.flatnonzero(~finite), [0, n - 1]]))


def rows(
    step: np.ndarray, elbo: np.ndarray, score: np.ndarray, restart: np.ndarray, first: int
) -> dict[str, np.ndarray]:
    """The points from `first` on, thinned, with a gap before each new restart."""
    chosen = np.union1d(keep(elbo[first:], LIMIT // 2), keep(score[first:], LIMIT // 2)) + first
    gap = np.flatnonzero(np.diff(restart[chosen], prepend=restart[max(first - 1, 0)]))
    return {
        "step": np.insert(step[chosen].astype(np.float32), gap, np.nan),
        "elbo": np.insert(_finite(elbo[chosen]), gap, np.nan),
        "score": np.insert(_finite(score[chosen]), gap, np.nan),
    }


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan).astype(np.float32)
