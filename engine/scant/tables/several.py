"""Combination of several tables: one task for each table, or values joined with a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import numpy as np
import pyarrow as pa

from scant.errors import BadInput
from scant.tables import geometry, joining
from scant.tables.cells import Cells, from_text
from scant.tables.checks import Diagnostics
from scant.tables.column_kinds import is_time
from scant.tables.column_matching import listed, schema_names
from scant.tables.dates import are_dates
from scant.tables.headers import key
from scant.tables.schema import Question, TableSchema
from scant.tables.wide import tasks

ALL = "*"  # value of `part` for all tables of an archive
_LONGITUDES, _LATITUDES = {"lon", "long", "lng", "longitude"}, {"lat", "latitude"}


@dataclass
class Member:
    """One of several tables.

    Attributes:
        findings: Problems and notes, with the file name and row numbers.
        cells: Columns by header.
        mapping: Name in the schema by header, as in `read_table`.
        aside: Columns that hold no values to learn from: keys of a join, attributes of a map.
    """

    findings: Diagnostics
    cells: dict[str, Cells]
    mapping: dict[str, str] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)

    @property
    def file(self) -> str:
        """Name of the file for messages."""
        return self.findings.file


def with_polygons(
    members: Sequence[Member], join: tuple[str, str] | None
) -> tuple[list[Member], list[Question]]:
    """Add polygons from a map, or points, to the tables without geometries.

    Tables are joined with the best matching map by identifiers, else get points from their
    longitudes and latitudes. A joined map is removed from the tables. Without a map the tables are
    returned unchanged.

    Raises:
        BadInput: A table has neither identifiers nor coordinates, or matches several maps.
    """
    maps = [m for m in members if _outlined(m.cells)]
    others = [m for m in members if not _outlined(m.cells)]
    if not maps or not others:
        return list(members), []
    completed: list[Member] = []
    questions: list[Question] = []
    joined_with: set[str] = set()
    for member in others:
        found = [(m, joining.pairs(member.cells, _named(m.cells))) for m in maps]
        map_table, pairs = max(found, key=lambda f: f[1][0].score if f[1] else 0.0)
        best = pairs[0].share if pairs else 0.0
        if join is None and best < joining.MIN_SHARE and _as_points(member):
            completed.append(member)
            continue
        pair, join_questions = joining.select_pair(pairs, join, member.file, map_table.file)
        questions += join_questions[: 1 - len(questions)]
        member.cells, member.aside = joining.joined(
            pair, member.cells, member.findings, _named(map_table.cells), map_table.findings
        )
        joined_with.add(map_table.file)
        completed.append(member)
    unused_maps = [m for m in maps if m.file not in joined_with]
    return [*unused_maps, *completed], questions


def _outlined(cells: Mapping[str, Cells]) -> bool:
    return any(key(name) in _GEOMETRY for name in cells)


_GEOMETRY = {key(name) for name in (geometry.COLUMN, *geometry.ALIASES)}


def _named(cells: Mapping[str, Cells]) -> dict[str, Cells]:
    """Return the columns of a map with the geometries under their name in the schema."""
    header = next(name for name in cells if key(name) in _GEOMETRY)
    return {geometry.COLUMN if n == header else n: c for n, c in cells.items()}


def _as_points(member: Member) -> bool:
    """Convert longitude and latitude columns to points; return False if there are none."""
    pair = [
        next((n for n in member.cells if key(n) in names), "")
        for names in (_LONGITUDES, _LATITUDES)
    ]
    if not all(pair):
        return False
    longitudes, latitudes = (member.cells.pop(n) for n in pair)
    text = [
        "" if np.isnan(x) or np.isnan(y) else f"SRID={geometry.DEGREES};POINT ({x!r} {y!r})"
        for x, y in zip(longitudes.values.tolist(), latitudes.values.tolist())
    ]
    member.cells[geometry.COLUMN] = from_text(geometry.COLUMN, pa.array(text, pa.string()))
    member.findings.notes.append(
        f"{member.file}: its columns {pair[0]!r} and {pair[1]!r} became points beside the polygons."
    )
    return True


def stacked(members: Sequence[Member], schema: TableSchema) -> Member:
    """Concatenate tables; a table without a task column is one task, named by its file.

    Tables with different headers are renamed to the schema, and a dimension with points in some
    tables and boxes in others gets boxes.

    Raises:
        BadInput: A table lacks a dimension that another one has.
    """
    if len(members) == 1:
        return members[0]
    stems = _stems([m.file for m in members])
    schema_columns = schema_names(schema)
    all_named = all(_names_tasks(m) for m in members)
    same_headers = all(set(m.cells) == set(members[0].cells) for m in members)
    origin: dict[tuple[str, str], str] = {}
    if not same_headers or any(m.mapping != members[0].mapping for m in members):
        for member, stem in zip(members, stems):
            _name_task(member, stem)
            converted = tasks(member.cells, member.findings.rows, member.mapping)
            member.cells, member.findings.rows, member.mapping = converted
        _one_dimension(members, schema_columns)
        _check_dimensions(members, schema_columns)
        for member in members:
            origin |= {(member.file, to): n for n, to in member.mapping.items() if to}
            _rename(member, schema_columns)
        _as_boxes(members)
    for member, stem in zip(members, stems):
        _name_task(member, stem)
    names = dict.fromkeys(n for m in members for n in m.cells)
    sizes = [len(m.findings.rows) for m in members]
    cells = {n: below(n, [m.cells.get(n) for m in members], sizes) for n in names}
    findings = _together(members, sizes, origin)
    if not all_named:
        findings.notes.insert(
            0, f"{len(members)} files became tasks by their names: {listed(stems)}."
        )
    aside = set.union(*(m.aside for m in members))
    return Member(findings, cells, {}, aside)


def _names_tasks(member: Member) -> bool:
    return "task" in {member.mapping.get(n, n) for n in member.cells}


def _name_task(member: Member, stem: str) -> None:
    """Add a task column with the file name to a table without one."""
    if not _names_tasks(member):
        word = pa.array([stem] * len(member.findings.rows), pa.string())
        member.cells["task"] = from_text("task", word)


def below(name: str, parts: Sequence[Cells | None], sizes: Sequence[int]) -> Cells:
    """Concatenate columns; None stands for `sizes[i]` empty cells."""
    as_text = any(p is not None and p.text is not None for p in parts)
    texts = [_text(p, n) for p, n in zip(parts, sizes)] if as_text else []
    return Cells(
        name,
        np.concatenate(
            [np.full(n, np.nan) if p is None else p.values for p, n in zip(parts, sizes)]
        ),
        np.concatenate(
            [np.ones(n, dtype=bool) if p is None else p.empty for p, n in zip(parts, sizes)]
        ),
        np.concatenate(
            [np.zeros(n, dtype=bool) if p is None else p.bad for p, n in zip(parts, sizes)]
        ),
        pa.concat_arrays(texts) if as_text else None,
    )


def _text(cells: Cells | None, size: int) -> pa.StringArray:
    if cells is None:
        return pa.array([""] * size, pa.string())
    if cells.text is not None:
        return cells.text
    return pa.array(["" if w is None else str(w) for w in cells.labels()], pa.string())


def _stems(files: Sequence[str]) -> list[str]:
    """Return file names without extensions, or in full if these are not unique."""
    stems = [PurePath(f).name.partition(".")[0] or f for f in files]
    return stems if len(set(stems)) == len(stems) else list(files)


def _dimensions(member: Member, own: set[str]) -> dict[str, str]:
    """Return the dimension of each header; with a map only of bounds, dates and times."""
    has_map = geometry.COLUMN in member.mapping.values()
    dimensions = {}
    for name, cells in member.cells.items():
        to = member.mapping.get(name, name)
        is_bound = to.endswith(("_lo", "_hi"))
        is_date = are_dates(cells)
        if not to or to in own or (cells.is_text and not is_date):
            continue
        if is_bound or not has_map or is_date or is_time(to):
            dimensions[name] = to[:-3] if is_bound else to
    return dimensions


def _one_dimension(members: Sequence[Member], own: set[str]) -> None:
    """Rename the dimension of one-dimensional tables to that of the first table."""
    dimensions = [set(_dimensions(m, own).values()) for m in members]
    if any(len(d) != 1 for d in dimensions) or len(set.union(*dimensions)) == 1:
        return
    first = next(iter(dimensions[0]))
    for member, (other,) in zip(members[1:], dimensions[1:]):
        if other == first:
            continue
        for name in _dimensions(member, own):
            to = member.mapping.get(name, name)
            member.mapping[name] = first + (to[-3:] if to.endswith(("_lo", "_hi")) else "")
        member.findings.notes.append(
            f"{member.file}: its dimension {other!r} was taken for {first!r} of {members[0].file}."
        )


def _check_dimensions(members: Sequence[Member], own: set[str]) -> None:
    dimensions = {m.file: set(_dimensions(m, own).values()) for m in members}
    with_map = {m.file for m in members if geometry.COLUMN in m.mapping.values()}
    for file, present in dimensions.items():
        for other, needed in dimensions.items():
            if lost := sorted(needed - present):
                raise BadInput(
                    f"{file} has no dimension {lost[0]!r}, which {other} has; add a column for it, "
                    "name the two alike, or upload each file alone."
                )
        if with_map and file not in with_map:
            raise BadInput(
                f"{file} has no polygons, but {next(iter(with_map))} has; give all files polygons, "
                "points or names of polygons."
            )


def _rename(member: Member, own: set[str]) -> None:
    """Rename columns to the schema; others keep their names unless these are taken."""
    headers = {to: n for n, to in member.mapping.items() if to and to != n and n in member.cells}
    renamed = {to: replace(member.cells[n], name=to) for to, n in headers.items()}
    for name, cells in member.cells.items():
        if name not in headers.values() and name not in renamed and member.mapping.get(name, name):
            renamed[name] = cells
    member.cells, member.mapping = renamed, {}
    member.aside &= set(renamed)


def _as_boxes(members: Sequence[Member]) -> None:
    """Convert points to boxes of zero width in dimensions with bounds in another table."""
    bounded = {n[:-3] for m in members for n in m.cells if n.endswith("_lo")}
    for member in members:
        for dim in bounded & set(member.cells):
            point = member.cells.pop(dim)
            for end in ("lo", "hi"):
                member.cells[f"{dim}_{end}"] = replace(point, name=f"{dim}_{end}")


def _together(
    members: Sequence[Member], sizes: Sequence[int], origin: dict[tuple[str, str], str]
) -> Diagnostics:
    files = [m.file for m in members]
    more = f" and {len(files) - 2} more" if len(files) > 2 else ""
    findings = Diagnostics(
        f"{', '.join(files[:2])}{more}" if more else " and ".join(files),
        np.concatenate([m.findings.rows for m in members]),
        files=np.repeat(np.array(files, dtype=object), sizes),
        origin=origin,
    )
    for member in members:
        findings.problems += member.findings.problems
        findings.notes += member.findings.notes
        findings.closed |= member.findings.closed
    return findings
