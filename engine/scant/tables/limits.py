"""Bands that were observed without a detection: "fainter than the limit".

A column `<feature>_lim` holds the limit where the feature is empty for this reason; where both are
empty it was never observed. Surveys write 99 as the magnitude, and the limit as its error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Bool, Float

from scant.tables.cells import Cells

NOT_DETECTED = 99.0
BESIDE = "_err", "_lim"  # ends of names of columns that say more of another
_MAGNITUDES = 10.0, 40.0  # of limits; an error of as much, beside a magnitude of 99, is none
_WORDS = {"lim", "limit", "limiting", "maglim", "limmag"}


def undetected(
    values: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Where a magnitude says "not detected" and its error is the limit."""
    low, high = _MAGNITUDES
    return np.asarray((values == NOT_DETECTED) & (errors >= low) & (errors <= high))


def beside(name: str, among: Collection[str]) -> bool:
    """Whether a column holds another's errors or limits, and is no feature of its own."""
    base, end = name[:-4], name[-4:]
    if end == "_lim":
        return base in among and f"{base}_err" in among
    return end == "_err" and base in among


def is_limit(name: str) -> bool:
    """Does a header speak of a limit?"""
    return bool(_WORDS & set(_parts(name)))


def limit_base(name: str, by_key: Mapping[str, str]) -> str | None:
    """The column whose limit a header says it holds: `lim_u`, `u_limit`.

    Args:
        name: A header.
        by_key: All headers by their letters and digits in lower case.
    """
    parts = _parts(name)
    for i, word in enumerate(parts):
        rest = [*parts[:i], *parts[i + 1 :]]
        for around in (rest, ["mag", *rest]) if word in _WORDS and rest else ():
            if (found := by_key.get("".join(around))) is not None:
                return found
    return None


def _parts(name: str) -> list[str]:
    return [w for w in re.split(r"[_\s.\-]+", name.lower()) if w]


def without_limits(
    name: str, cells: Mapping[str, Cells], mapping: Mapping[str, str]
) -> Float[np.ndarray, " n"]:
    """Values of a column, NaN where they say that nothing was detected.

    Args:
        name: Its header.
        cells: All columns, by headers.
        mapping: From headers to names.
    """
    error = f"{mapping.get(name, name)}_err"
    values = cells[name].values
    for header, to in mapping.items():
        if to == error and header in cells:
            return np.where(undetected(values, cells[header].values), np.nan, values)
    return values


def with_limits(columns: Mapping[str, Cells]) -> tuple[dict[str, Cells], dict[str, str]]:
    """The columns with limits apart, and a sentence for each band where that was done.

    Args:
        columns: By the names of the schema: `<feature>` and `<feature>_err`.
    """
    made, said = dict(columns), dict[str, str]()
    for name, cells in columns.items():
        error, known = columns.get(f"{name}_err"), columns.get(f"{name}_lim")
        if error is None or cells.is_text or error.is_text:
            continue
        hit = undetected(cells.values, error.values)
        limits = np.where(hit, error.values, np.nan)
        if known is not None:
            own = undetected(cells.values, known.values)
            limits = np.where(own | (cells.empty & ~hit), known.values, limits)
            hit |= own
        if not hit.any():
            continue
        made[name], made[f"{name}_err"] = _emptied(cells, hit), _emptied(error, hit)
        there = np.isnan(limits)
        made[f"{name}_lim"] = Cells(f"{name}_lim", limits, there, np.zeros(len(there), dtype=bool))
        low, high = np.nanmin(limits[hit]), np.nanmax(limits[hit])
        limit = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        count = int(hit.sum())
        where = "the error there as the limit" if known is None else "the limit stands beside it"
        said[name] = (
            f"{NOT_DETECTED:g} in {count:,} cell{'s' * (count > 1)} was read as 'not detected', "
            f"and {where} ({limit}): fainter than it"
        )
    return made, said


def _emptied(cells: Cells, at: Bool[np.ndarray, " n"]) -> Cells:
    values = np.where(at, np.nan, cells.values)
    return Cells(cells.name, values, cells.empty | at, cells.bad, cells.text)
