"""Join of a table of values with a map by the names or codes of places.

The key columns are those with matching values; case, accents, punctuation and leading zeros of
codes (dropped by spreadsheets) are ignored.
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
from scant.tables.column_kinds import is_time
from scant.tables.dates import are_dates
from scant.tables.headers import key
from scant.tables.schema import Question

LISTED = 10  # most names in a note
MIN_SHARE = 0.5  # of a table's names that must be on the map
_RIVAL = 0.8  # pairs with this share of the best score lead to a question
_OFFERED = 8  # most pairs in a question
_CENSUS = re.compile(r"\d{7}us(\d+)")  # 0500000US37001
_WORTH = 4  # digits of an integer that is probably a code


@dataclass(frozen=True)
class Pair:
    """Candidate key: a column of the table and one of the map with common names.

    Attributes:
        table: Header in the table.
        map: Header on the map.
        place: Index of the first matching polygon of each row; -1 if there is none.
        score: Score of the match; larger is better.
        share: Share of the table's names that are on the map.
    """

    table: str
    map: str
    place: np.ndarray
    score: float
    share: float


def normalized(cells: Cells) -> np.ndarray:
    """Normalize cells for comparison: "01001" = "1001.0" = 1001, and "Île" = "ile"."""
    cache: dict[str, str] = {}
    labels = cells.labels()
    return np.array([None if w is None else cache.setdefault(w, _plain(w)) for w in labels])


def _plain(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    if re.fullmatch(r"\d+\.0+", letters):
        letters = letters.partition(".")[0]
    plain = " ".join(re.findall(r"[^\W_]+", letters))
    if census := _CENSUS.fullmatch(plain):
        plain = census[1]
    return plain.lstrip("0") or "0" if plain.isdigit() else plain


def pairs(table: Mapping[str, Cells], polygons: Mapping[str, Cells]) -> list[Pair]:
    """Candidate keys, sorted by decreasing score."""
    table_columns = {n: normalized(c) for n, c in table.items() if _may_name(c)}
    map_columns = {
        n: normalized(c) for n, c in polygons.items() if _may_name(c) and n != geometry.COLUMN
    }
    made = []
    for m, names in map_columns.items():
        index: dict[str, int] = {}
        for i, word in enumerate(names):
            if word:
                index.setdefault(word, i)
        for t, words in table_columns.items():
            distinct = {w for w in words if w}
            share = sum(w in index for w in distinct) / max(len(distinct), 1)
            if len(distinct) < 2 or not share:
                continue
            covered = sum(w in distinct for w in index) / len(index)
            score = share * (0.5 + 0.5 * sqrt(covered)) + 0.2 * (key(t) == key(m))
            score *= 1.0 if _is_code(table[t]) else 0.6
            place = np.array([index.get(w, -1) if w else -1 for w in words], dtype=np.int64)
            made.append(Pair(t, m, place, score, share))
    return sorted(made, key=lambda p: -p.score)


def _may_name(cells: Cells) -> bool:
    """Return True if a column may hold names or codes (not times or decimal numbers)."""
    if are_dates(cells) or is_time(cells.name) or cells.empty.all():
        return False
    if cells.is_text or cells.bad.any():
        return True
    observed = cells.values[~np.isnan(cells.values)]
    return bool((observed == np.round(observed)).all())


def _is_code(cells: Cells) -> bool:
    """Return True if a column probably holds names or codes and not counts."""
    if cells.is_text or cells.bad.any():
        return True
    size = np.nanmax(np.abs(cells.values))
    filled = int((~cells.empty).sum())
    return bool(size >= 10 ** (_WORTH - 1)) or len(np.unique(cells.values)) == filled


def select_pair(
    candidates: Sequence[Pair], join: tuple[str, str] | None, table: str, drawn: str
) -> tuple[Pair, list[Question]]:
    """Select the key by which two files are joined, with a question if it is ambiguous.

    Args:
        candidates: Result of `pairs`.
        join: Headers chosen by the user; None selects the best.
        table: Name of the table for messages.
        drawn: Name of the map for messages.

    Raises:
        BadInput: There are too few common names.
    """
    if join is not None:
        named = [p for p in candidates if (p.table, p.map) == tuple(join)]
        if not named:
            raise BadInput(
                f"{table}, column {join[0]!r} and {drawn}, column {join[1]!r} have no value in "
                "common; join them by columns with the same names or codes."
            )
        return named[0], []
    if not candidates or candidates[0].share < MIN_SHARE:
        hint = ""
        if candidates:
            hint = (
                f"; nearest are {candidates[0].table!r} and {candidates[0].map!r}, where "
                f"{candidates[0].share:.0%} are alike"
            )
        raise BadInput(
            f"{table} has no polygons, and none of its columns names those of {drawn}{hint}; give "
            "both files a column with the same names or codes."
        )
    best = candidates[0]
    rivals = [
        p
        for p in candidates[:_OFFERED]
        if p.share >= MIN_SHARE
        and p.score >= _RIVAL * best.score
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
    polygons: Mapping[str, Cells],
    on_map: Diagnostics,
) -> tuple[dict[str, Cells], set[str]]:
    """Join the table's rows with polygons and attributes of the map.

    Rows without a polygon are dropped (also from `findings`), with a note that lists their names
    and those of polygons without values.

    Returns:
        The columns, and the names of those from the map or with the names of places.
    """
    has_polygon = pair.place >= 0
    keys, map_keys = normalized(table[pair.table]), normalized(polygons[pair.map])
    outlines = _united(
        polygons[geometry.COLUMN], map_keys, pair.place[has_polygon], findings, pair.map
    )
    unmatched = _listed(table[pair.table], ~has_polygon)
    used_keys = set(keys[has_polygon])
    unused = _listed(
        polygons[pair.map], np.array([w is None or w not in used_keys for w in map_keys])
    )
    findings.notes.append(
        f"{findings.file} was joined with {on_map.file} by {pair.table!r} and {pair.map!r}"
        + (f"; without a polygon, left out: {unmatched}" if unmatched else "")
        + (f"; without values: {unused}" if unused else "")
        + "."
    )
    findings.notes += on_map.notes
    findings.rows = findings.rows[has_polygon]
    cells = {n: taken(c, np.flatnonzero(has_polygon)) for n, c in table.items()}
    attributes = {
        n: taken(c, pair.place[has_polygon])
        for n, c in polygons.items()
        if n not in table and n != geometry.COLUMN
    }
    return (
        {**cells, **attributes, geometry.COLUMN: outlines},
        {pair.table, *attributes},
    )


def _listed(cells: Cells, where: np.ndarray) -> str:
    """Names of the selected rows for a note; "" if there are none."""
    names = list(dict.fromkeys(str(w) for w in cells.labels()[where] if w is not None))
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"


def _united(
    cells: Cells, places: np.ndarray, requested: np.ndarray, findings: Diagnostics, column: str
) -> Cells:
    """Outline of each requested place, the union of all polygons with its name."""
    shapely, _ = geometry.libraries(findings.file)
    by_name: dict[str, list[int]] = {}
    for i, word in enumerate(places):
        if word:
            by_name.setdefault(word, []).append(i)
    labels = cells.labels()
    several = {own[0]: own for own in by_name.values() if len(own) > 1}
    for first in set(requested.tolist()) & set(several):
        made, codes = geometry.parsed(labels[several[first]], findings.file)
        if len(set(codes.tolist())) == 1 and not shapely.is_missing(made).any():
            mark = f"SRID={codes[0]};" if codes[0] else ""
            labels[first] = mark + shapely.to_wkt(
                shapely.union_all(shapely.make_valid(made)), rounding_precision=15, trim=True
            )
    if several:
        findings.notes.append(
            f"{findings.file}: places of the map's column {column!r} with several polygons, which "
            f"were united: {len(several):,}."
        )
    text = pa.array(["" if w is None else w for w in labels[requested]], pa.string())
    return from_text(geometry.COLUMN, text)


def taken(cells: Cells, rows: np.ndarray) -> Cells:
    """Select rows of a column."""
    text = None if cells.text is None else cells.text.take(pa.array(rows))
    return Cells(cells.name, cells.values[rows], cells.empty[rows], cells.bad[rows], text)
