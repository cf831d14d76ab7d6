"""Titles above a table, units below its header, and totals or footnotes at its end.

Spreadsheets and statistical offices write them; they are not rows of the table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from scant.tables.cells import EMPTY

_MAX_TITLES, _MAX_NOTES = 12, 6  # most records above and below the table
_TOTAL = re.compile(
    r"(grand |sub)?(totals?|sum|mean|average|median|gesamt|insgesamt|summe|mittelwert|moyenne)\W*",
    re.IGNORECASE,
)
_MAX_UNIT = 12  # characters
_UNITLESS = ("1", "-", "–", "—")
_TYPES = ("str", "string", "text", "char", "object", "-")  # of columns without a unit
_NUMBER = re.compile(r"\s*[+\-−]?[.,]?\d[\d.,' ]*([eE][+-]?\d+)?%?\s*$")  # in any style


def titles(records: Sequence[Sequence[str]]) -> int:
    """Number of records above the header.

    A title has one cell or is a comment; the header has as many cells as most records, with words.
    """
    width = Counter(map(len, records)).most_common(1)[0][0] if records else 0
    for i, record in enumerate(records[: _MAX_TITLES + 1]):
        single = len(record) == 1 or (width > 2 and record[0] and not any(record[1:]))
        if any(record) and not (single or record[0].lstrip().startswith(("#", "%", "//"))):
            return i if i and len(record) == width > 1 and _names(record) else 0
    return 0


def has_header(header: Sequence[str]) -> bool:
    """Return True if the record is a header: not numbers, except increasing ones (years, ids)."""
    plain = [cell.strip().replace(",", ".") for cell in header]
    numbers = [float(cell) for cell in plain if re.fullmatch(r"[+-]?\d*\.?\d+", cell)]
    if len(numbers) < 2 or 2 * len(numbers) < len(header):
        return True
    rising = all(a < b for a, b in pairwise(numbers))
    return rising or (len({*numbers}) == len(numbers) and all(n.is_integer() for n in numbers))


def footnotes(columns: Sequence[pa.StringArray]) -> int:
    """Number of final rows that are totals, or remarks in the first column."""
    n, first_row = len(columns[0]), 4
    if len(columns) < 2:
        return 0
    for count in range(_MAX_NOTES):
        at = n - 1 - count
        first = columns[0][at].as_py() if at >= first_row else ""
        others = any(c[at].as_py() for c in columns[1:])
        remark = len(columns) > 2 and not others and not _NUMBER.match(first)
        if not first or not (remark or _TOTAL.fullmatch(first)):
            return count
    return 0


def units(columns: Sequence[pa.StringArray]) -> list[str] | None:
    """Units in the first row, one per column ("" for none), or None if the row is data.

    A unit is a word above numbers. "1" and "-" stand for no unit, and "str" for the type of a text;
    a row of them is taken for units if two columns have one, or if a "1" stands above numbers with
    decimals: above whole numbers it could be one of them.
    """
    if len(columns[0]) < 4:
        return None
    first = [c[0].as_py() for c in columns]
    if any(len(w) > _MAX_UNIT or (_NUMBER.match(w) and w != "1") for w in first):
        return None
    numeric = [i for i, c in enumerate(columns) if _are_numbers(c[1:50])]
    named = [i for i in numeric if first[i] and first[i] not in _UNITLESS]
    if any(first[i].lower() in EMPTY.to_pylist() for i in named):
        return None
    texts = [i for i in range(len(first)) if i not in numeric and first[i]]
    if any(pc.any(pc.equal(columns[i][1:], first[i])).as_py() for i in texts):
        return None  # a value of the column, not a unit
    typed = bool(texts) and all(first[i].lower() in _TYPES for i in texts)
    ones = [i for i in numeric if first[i] == "1"]
    decimals = any(
        pc.any(pc.match_substring_regex(columns[i][1:50], r"[.,]\d")).as_py() for i in ones
    )
    if len(named) < 2 and not (decimals and (named or typed)):
        return None
    return [first[i].strip("[]()") if i in named else "" for i in range(len(first))]


def _are_numbers(cells: pa.StringArray) -> bool:
    given = cells.filter(pc.invert(pc.is_in(pc.utf8_lower(cells), value_set=EMPTY)))
    return len(given) > 0 and bool(
        pc.all(pc.match_substring_regex(given, r"^[+\-−]?[\d.,]+")).as_py()
    )


def _names(cells: Sequence[str]) -> bool:
    given = [cell for cell in cells if cell.strip()]
    return len(given) > 1 and len({*given}) == len(given) and not any(map(_NUMBER.match, given[1:]))
