"""A table of values joined with a map: polygons found by the names or codes of their places.

The key columns are those whose values are alike: names without regard to case, accents and marks,
codes without the leading zeros that spreadsheets take away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pyarrow as pa

from scant.errors import BadInput
from scant.tables import geometry
from scant.tables.cells import Cells, from_text
from scant.tables.checks import Diagnostics
from scant.tables.column_matching import key
from scant.tables.dates import are_dates
from scant.tables.guesses import is_time
from scant.tables.schema import Question

LISTED = 10  # names that a note has
LEAST = 0.5  # of a table's names, which must be on the map
_NEAR = 0.8  # of the best pair's score: then it is asked which pair is meant
_OFFERED = 8
_CENSUS = re.compile(r"\d{7}us(\d+)")  # 0500000US37001
_WORTH = 4  # digits of a whole number that is rather a code than a count


@dataclass(frozen=True)
class Pair:
    """A column of the table and one of the map that may name the same places.

    Attributes:
        table: Header in the table.
        map: Header on the map.
        place: Of each row of the table its first polygon; -1 where there is none.
        score: Larger where more of the names are alike.
        share: Of the table's names, those on the map.
    """

    table: str
    map: str
    place: np.ndarray
    score: float
    share: float


def alike(cells: Cells) -> np.ndarray:
    """Cells as they are compared: "01001", "1001.0" and 1001 are the same, "Île" and "ile" too."""
    known: dict[str, str] = {}
    labels = cells.labels()
    return np.array([None if w is None else known.setdefault(w, _plain(w)) for w in labels])


def _plain(word: str) -> str:
    apart = unicodedata.normalize("NFKD", word.casefold())
    letters = "".join(c for c in apart if not unicodedata.combining(c))
    if re.fullmatch(r"\d+\.0+", letters):
        letters = letters.partition(".")[0]
    plain = " ".join(re.findall(r"[^\W_]+", letters))
    if census := _CENSUS.fullmatch(plain):
        plain = census[1]
    return plain.lstrip("0") or "0" if plain.isdigit() else plain


def pairs(table: Mapping[str, Cells], drawn: Mapping[str, Cells]) -> list[Pair]:
    """Pairs of columns that name the same places, the best first."""
    own = {n: alike(c) for n, c in table.items() if _may_name(c)}
    known = {n: alike(c) for n, c in drawn.items() if _may_name(c) and n != geometry.COLUMN}
    made = []
    for m, places in known.items():
        where: dict[str, int] = {}
        for i, word in enumerate(places):
            if word:
                where.setdefault(word, i)
        for t, words in own.items():
            different = {w for w in words if w}
            share = sum(w in where for w in different) / max(len(different), 1)
            if len(different) < 2 or not share:
                continue
            covered = sum(w in different for w in where) / len(where)
            score = share * (0.5 + 0.5 * sqrt(covered)) + 0.2 * (key(t) == key(m))
            score *= 1.0 if _is_code(table[t]) else 0.6
            place = np.array([where.get(w, -1) if w else -1 for w in words], dtype=np.int64)
            made.append(Pair(t, m, place, score, share))
    return sorted(made, key=lambda p: -p.score)


def _may_name(cells: Cells) -> bool:
    """Could a column hold names or codes? Times and numbers with decimals do not."""
    if are_dates(cells) or is_time(cells.name) or cells.empty.all():
        return False
    if cells.is_text or cells.bad.any():
        return True
    observed = cells.values[~np.isnan(cells.values)]
    return bool((observed == np.round(observed)).all())


def _is_code(cells: Cells) -> bool:
    """Is it rather a name or a code than a count?"""
    if cells.is_text or cells.bad.any():
        return True
    size = np.nanmax(np.abs(cells.values))
    filled = int((~cells.empty).sum())
    return bool(size >= 10 ** (_WORTH - 1)) or len(np.unique(cells.values)) == filled


def chosen(
    found: Sequence[Pair], join: tuple[str, str] | None, table: str, drawn: str
) -> tuple[Pair, list[Question]]:
    """The pair by which two files are joined, and a question where another may be meant.

    Args:
        found: By `pairs`.
        join: The headers that somebody has chosen; None: the best.
        table: What messages call the table.
        drawn: What they call the map.

    Raises:
        BadInput: No names are alike.
    """
    if join is not None:
        named = [p for p in found if (p.table, p.map) == tuple(join)]
        if not named:
            raise BadInput(
                f"{table}, column {join[0]!r} and {drawn}, column {join[1]!r} have no value in "
                "common; join them by columns with the same names or codes."
            )
        return named[0], []
    if not found or found[0].share < LEAST:
        near = ""
        if found:
            near = (
                f"; nearest are {found[0].table!r} and {found[0].map!r}, where "
                f"{found[0].share:.0%} are alike"
            )
        raise BadInput(
            f"{table} has no polygons, and none of its columns names those of {drawn}{near}; give "
            "both files a column with the same names or codes."
        )
    best = found[0]
    rivals = [
        p
        for p in found[:_OFFERED]
        if p.share >= LEAST
        and p.score >= _NEAR * best.score
        and not np.array_equal(p.place, best.place)
    ]
    if not rivals:
        return best, []
    options = tuple(
        ((p.table, p.map), f"“{p.table}” = “{p.map}” ({p.share:.0%} of the names are there)")
        for p in [best, *rivals]
    )
    text = f"Which columns of {table} and {drawn} name the same places?"
    return best, [Question("join", text, options, options[0][0])]


def joined(
    pair: Pair,
    table: Mapping[str, Cells],
    findings: Diagnostics,
    drawn: Mapping[str, Cells],
    on_map: Diagnostics,
) -> tuple[dict[str, Cells], set[str]]:
    """The table's rows with polygons, attributes of the map behind them.

    Rows without a polygon are left out, with a note that lists their names and those of polygons
    without values; `findings` is then of the rows that are left.

    Returns:
        The columns, and those that are only known of the map or name the places.
    """
    kept = pair.place >= 0
    own, places = alike(table[pair.table]), alike(drawn[pair.map])
    outlines = _united(drawn[geometry.COLUMN], places, pair.place[kept], findings, pair.map)
    lost = _unlike(table[pair.table], ~kept)
    used = set(own[kept])
    spare = _unlike(drawn[pair.map], np.array([w is None or w not in used for w in places]))
    findings.notes.append(
        f"{findings.file} was joined with {on_map.file} by {pair.table!r} and {pair.map!r}"
        + (f"; without a polygon, left out: {lost}" if lost else "")
        + (f"; without values: {spare}" if spare else "")
        + "."
    )
    findings.notes += on_map.notes
    findings.rows = findings.rows[kept]
    cells = {n: taken(c, np.flatnonzero(kept)) for n, c in table.items()}
    attributes = {
        n: taken(c, pair.place[kept])
        for n, c in drawn.items()
        if n not in table and n != geometry.COLUMN
    }
    return (
        {**cells, **attributes, geometry.COLUMN: outlines},
        {pair.table, *attributes},
    )


def _unlike(cells: Cells, where: np.ndarray) -> str:
    """The names of some rows for a note; "" where there are none."""
    names = list(dict.fromkeys(str(w) for w in cells.labels()[where] if w is not None))
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"


def _united(
    cells: Cells, places: np.ndarray, wanted: np.ndarray, findings: Diagnostics, column: str
) -> Cells:
    """The outline of each wanted place; of several polygons with its name their union."""
    shapely, _ = geometry.libraries(findings.file)
    of: dict[str, list[int]] = {}
    for i, word in enumerate(places):
        if word:
            of.setdefault(word, []).append(i)
    labels = cells.labels()
    several = {own[0]: own for own in of.values() if len(own) > 1}
    for first in set(wanted.tolist()) & set(several):
        made, codes = geometry.parsed(labels[several[first]], findings.file)
        if len(set(codes.tolist())) == 1 and not shapely.is_missing(made).any():
            mark = f"SRID={codes[0]};" if codes[0] else ""
            labels[first] = mark + shapely.to_wkt(
                shapely.union_all(shapely.make_valid(made)), rounding_precision=15, trim=True
            )
    if several:
        findings.notes.append(
            f"{findings.file}: {len(several):,} places of the map's column {column!r} have several "
            "polygons, which were united."
        )
    text = pa.array(["" if w is None else w for w in labels[wanted]], pa.string())
    return from_text(geometry.COLUMN, text)


def taken(cells: Cells, rows: np.ndarray) -> Cells:
    """Some rows of a column."""
    text = None if cells.text is None else cells.text.take(pa.array(rows))
    return Cells(cells.name, cells.values[rows], cells.empty[rows], cells.bad[rows], text)
