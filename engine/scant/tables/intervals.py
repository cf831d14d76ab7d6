"""Columns of intervals, such as ages 15-19, years 1990-1995 or [15, 20), as two columns of bounds.

Statistical offices write 15-19 and 20-24 for ages in whole years, where the first interval ends at
20; others write 15-20 and 20-25. The other intervals of a column determine which is meant; if they
do not, the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from scant.tables.cells import Cells, from_text
from scant.tables.checks import Diagnostics
from scant.tables.column_matching import listed
from scant.tables.dates import are_dates, as_numbers
from scant.tables.headers import bare, unit, words
from scant.tables.schema import Question

CLOSED = "closed"  # key in `Table.reading` and in stored models

_FRONT = r"(?i)^(?:ages?|aged|years?|y)?[ _]*"  # "Y15-19" (Eurostat)
_END = r"[ _]*(?:years?|yrs?|y)?\.?$"
_NUMBER = r"([+-]?\d+(?:\.\d+)?)"
_TO = r"\s*(?:-|–|—|_|/|\.\.+|\bto\b|\buntil\b)\s*"
_BETWEEN = re.compile(rf"{_FRONT}{_NUMBER}{_TO}{_NUMBER}{_END}")
_BRACKETS = re.compile(rf"^[\[(]\s*{_NUMBER}\s*[,;]\s*{_NUMBER}\s*[\])]$")
_ALONE = re.compile(rf"{_FRONT}{_NUMBER}{_END}")
_OVER = re.compile(
    rf"{_FRONT}(?:>=?|≥|over|ge_?|gt_?)?\s*{_NUMBER}\s*"
    rf"(?:\+|plus|(?:years )?(?:and|or|&) (?:over|older|more|above))?{_END}"
)
_UNDER = re.compile(rf"{_FRONT}(?:<|under|below|less than|lt_?)\s*{_NUMBER}{_END}")
_DATES = re.compile(r"\s+(?:to|until|-)\s+|\s*[–—/]\s*|\.\.+")
_MIN_SHARE = 0.9  # of the filled cells
_LONGEST = 100  # bytes of a cell; polygons have thousands
_GROUP = {"group", "groups", "band", "range", "interval", "class", "bracket", "bin"}
_FROM_ZERO = {"age", "ages", "aged"}  # quantities without negative values


class _Read(NamedTuple):
    """Intervals of a column, before deciding whether upper ends are included."""

    lo: Float[np.ndarray, " n"]
    hi: Float[np.ndarray, " n"]
    alone: Bool[np.ndarray, " n"]  # a single number
    exact: bool  # given by brackets
    bad: Bool[np.ndarray, " n"]
    dates: str = ""  # how dates were read


def bounds(
    cells: Mapping[str, Cells], findings: Diagnostics, closed: Mapping[str, bool]
) -> tuple[dict[str, Cells], list[Question]]:
    """Replace each column of intervals by two columns of bounds.

    Args:
        cells: Columns by header.
        findings: Receives notes and, in `closed`, the decisions.
        closed: By header, True if the upper end is included, where known.

    Returns:
        The columns, and a question if it is undetermined whether upper ends are included.
    """
    result: dict[str, Cells] = {}
    undecided: dict[str, tuple[str, float]] = {}  # by header: a cell and its upper end
    for name, column in cells.items():
        read = _intervals(column)
        low, high = (f"{_dimension(name)}_{end}" for end in ("lo", "hi"))
        if read is None or low in cells or high in cells:
            result[name] = column
            continue
        decided = False if read.exact else closed.get(name, _ends_included(read))
        if decided is None:
            i = np.flatnonzero(~read.alone & np.isfinite(read.hi) & np.isfinite(read.lo))[0]
            undecided[name] = column.shown(int(i)), float(read.hi[i])
            decided = _likely_included(read)
        findings.closed[name] = decided
        result |= {c.name: c for c in _columns(column, read, decided, (low, high), findings)}
    return result, _question(undecided, findings.closed)


def _dimension(name: str) -> str:
    """Name of a column of intervals without the word for a group: "age" for "age_group"."""
    parts = words(name)
    rest = [p for p in parts if p not in _GROUP]
    own = "_".join(rest) if rest and len(rest) < len(parts) else bare(name)
    return f"{own} [{unit(name)}]" if unit(name) else own


def _intervals(cells: Cells) -> _Read | None:
    """Intervals of a column, or None if it has none."""
    if cells.text is None or 2 * cells.bad.sum() < (~cells.empty).sum() or cells.empty.all():
        return None
    if pc.max(pc.binary_length(cells.text)).as_py() > _LONGEST:
        return None
    encoded = cells.text.dictionary_encode()
    levels = [str(word) for word in encoded.dictionary.to_pylist()]
    index = encoded.indices.to_numpy()
    if not any(_BETWEEN.match(w) or _BRACKETS.match(w) or _DATES.search(w) for w in levels):
        return None
    read = _of_numbers(levels)
    if read is None or (are_dates(cells) and not _years(levels, read)):  # 2020-01 is a month
        read = _of_dates(levels)
    if read is None:
        return None
    valid = ~read.bad[index]
    between = valid & ~read.alone[index]
    filled = ~cells.empty
    if (valid & filled).sum() < _MIN_SHARE * filled.sum() or (
        between & filled
    ).sum() < filled.sum() / 2:
        return None
    columns = {n: getattr(read, n)[index] for n in ("lo", "hi", "alone")}
    return read._replace(**columns, bad=read.bad[index] & filled)


def _of_numbers(levels: list[str]) -> _Read | None:
    """Parse texts as intervals, with infinite bounds if open; None if any is reversed."""
    lo, hi = np.full((2, len(levels)), np.nan)
    alone = np.zeros(len(levels), dtype=bool)
    bracketed = 0
    for i, word in enumerate(levels):
        if match := _BRACKETS.match(word):
            bracketed += 1
        if match := match or _BETWEEN.match(word):
            lo[i], hi[i] = float(match[1]), float(match[2])
            if len(match[1]) == 4 and len(match[2]) == 2:  # 1990-95, 1999-00
                hi[i] += lo[i] // 100 * 100
                hi[i] += 100 * (hi[i] < lo[i])
        elif match := _ALONE.match(word):
            lo[i] = hi[i] = float(match[1])
            alone[i] = True
        elif match := _UNDER.match(word):
            lo[i], hi[i] = -np.inf, float(match[1])
        elif match := _OVER.match(word):
            lo[i], hi[i] = float(match[1]), np.inf
    if (hi < lo).any() or not (np.isfinite(lo) & np.isfinite(hi) & ~alone).any():
        return None
    return _Read(lo, hi, alone, bracketed > 0, np.isnan(lo))


def _years(levels: list[str], read: _Read) -> bool:
    """Return True if cells such as 1990-95 are years and not months (one ends beyond 12)."""
    short = [w for w in levels if re.fullmatch(r"\d{4}[-/]\d{2}", w)]
    proper = bool((read.hi > read.lo)[~read.bad].all())
    return proper and any(not 1 <= int(w[-2:]) <= 12 for w in short)


def _of_dates(levels: list[str]) -> _Read | None:
    """Parse texts with two dates or times, as days or hours; None if they are not."""
    parts = [_DATES.split(word) for word in levels]
    bad = np.array([len(p) != 2 for p in parts])
    if bad.all():
        return None
    ends, notes = [], set()
    for k in range(2):
        text = pa.array(["" if b else p[k].strip() for p, b in zip(parts, bad)], pa.string())
        column = from_text("", text)
        if not are_dates(column):
            return None
        numbers, note = as_numbers(column)
        ends.append(numbers.values)
        notes.add(note)
    lo, hi = ends
    if len(notes) > 1 or (hi < lo).any():
        return None
    return _Read(lo, hi, np.zeros(len(lo), dtype=bool), False, np.isnan(lo) | np.isnan(hi), *notes)


def _ends_included(read: _Read) -> bool | None:
    """Decide from the starts of other intervals if upper ends are included; None if unclear."""
    fine = np.isfinite(read.lo) & np.isfinite(read.hi) & ~read.bad
    lo, hi = read.lo[fine], read.hi[fine]
    if not _whole(read):
        return False
    starts = np.unique(read.lo[np.isfinite(read.lo)])
    upper = np.unique(hi[hi > lo])
    after, at = int(np.isin(upper + 1, starts).sum()), int(np.isin(upper, starts).sum())
    return after > at if after != at else None


def _whole(read: _Read) -> bool:
    both = np.concatenate([read.lo, read.hi])
    both = both[np.isfinite(both)]
    return bool((both == np.round(both)).all())


def _likely_included(read: _Read) -> bool:
    """Guess: upper ends are included if widths are then multiples of five."""
    width = (read.hi - read.lo)[np.isfinite(read.hi - read.lo) & ~read.alone & ~read.bad]
    return bool(np.isin((width + 1) % 5, 0).mean() > 0.5)


def _columns(
    cells: Cells, read: _Read, included: bool, names: tuple[str, str], findings: Diagnostics
) -> tuple[Cells, Cells]:
    """Create the two columns of bounds, with a note."""
    step = 1.0 if included else 0.0
    lo, hi = read.lo.copy(), read.hi + step
    inside = np.isfinite(lo) & np.isfinite(hi) & ~read.alone & ~read.bad & ~cells.empty
    first = int(np.flatnonzero(inside)[0])
    width = float(np.median((hi - lo)[inside]))
    prefix = f"{read.dates} and " if read.dates else ""
    if read.dates:
        reach = "up to the end of its last day" if included else "up to its second date"
        text = f"{prefix}its intervals as bounds, each {reach}"
    else:
        text = (
            f"its intervals were read as bounds: {cells.shown(first)} is {lo[first]:g} up to "
            f"{hi[first]:g}"
        )
    if (over := np.isposinf(hi)).any():
        hi[over] = lo[over] + width
        i = int(np.flatnonzero(over)[0])
        text += f"; {cells.shown(i)} was taken as {lo[i]:g} up to {hi[i]:g}, as wide as the others"
    if (under := np.isneginf(lo)).any():
        hi[under] -= step  # "under 15" does not include 15
        lo[under] = 0 if set(words(cells.name)) & _FROM_ZERO else hi[under] - width
        i = int(np.flatnonzero(under)[0])
        text += f"; {cells.shown(i)} was taken as {lo[i]:g} up to {hi[i]:g}"
    findings.note(cells.name, text)
    if read.bad.any():
        got = f"got {cells.shown(int(np.flatnonzero(read.bad)[0]))!r}, which is not an interval"
        do = "write both bounds, such as 15-19, or drop the row"
        findings.cell(cells.name, read.bad, got, do)
    never_bad = np.zeros(len(lo), dtype=bool)
    low, high = (Cells(n, v, np.isnan(v), never_bad) for n, v in zip(names, (lo, hi)))
    return low, high


def _question(
    undecided: Mapping[str, tuple[str, float]], decided: Mapping[str, bool]
) -> list[Question]:
    """Question whether upper ends are included; the default is that of the first column."""
    if not undecided:
        return []
    (name, (cell, end)), *more = undecided.items()
    also = f" (and of those in {listed([f'“{n}”' for n, _ in more])})" if more else ""
    options = (
        (dict.fromkeys(undecided, True), f"Yes: {cell} reaches up to {end + 1:g}"),
        (dict.fromkeys(undecided, False), f"No: {cell} reaches up to {end:g}"),
    )
    text = f"Is the upper end of {cell} in “{name}”{also} included?"
    return [Question(CLOSED, text, options, options[0 if decided[name] else 1][0])]
