"""Cells that are intervals, such as ages 15-19, years 1990-1995 or [15, 20): two columns of bounds.

Offices write 15-19 and 20-24 for ages in whole years, of which the first interval ends where the
second begins; others write 15-20 and 20-25. Which of the two a column means is told by its other
intervals, and asked where these do not tell.
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
from scant.tables.column_matching import bare, listed, unit, words
from scant.tables.dates import are_dates, as_numbers
from scant.tables.schema import Question

CLOSED = "closed"  # the keyword of `Reading`, and what a model remembers

_FRONT = r"(?i)^(?:ages?|aged|years?|y)?[ _]*"  # "Y15-19" of Eurostat
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
_MOST = 0.9  # of the filled cells
_LONGEST = 100  # bytes of a cell; outlines of polygons have thousands
_GROUP = {"group", "groups", "band", "range", "interval", "class", "bracket", "bin"}
_FROM_ZERO = {"age", "ages", "aged"}  # what has no values below


class _Read(NamedTuple):
    """Intervals of a column, before it is known whether their ends are included."""

    lo: Float[np.ndarray, " n"]
    hi: Float[np.ndarray, " n"]
    alone: Bool[np.ndarray, " n"]  # a number without another
    exact: bool  # brackets say it
    bad: Bool[np.ndarray, " n"]
    dates: str = ""  # how dates were read


def bounds(
    cells: Mapping[str, Cells], findings: Diagnostics, closed: Mapping[str, bool]
) -> tuple[dict[str, Cells], list[Question]]:
    """The columns of a table, each column of intervals as two columns of bounds in its place.

    Args:
        cells: The columns.
        findings: Gets notes, and in `closed` what was decided.
        closed: By header, whether the upper end of an interval is included, where that is known.

    Returns:
        The columns; and a question where nothing tells whether upper ends are included.
    """
    made: dict[str, Cells] = {}
    unsure: dict[str, tuple[str, float]] = {}  # headers, each with a cell and its upper end
    for name, column in cells.items():
        read = _intervals(column)
        low, high = (f"{_dimension(name)}_{end}" for end in ("lo", "hi"))
        if read is None or low in cells or high in cells:
            made[name] = column
            continue
        decided = False if read.exact else closed.get(name, _ends_included(read))
        if decided is None:
            i = np.flatnonzero(~read.alone & np.isfinite(read.hi) & np.isfinite(read.lo))[0]
            unsure[name] = column.shown(int(i)), float(read.hi[i])
            decided = _likely_included(read)
        findings.closed[name] = decided
        made |= {c.name: c for c in _columns(column, read, decided, (low, high), findings)}
    return made, _question(unsure, findings.closed)


def _dimension(name: str) -> str:
    """What a column of intervals is called without the word that says so: "age" of "age_group"."""
    parts = words(name)
    rest = [p for p in parts if p not in _GROUP]
    own = "_".join(rest) if rest and len(rest) < len(parts) else bare(name)
    return f"{own} [{unit(name)}]" if unit(name) else own


def _intervals(cells: Cells) -> _Read | None:
    """The intervals of a column; None of any other column."""
    if cells.text is None or 2 * cells.bad.sum() < (~cells.empty).sum() or cells.empty.all():
        return None
    if pc.max(pc.binary_length(cells.text)).as_py() > _LONGEST:
        return None
    encoded = cells.text.dictionary_encode()
    levels = [str(word) for word in encoded.dictionary.to_pylist()]
    place = encoded.indices.to_numpy()
    if not any(_BETWEEN.match(w) or _BRACKETS.match(w) or _DATES.search(w) for w in levels):
        return None
    read = _of_numbers(levels)
    if read is None or (are_dates(cells) and not _years(levels, read)):  # 2020-01 is a month
        read = _of_dates(levels)
    if read is None:
        return None
    known = ~read.bad[place]
    between = known & ~read.alone[place]
    filled = ~cells.empty
    if (known & filled).sum() < _MOST * filled.sum() or (between & filled).sum() < filled.sum() / 2:
        return None
    own = {n: getattr(read, n)[place] for n in ("lo", "hi", "alone")}
    return read._replace(**own, bad=read.bad[place] & filled)


def _of_numbers(levels: list[str]) -> _Read | None:
    """Each word as an interval, open ones with an infinite bound; None where one is upside down."""
    lo, hi = np.full((2, len(levels)), np.nan)
    alone = np.zeros(len(levels), dtype=bool)
    bracketed = 0
    for i, word in enumerate(levels):
        if found := _BRACKETS.match(word):
            bracketed += 1
        if found := found or _BETWEEN.match(word):
            lo[i], hi[i] = float(found[1]), float(found[2])
            if len(found[1]) == 4 and len(found[2]) == 2:  # 1990-95, 1999-00
                hi[i] += lo[i] // 100 * 100
                hi[i] += 100 * (hi[i] < lo[i])
        elif found := _ALONE.match(word):
            lo[i] = hi[i] = float(found[1])
            alone[i] = True
        elif found := _UNDER.match(word):
            lo[i], hi[i] = -np.inf, float(found[1])
        elif found := _OVER.match(word):
            lo[i], hi[i] = float(found[1]), np.inf
    if (hi < lo).any() or not (np.isfinite(lo) & np.isfinite(hi) & ~alone).any():
        return None
    return _Read(lo, hi, alone, bracketed > 0, np.isnan(lo))


def _years(levels: list[str], read: _Read) -> bool:
    """Are cells such as 1990-95 years, and no months? So they are where one ends beyond 12."""
    short = [w for w in levels if re.fullmatch(r"\d{4}[-/]\d{2}", w)]
    wide = bool((read.hi > read.lo)[~read.bad].all())
    return wide and any(not 1 <= int(w[-2:]) <= 12 for w in short)


def _of_dates(levels: list[str]) -> _Read | None:
    """Words that are two dates or times each, as days or hours; None where they are none."""
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
    """Whether 15-19 ends where 20 begins, by what the next interval begins with; None: unknown."""
    fine = np.isfinite(read.lo) & np.isfinite(read.hi) & ~read.bad
    lo, hi = read.lo[fine], read.hi[fine]
    if not _whole(read):
        return False
    starts = np.unique(read.lo[np.isfinite(read.lo)])
    ends = np.unique(hi[hi > lo])
    after, at = int(np.isin(ends + 1, starts).sum()), int(np.isin(ends, starts).sum())
    return after > at if after != at else None


def _whole(read: _Read) -> bool:
    both = np.concatenate([read.lo, read.hi])
    both = both[np.isfinite(both)]
    return bool((both == np.round(both)).all())


def _likely_included(read: _Read) -> bool:
    """The guess: 15-19 are five years, and 15-20 as well."""
    width = (read.hi - read.lo)[np.isfinite(read.hi - read.lo) & ~read.alone & ~read.bad]
    return bool(np.isin((width + 1) % 5, 0).mean() > 0.5)


def _columns(
    cells: Cells, read: _Read, included: bool, names: tuple[str, str], findings: Diagnostics
) -> tuple[Cells, Cells]:
    """The two columns of bounds, and a note on how they were read."""
    step = 1.0 if included else 0.0
    lo, hi = read.lo.copy(), read.hi + step
    inside = np.isfinite(lo) & np.isfinite(hi) & ~read.alone & ~read.bad & ~cells.empty
    first = int(np.flatnonzero(inside)[0])
    width = float(np.median((hi - lo)[inside]))
    told = f"{read.dates} and " if read.dates else ""
    if read.dates:
        reach = "up to the end of its last day" if included else "up to its second date"
        text = f"{told}its intervals as bounds, each {reach}"
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
        got = f"got {cells.shown(int(np.flatnonzero(read.bad)[0]))!r}, which is no interval"
        do = "write both bounds, such as 15-19, or drop the row"
        findings.cell(cells.name, read.bad, got, do)
    nothing = np.zeros(len(lo), dtype=bool)
    low, high = (Cells(n, v, np.isnan(v), nothing) for n, v in zip(names, (lo, hi)))
    return low, high


def _question(
    unsure: Mapping[str, tuple[str, float]], decided: Mapping[str, bool]
) -> list[Question]:
    """Whether upper ends are included; the guess is that of the first column."""
    if not unsure:
        return []
    (name, (cell, end)), *more = unsure.items()
    also = f" (and of those in {listed([f'“{n}”' for n, _ in more])})" if more else ""
    options = (
        (dict.fromkeys(unsure, True), f"Yes: {cell} reaches up to {end + 1:g}"),
        (dict.fromkeys(unsure, False), f"No: {cell} reaches up to {end:g}"),
    )
    text = f"Is the upper end of {cell} in “{name}”{also} included?"
    return [Question(CLOSED, text, options, options[0 if decided[name] else 1][0])]
