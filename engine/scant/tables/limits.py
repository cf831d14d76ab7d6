"""Bands that were observed without a detection ("fainter than the limit").

A column `<feature>_lim` holds the limit if the feature is empty for this reason; if both are empty,
it was not observed. Surveys write 99 as the magnitude and the limit as its error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Bool, Float

from scant.tables.cells import Cells

NOT_DETECTED = 99.0
BESIDE = "_err", "_lim"  # suffixes of columns that qualify another column
_MAGNITUDES = 10.0, 40.0  # range of limits given as the error of a magnitude of 99
_WORDS = {"lim", "limit", "limiting", "maglim", "limmag"}


def undetected(
    values: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """True where a magnitude means "not detected" and its error is the limit."""
    low, high = _MAGNITUDES
    return np.asarray((values == NOT_DETECTED) & (errors >= low) & (errors <= high))


def beside(name: str, among: Collection[str]) -> bool:
    """Return True if a column holds errors or limits of another column in `among`."""
    base, end = name[:-4], name[-4:]
    if end == "_lim":
        return base in among and f"{base}_err" in among
    return end == "_err" and base in among


def is_limit(name: str) -> bool:
    """Return True if a header denotes a limit."""
    return bool(_WORDS & set(_parts(name)))


def limit_base(name: str, by_key: Mapping[str, str]) -> str | None:
    """Column whose limit a header denotes: `lim_u`, `u_limit`.

    Args:
        name: A header.
        by_key: Headers by `column_matching.key`.
    """
    parts = _parts(name)
    for i, word in enumerate(parts):
        rest = [*parts[:i], *parts[i + 1 :]]
        for around in (rest, ["mag", *rest]) if word in _WORDS and rest else ():
            if (result := by_key.get("".join(around))) is not None:
                return result
    return None


def _parts(name: str) -> list[str]:
    return [w for w in re.split(r"[_\s.\-]+", name.lower()) if w]


def without_limits(
    name: str, cells: Mapping[str, Cells], mapping: Mapping[str, str]
) -> Float[np.ndarray, " n"]:
    """Values of a column, NaN where nothing was detected.

    Args:
        name: Header of the column.
        cells: All columns by header.
        mapping: Headers to names of the schema.
    """
    error = f"{mapping.get(name, name)}_err"
    values = cells[name].values
    for header, to in mapping.items():
        if to == error and header in cells:
            return np.where(undetected(values, cells[header].values), np.nan, values)
    return values


def with_limits(columns: Mapping[str, Cells]) -> tuple[dict[str, Cells], dict[str, str]]:
    """Move limits to separate columns, and return a note for each band.

    Args:
        columns: Columns by names of the schema: `<feature>` and `<feature>_err`.
    """
    made, notes = dict(columns), dict[str, str]()
    for name, cells in columns.items():
        error, limit_column = columns.get(f"{name}_err"), columns.get(f"{name}_lim")
        if error is None or cells.is_text or error.is_text:
            continue
        hit = undetected(cells.values, error.values)
        limits = np.where(hit, error.values, np.nan)
        if limit_column is not None:
            in_limits = undetected(cells.values, limit_column.values)
            limits = np.where(in_limits | (cells.empty & ~hit), limit_column.values, limits)
            hit |= in_limits
        if not hit.any():
            continue
        made[name], made[f"{name}_err"] = _emptied(cells, hit), _emptied(error, hit)
        no_limit = np.isnan(limits)
        made[f"{name}_lim"] = Cells(
            f"{name}_lim", limits, no_limit, np.zeros(len(no_limit), dtype=bool)
        )
        low, high = np.nanmin(limits[hit]), np.nanmax(limits[hit])
        limit = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        count = int(hit.sum())
        source = (
            "its error was read as the limit"
            if limit_column is None
            else "the limit was read from the column beside it"
        )
        notes[name] = (
            f"{NOT_DETECTED:g} in {count:,} cell{'s' * (count > 1)} was read as 'not detected', "
            f"and {source} ({limit}): the magnitude is fainter"
        )
    return made, notes


def _emptied(cells: Cells, at: Bool[np.ndarray, " n"]) -> Cells:
    values = np.where(at, np.nan, cells.values)
    return Cells(cells.name, values, cells.empty | at, cells.bad, cells.text)
