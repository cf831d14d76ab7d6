"""Bands that were observed without a detection ("fainter than the limit").

A column `<feature>_lim` holds the limit if the feature is empty for this reason; if both are empty,
it was not observed. Surveys write 99 as the magnitude and the limit as its error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from scant.tables.cells import Cells

NOT_DETECTED = 99.0
# Values that no band has and that catalogs write where they have none, if the error is none either.
CODES = (99.0, -99.0, 999.0, -999.0, 9999.0, -9999.0)
_INFINITE = pa.array(["inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "∞", "-∞"])
BESIDE = "_err", "_lim"  # suffixes of columns that qualify another column
_MAGNITUDES = 10.0, 40.0  # range of limits given as the error of a magnitude of 99
_WORDS = {"lim", "limit", "limiting", "maglim", "limmag"}


def undetected(
    values: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """True where a magnitude means "not detected" and its error is the limit."""
    low, high = _MAGNITUDES
    return np.asarray((values == NOT_DETECTED) & (errors >= low) & (errors <= high))


def unmeasured(cells: Cells, errors: Cells) -> Bool[np.ndarray, " n"]:
    """True where neither a value nor its error is a number that could be measured.

    The value is infinite or one of `CODES` and the error is empty, infinite, not above zero, or the
    same code; or both are the same number below zero.
    """
    values, error = cells.values, errors.values
    code = np.isin(values, CODES) | _infinite(cells)
    none = errors.empty | _infinite(errors) | (error <= 0) | (np.abs(error) == np.abs(values))
    return np.asarray((code & none) | ((values == error) & (values < 0)))


def _infinite(cells: Cells) -> Bool[np.ndarray, " n"]:
    if cells.text is None or not cells.bad.any():
        return np.zeros(len(cells.values), dtype=bool)
    found = pc.is_in(pc.utf8_lower(cells.text), value_set=_INFINITE)
    return np.asarray(found, dtype=bool) & cells.bad


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
    """Empty cells without a measurement, move limits to separate columns, and note both by band.

    Args:
        columns: Columns by names of the schema: `<feature>` and `<feature>_err`.
    """
    made, notes = dict(columns), dict[str, str]()
    for name, cells in columns.items():
        error = columns.get(f"{name}_err")
        if error is None or cells.is_text or error.is_text:
            continue
        hit, limits = _limits(cells, error, columns.get(f"{name}_lim"))
        never = unmeasured(cells, error) & ~hit
        if (nothing := hit | never).any():
            made[name], made[f"{name}_err"] = cells.emptied(nothing), error.emptied(nothing)
        said = []
        if hit.any():
            no_limit = np.isnan(limits)
            made[f"{name}_lim"] = Cells(
                f"{name}_lim", limits, no_limit, np.zeros(len(no_limit), dtype=bool)
            )
            beside = f"{name}_lim" in columns
            said.append(_detection_note(_code(cells, hit), limits[hit], beside=beside))
        if never.any():
            count = int(never.sum())
            said.append(
                f"{_code(cells, never)} in {count:,} cell{'s' * (count > 1)}, with no valid error, "
                "was read as 'not observed'; if it means 'not detected', give the limits in a "
                f"column {name + '_lim'!r}"
            )
        if said:
            notes[name] = "; ".join(said)
    return made, notes


def _limits(
    cells: Cells, error: Cells, beside: Cells | None
) -> tuple[Bool[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Where 99 means that nothing was detected, and all limits, NaN where there is none."""
    hit = undetected(cells.values, error.values)
    limits = np.where(hit, error.values, np.nan)
    if beside is not None:
        in_limits = (unmeasured(cells, error) | (cells.values == NOT_DETECTED)) & ~beside.empty
        in_limits &= undetected(np.full(len(hit), NOT_DETECTED), beside.values)
        limits = np.where(in_limits | (cells.empty & ~hit), beside.values, limits)
        hit |= in_limits
    return hit, limits


def _detection_note(code: str, limits: Float[np.ndarray, " n"], beside: bool) -> str:
    low, high, count = limits.min(), limits.max(), len(limits)
    limit = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    source = (
        "the limit was read from the column beside it"
        if beside
        else "its error was read as the limit"
    )
    return (
        f"{code} in {count:,} cell{'s' * (count > 1)} was read as 'not detected', "
        f"and {source} ({limit}): the magnitude is fainter"
    )


def _code(cells: Cells, at: Bool[np.ndarray, " n"]) -> str:
    """The first of some values, as a number."""
    first = int(np.flatnonzero(at)[0])
    value = cells.values[first]
    return f"{value:g}" if np.isfinite(value) else cells.shown(first)
