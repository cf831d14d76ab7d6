"""Detection of numeric codes for missing values, such as -9999, 99 or 1e20.

Suspected codes are reported with their number of cells and are not removed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_NINES = (9.0, 99.0, 999.0, 9999.0, 99999.0)
# Codes of surveys, 16-bit integers, netCDF and GRIB.
CODES = (*(-n for n in _NINES), *_NINES, -1.0, -32768.0, 32767.0, 1e20, -1e20, 1e30, -1e30)
_CODE_SET = frozenset(CODES)
_SHARE, _CELLS = 0.01, 3  # minimum fraction or number of cells with a code
_SPANS = 5.0  # minimum distance from the quartiles of other values, in interquartile ranges
_LEVELS = 3  # minimum number of other distinct values


class Sentinel(NamedTuple):
    """Suspected code with its number of cells and the index of the first one."""

    code: float
    cells: int
    first: int


def sentinels(values: Float[np.ndarray, " n"]) -> list[Sentinel]:
    """Find the numbers in a column that probably mean "not measured".

    A suspected code is repeated and lies outside the range of the other values, by more than five
    interquartile ranges, or half of one if it is negative and the others are positive.

    Args:
        values: Values of the column, NaN for empty cells.
    """
    observed = values[~np.isnan(values)]
    if not len(observed) or not {float(observed.min()), float(observed.max())} & _CODE_SET:
        return []  # a code outside the range of others is an extreme
    is_code = np.isin(observed, CODES)
    present = np.unique(observed[is_code]).tolist()
    others = observed[~is_code]
    if len(np.unique(others[:100_000])) < _LEVELS:
        return []
    low, high = np.quantile(others, [0.25, 0.75])
    minimum, maximum = others.min(), others.max()
    span = (high - low) or (maximum - minimum)
    results = []
    for code in present:
        count = int((observed == code).sum())
        if count < _CELLS and count < _SHARE * len(observed):
            continue
        gap = minimum - code if code < minimum else code - maximum
        away = low - code if code < minimum else code - high
        impossible = code < 0 < minimum and gap >= span / 2
        if impossible or (gap >= span and away > _SPANS * span):
            results.append(Sentinel(code, count, int(np.flatnonzero(values == code)[0])))
    return results
