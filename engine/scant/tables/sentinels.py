"""Numbers that stand for "not measured" in a column of measurements: -9999, 99, 1e20 and the like.

Such a number is only suspected, never removed: the reader says which it is, and in how many cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_NINES = (9.0, 99.0, 999.0, 9999.0, 99999.0)
# Fill values of surveys, of 16-bit integers, and of the netCDF and GRIB formats.
CODES = (*(-n for n in _NINES), *_NINES, -1.0, -32768.0, 32767.0, 1e20, -1e20, 1e30, -1e30)
_KNOWN = frozenset(CODES)
_SHARE, _CELLS = 0.01, 3  # either makes a repeated number suspicious
_SPANS = 5.0  # interquartile ranges between the other values' quartiles and the number
_LEVELS = 3  # with fewer other values a number is rather one more level


class Sentinel(NamedTuple):
    """A suspected number: how many cells hold it, and the first of them, counted from 0."""

    code: float
    cells: int
    first: int


def sentinels(values: Float[np.ndarray, " n"]) -> list[Sentinel]:
    """The numbers of a column that seem to mean "not measured".

    A code counts where it repeats and lies outside of all other values, far from them: by five
    interquartile ranges, or, a negative number beside positive ones, by half of one.

    Args:
        values: The column; NaN where a cell is empty.
    """
    observed = values[~np.isnan(values)]
    if not len(observed) or not {float(observed.min()), float(observed.max())} & _KNOWN:
        return []  # what lies outside of all other values is the least or the greatest
    hit = np.isin(observed, CODES)
    present = np.unique(observed[hit]).tolist()
    rest = observed[~hit]
    if len(np.unique(rest[:100_000])) < _LEVELS:
        return []
    low, high = np.quantile(rest, [0.25, 0.75])
    least, most = rest.min(), rest.max()
    span = (high - low) or (most - least)
    results = []
    for code in present:
        count = int((observed == code).sum())
        if count < _CELLS and count < _SHARE * len(observed):
            continue
        gap = least - code if code < least else code - most
        away = low - code if code < least else code - high
        impossible = code < 0 < least and gap >= span / 2
        if impossible or (gap >= span and away > _SPANS * span):
            results.append(Sentinel(code, count, int(np.flatnonzero(values == code)[0])))
    return results
