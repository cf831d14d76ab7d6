"""Several tables as one: each a task of its own, or values joined with a map of their places."""

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
from scant.tables.column_matching import key, listed, schema_names
from scant.tables.dates import are_dates
from scant.tables.guesses import is_time
from scant.tables.schema import Question, TableSchema
from scant.tables.wide import tasks

ALL = "*"  # the part of an archive that means all of its tables
_EAST, _NORTH = {"lon", "long", "lng", "longitude"}, {"lat", "latitude"}


@dataclass
class Member:
    """One of the tables.

    Attributes:
        findings: With its name and rows.
        cells: Its columns.
        mapping: Its headers to names of the schema, as `read_table` takes it.
        aside: Columns that are no values: keys of a join, attributes of a map.
    """

    findings: Diagnostics
    cells: dict[str, Cells]
    mapping: dict[str, str] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)

    @property
    def file(self) -> str:
        """What messages call it."""
        return self.findings.file


def with_polygons(
    members: Sequence[Member], join: tuple[str, str] | None
) -> tuple[list[Member], list[Question]]:
    """The same tables where there is no map; else each with polygons or points.

    A table of values without polygons is joined with the map, which is then no table of its own;
    one with longitudes and latitudes becomes points.

    Raises:
        BadInput: A table has neither, or there are several maps that it could belong to.
    """
    maps = [m for m in members if _outlined(m.cells)]
    rest = [m for m in members if not _outlined(m.cells)]
    if not maps or not rest:
        return list(members), []
    made: list[Member] = []
    questions: list[Question] = []
    joined_with: set[str] = set()
    for member in rest:
        found = [(m, joining.pairs(member.cells, _named(m.cells))) for m in maps]
        drawn, pairs = max(found, key=lambda f: f[1][0].score if f[1] else 0.0)
        best = pairs[0].share if pairs else 0.0
        if join is None and best < joining.LEAST and _as_points(member):
            made.append(member)
            continue
        pair, asked = joining.chosen(pairs, join, member.file, drawn.file)
        questions += asked[: 1 - len(questions)]
        member.cells, member.aside = joining.joined(
            pair, member.cells, member.findings, _named(drawn.cells), drawn.findings
        )
        joined_with.add(drawn.file)
        made.append(member)
    kept = [m for m in maps if m.file not in joined_with]
    return [*kept, *made], questions


def _outlined(cells: Mapping[str, Cells]) -> bool:
    return any(key(name) in _GEOMETRY for name in cells)


_GEOMETRY = {key(name) for name in (geometry.COLUMN, *geometry.ALIASES)}


def _named(cells: Mapping[str, Cells]) -> dict[str, Cells]:
    """The columns of a map, that of its geometries under our name for it."""
    own = next(name for name in cells if key(name) in _GEOMETRY)
    return {geometry.COLUMN if n == own else n: c for n, c in cells.items()}


def _as_points(member: Member) -> bool:
    """Make longitudes and latitudes points; whether the table has them."""
    pair = [next((n for n in member.cells if key(n) in names), "") for names in (_EAST, _NORTH)]
    if not all(pair):
        return False
    east, north = (member.cells.pop(n) for n in pair)
    text = [
        "" if np.isnan(x) or np.isnan(y) else f"SRID={geometry.DEGREES};POINT ({x!r} {y!r})"
        for x, y in zip(east.values.tolist(), north.values.tolist())
    ]
    member.cells[geometry.COLUMN] = from_text(geometry.COLUMN, pa.array(text, pa.string()))
    member.findings.notes.append(
        f"{member.file}: its columns {pair[0]!r} and {pair[1]!r} became points beside the polygons."
    )
    return True


def stacked(members: Sequence[Member], schema: TableSchema) -> Member:
    """One table below the other, each a task by its file's name where it names no tasks itself.

    Tables with the same headers keep them; others get the schema's names, and dimensions that are
    points in some and boxes in others become boxes.

    Raises:
        BadInput: A table lacks a dimension that another one has.
    """
    if len(members) == 1:
        return members[0]
    stems = _stems([m.file for m in members])
    own = schema_names(schema)
    named = all(_names_tasks(m) for m in members)
    same = all(set(m.cells) == set(members[0].cells) for m in members)
    origin: dict[tuple[str, str], str] = {}
    if not same or any(m.mapping != members[0].mapping for m in members):
        for member, stem in zip(members, stems):
            _name_task(member, stem)
            made = tasks(member.cells, member.findings.rows, member.mapping)
            member.cells, member.findings.rows, member.mapping = made
        _one_dimension(members, own)
        _check_dimensions(members, own)
        for member in members:
            origin |= {(member.file, to): n for n, to in member.mapping.items() if to}
            _rename(member, own)
        _as_boxes(members)
    for member, stem in zip(members, stems):
        _name_task(member, stem)
    names = dict.fromkeys(n for m in members for n in m.cells)
    sizes = [len(m.findings.rows) for m in members]
    cells = {n: below(n, [m.cells.get(n) for m in members], sizes) for n in names}
    findings = _together(members, sizes, origin)
    if not named:
        findings.notes.insert(
            0, f"{len(members)} files became tasks by their names: {listed(stems)}."
        )
    aside = set.union(*(m.aside for m in members))
    return Member(findings, cells, {}, aside)


def _names_tasks(member: Member) -> bool:
    return "task" in {member.mapping.get(n, n) for n in member.cells}


def _name_task(member: Member, stem: str) -> None:
    """Call the task of a table by its file's name where it does not name its tasks itself."""
    if not _names_tasks(member):
        word = pa.array([stem] * len(member.findings.rows), pa.string())
        member.cells["task"] = from_text("task", word)


def below(name: str, parts: Sequence[Cells | None], sizes: Sequence[int]) -> Cells:
    """Columns below each other; None is a column without a value, of its size."""
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
    """Files' names without endings, where these are different."""
    bare = [PurePath(f).name.partition(".")[0] or f for f in files]
    return bare if len(set(bare)) == len(bare) else list(files)


def _dimensions(member: Member, own: set[str]) -> dict[str, str]:
    """Headers of a table's dimensions beside a map's, each with its name without its end."""
    drawn = geometry.COLUMN in member.mapping.values()
    made = {}
    for name, cells in member.cells.items():
        to = member.mapping.get(name, name)
        end = to.endswith(("_lo", "_hi"))
        dated = are_dates(cells)
        if not to or to in own or (cells.is_text and not dated):
            continue
        if end or not drawn or dated or is_time(to):
            made[name] = to[:-3] if end else to
    return made


def _one_dimension(members: Sequence[Member], own: set[str]) -> None:
    """Tables of one dimension each, differently called, get the first one's name for it."""
    every = [set(_dimensions(m, own).values()) for m in members]
    if any(len(d) != 1 for d in every) or len(set.union(*every)) == 1:
        return
    first = next(iter(every[0]))
    for member, (other,) in zip(members[1:], every[1:]):
        if other == first:
            continue
        for name in _dimensions(member, own):
            to = member.mapping.get(name, name)
            member.mapping[name] = first + (to[-3:] if to.endswith(("_lo", "_hi")) else "")
        member.findings.notes.append(
            f"{member.file}: its dimension {other!r} was taken for {first!r} of {members[0].file}."
        )


def _check_dimensions(members: Sequence[Member], own: set[str]) -> None:
    every = {m.file: set(_dimensions(m, own).values()) for m in members}
    drawn = {m.file for m in members if geometry.COLUMN in m.mapping.values()}
    for file, dims in every.items():
        for other, theirs in every.items():
            if lost := sorted(theirs - dims):
                raise BadInput(
                    f"{file} has no dimension {lost[0]!r}, which {other} has; add a column for it, "
                    "name the two alike, or bring each file alone."
                )
        if drawn and file not in drawn:
            raise BadInput(
                f"{file} has no polygons, and {next(iter(drawn))} has; give all files polygons, "
                "points or names of polygons."
            )


def _rename(member: Member, own: set[str]) -> None:
    """Columns under the schema's names; others keep theirs unless these are taken."""
    named = {to: n for n, to in member.mapping.items() if to and to != n and n in member.cells}
    made = {to: replace(member.cells[n], name=to) for to, n in named.items()}
    for name, cells in member.cells.items():
        if name not in named.values() and name not in made and member.mapping.get(name, name):
            made[name] = cells
    member.cells, member.mapping = made, {}
    member.aside &= set(made)


def _as_boxes(members: Sequence[Member]) -> None:
    """Points of a dimension that has bounds in another table are boxes without width."""
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
    found = Diagnostics(
        f"{', '.join(files[:2])}{more}" if more else " and ".join(files),
        np.concatenate([m.findings.rows for m in members]),
        files=np.repeat(np.array(files, dtype=object), sizes),
        origin=origin,
    )
    for member in members:
        found.problems += member.findings.problems
        found.notes += member.findings.notes
        found.closed |= member.findings.closed
    return found
