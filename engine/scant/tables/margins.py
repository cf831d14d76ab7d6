"""What stands around a table in its file: titles above, units below the header, totals at the end.

Spreadsheets and statistical offices write them; none is a row of the table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from scant.tables.cells import EMPTY

_MOST_TITLES, _MOST_NOTES = 12, 6  # records above, and below
_TOTAL = re.compile(
    r"(grand |sub)?(totals?|sum|mean|average|median|gesamt|insgesamt|summe|mittelwert|moyenne)\W*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s*[+\-−]?[.,]?\d[\d.,' ]*([eE][+-]?\d+)?%?\s*$")  # in any style


def titles(records: Sequence[Sequence[str]]) -> int:
    """How many of the first records stand above the header.

    A title has one cell, or is a comment; the header below it has as many cells as most records,
    and words in them.
    """
    width = Counter(map(len, records)).most_common(1)[0][0] if records else 0
    for i, record in enumerate(records[: _MOST_TITLES + 1]):
        alone = len(record) == 1 or (width > 2 and record[0] and not any(record[1:]))
        if any(record) and not (alone or record[0].lstrip().startswith(("#", "%", "//"))):
            return i if i and len(record) == width > 1 and _names(record) else 0
    return 0


def has_header(header: Sequence[str]) -> bool:
    """Are these names, and not the first row of numbers? Numbers that rise may be years or ids."""
    plain = [cell.strip().replace(",", ".") for cell in header]
    numbers = [float(cell) for cell in plain if re.fullmatch(r"[+-]?\d*\.?\d+", cell)]
    if len(numbers) < 2 or 2 * len(numbers) < len(header):
        return True
    rising = all(a < b for a, b in pairwise(numbers))
    return rising or (len({*numbers}) == len(numbers) and all(n.is_integer() for n in numbers))


def footnotes(columns: Sequence[pa.StringArray]) -> int:
    """How many of the last rows are totals, or remarks in the first column alone."""
    n, least = len(columns[0]), 4
    if len(columns) < 2:
        return 0
    for count in range(_MOST_NOTES):
        at = n - 1 - count
        first = columns[0][at].as_py() if at >= least else ""
        others = any(c[at].as_py() for c in columns[1:])
        remark = len(columns) > 2 and not others and not _NUMBER.match(first)
        if not first or not (remark or _TOTAL.fullmatch(first)):
            return count
    return 0


def units(columns: Sequence[pa.StringArray]) -> list[str] | None:
    """The units in the first row, one a column, where that row holds nothing else."""
    if len(columns[0]) < 4:
        return None
    first = [c[0].as_py() for c in columns]
    if any(_NUMBER.match(w) or len(w) > 12 for w in first):
        return None
    numeric = [i for i, c in enumerate(columns) if _are_numbers(c[1:50])]
    named = [i for i in numeric if first[i]]
    if len(named) < 2:
        return None
    if any(first[i].lower() in EMPTY.to_pylist() for i in named):
        return None
    texts = [i for i in range(len(first)) if i not in numeric]
    if any(first[i] and pc.any(pc.equal(columns[i][1:], first[i])).as_py() for i in texts):
        return None  # a word of the column, not a unit
    return [first[i].strip("[]()") if i in named else "" for i in range(len(first))]


def _are_numbers(cells: pa.StringArray) -> bool:
    given = cells.filter(pc.invert(pc.is_in(pc.utf8_lower(cells), value_set=EMPTY)))
    return len(given) > 0 and bool(
        pc.all(pc.match_substring_regex(given, r"^[+-−]?[\d.,]+")).as_py()
    )


def _names(cells: Sequence[str]) -> bool:
    given = [cell for cell in cells if cell.strip()]
    return len(given) > 1 and len({*given}) == len(given) and not any(map(_NUMBER.match, given[1:]))
