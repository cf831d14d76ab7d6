"""From files and data frames to columns: archives of several tables, intervals, wide tables.

What is opened here is assembled, with the answers to questions on columns, in `scant.tables.read`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa

from scant.errors import BadInput
from scant.tables.assembly import suggested
from scant.tables.cells import Cells, from_series, from_texts
from scant.tables.checks import Diagnostics
from scant.tables.choices import choose
from scant.tables.column_matching import listed, schema_names
from scant.tables.csv_parser import parse
from scant.tables.formats import files
from scant.tables.formats.packed import tables_of
from scant.tables.geometry import words
from scant.tables.guesses import Guesses
from scant.tables.intervals import bounds
from scant.tables.levels import Levels
from scant.tables.number_style import number_style
from scant.tables.profile import profile
from scant.tables.questions import decimal_question, part_question, tables_question
from scant.tables.schema import ColumnPreview, Question, TableSchema
from scant.tables.several import ALL, Member, stacked, with_polygons
from scant.tables.wide import long_form


class Answers(TypedDict, total=False):
    """What only the user knows of a table.

    Attributes:
        missing_codes: Numbers that mean "not measured", such as -99; in all columns, or by header.
        decimal: "." or ",": the decimal mark of numbers in text; None: as the file shows.
        levels: Text columns that are inputs, with their levels; None: those of few levels.
        columns: Names of the schema, each with the header that is taken for it, several headers
            ("y": each is a task of its own), or "" where no column is.
        closed: Whether intervals such as 15-19 include their upper ends, by header.
        join: Headers, of a table and of a map, that name the same places; None: those whose values
            are alike.
    """

    missing_codes: Sequence[float] | Mapping[str, Sequence[float]]
    decimal: str | None
    levels: Levels | None
    columns: Mapping[str, str | Sequence[str]]
    closed: Mapping[str, bool]
    join: tuple[str, str] | None


class Reading(Answers, total=False):
    """How a table is read.

    Attributes:
        mapping: The table's column names to the schema's, "" to leave one out; names that it lacks
            stay as they are. None: as `inspect_table` suggests.
        target: The target column where the schema leaves it to a setting.
        purpose: "fit", or "predict": then no target is needed, no row or column is dropped.
        features: For "predict": the columns that the model was trained on.
        part: Which sheet of a workbook, file of a ZIP or table of an HDF5 file; the first. "*",
            where a study takes boxes: all tables of a ZIP, as tasks or joined with a map.
    """

    mapping: Mapping[str, str] | None
    target: str | None
    purpose: str
    features: Sequence[str] | None
    part: str


@dataclass
class Opened:
    """The columns of a file, what is wrong with them, and what cannot be known."""

    cells: dict[str, Cells]
    findings: Diagnostics
    questions: list[Question]
    aside: set[str] = field(default_factory=set)  # columns that are no values
    settled: bool = False  # answers on columns of several files were taken for each of them


def suggestion_of(
    opened: Opened,
    schema: TableSchema,
    reading: Reading,
    columns: Mapping[str, ColumnPreview] | None = None,
) -> tuple[dict[str, str], Guesses]:
    """What the columns are, as somebody has said or else by name and by what they hold."""
    columns = columns or {n: profile(c) for n, c in opened.cells.items()}
    mapping, guesses = suggested(columns, schema, reading.get("purpose", "fit"), opened.aside)
    for known, headers in reading.get("columns", {}).items():
        if known not in schema_names(schema):
            raise BadInput(
                f"There is no column {known!r} in this study; it has "
                f"{listed([c.name for c in schema.columns])}."
            )
        names = [headers] if isinstance(headers, str) else list(headers)
        lost = [n for n in names if n and n not in columns]
        if lost and opened.settled:
            continue
        if lost:
            raise BadInput(
                f"{opened.findings.file} has no column {lost[0]!r} to take for {known!r}; it has "
                f"{listed(list(columns))}."
            )
        mapping = choose(mapping, columns, schema, known, [n for n in names if n])
        guesses.unsure = {
            n: to for n, to in guesses.unsure.items() if to != known and n not in names
        }
        guesses.questions = [q for q in guesses.questions if q.column != known]
    return mapping, guesses


def opened_file(
    source: Path | bytes, file: str, schema: TableSchema, limit_bytes: int, reading: Reading
) -> Opened:
    """The columns of a file; of an archive of tables, where a study takes several, of all."""
    part = reading.get("part", "")
    inside = tables_of(source, file, limit_bytes) if schema.boxes else []
    if len(inside) < 2 or reading.get("purpose", "fit") != "fit":
        return _open_one(source, file, schema, limit_bytes, reading)
    named = dict(inside)
    if part in ("", ALL):
        made, guess = opened_together(inside, schema, limit_bytes, reading), ALL
    elif part in named:
        made, guess = _open_one(named[part], part, schema, limit_bytes, _whole(reading)), part
    else:
        raise BadInput(f"{file} has no file {part!r}; it has {listed(list(named))}.")
    asked = [q for q in made.questions if q.about != "part"]  # of a layer inside
    made.questions = [tables_question(list(named), guess), *asked]
    return made


def opened_together(
    files: Sequence[tuple[str, Path | bytes]],
    schema: TableSchema,
    limit_bytes: int,
    reading: Reading,
) -> Opened:
    """Several tables as one."""
    questions: list[Question] = []
    members = []
    for name, source in files:
        one = _open_one(source, name, schema, limit_bytes, _whole(reading))
        questions += [q for q in one.questions if q.about not in {p.about for p in questions}]
        members.append(Member(one.findings, one.cells))
    _check_answers(members, reading)
    members, asked = with_polygons(members, reading.get("join"))
    for member in members if len(members) > 1 else ():
        own = Opened(member.cells, member.findings, [], member.aside)
        there: dict[str, str | Sequence[str]] = {}
        for known, headers in reading.get("columns", {}).items():
            names = [headers] if isinstance(headers, str) else headers
            if here := [n for n in names if n in member.cells or not n]:
                there[known] = here
        mapping, guesses = suggestion_of(own, schema, {"columns": there})
        member.mapping = mapping | guesses.unsure
    made = stacked(members, schema)
    settled = len(members) > 1
    return Opened(made.cells, made.findings, [*asked, *questions], made.aside, settled)


def _check_answers(members: Sequence[Member], reading: Reading) -> None:
    """Refuse headers that none of several files has."""
    there = {n for m in members for n in m.cells}
    for known, headers in reading.get("columns", {}).items():
        for name in [headers] if isinstance(headers, str) else headers:
            if name and name not in there:
                raise BadInput(f"No file has a column {name!r} to take for {known!r}; rename it.")


def _whole(reading: Reading) -> Reading:
    """How one of several tables is read: the part that was chosen is not its own."""
    return Reading(**{k: v for k, v in reading.items() if k != "part"})  # type: ignore[typeddict-item]


def _open_one(
    source: Path | bytes, file: str, schema: TableSchema, limit_bytes: int, reading: Reading
) -> Opened:
    content = files.read(source, file, part=reading.get("part", ""), limit_bytes=limit_bytes)
    questions = [part_question(content)] if content.parts else []
    notes = list(content.notes)
    if isinstance(content.table, pd.DataFrame):
        cells = columns_of(content.table, file, schema.maximum_columns)
        findings = Diagnostics(file, np.arange(2, len(content.table) + 2), notes=notes)
    else:
        assert isinstance(content.table, str)
        raw = parse(content.table, file, schema.maximum_columns)
        del content
        pa.default_memory_pool().release_unused()  # what the parser had, several times the file
        texts = dict(zip(raw.names, raw.columns))
        style = number_style(texts, raw.delimiter, reading.get("decimal"))
        findings = Diagnostics(file, raw.rows, notes=[*notes, *raw.notes])
        if style.note:
            findings.notes.append(style.note)
        cells = from_texts(texts, style)
        if style.unsure is not None:
            column, at = style.unsure
            cell = cells[column].shown(at)
            if style.mixed:
                findings.problems.append(
                    f"{file}, column {column!r}, row {raw.rows[at]}: got {cell!r}, and nothing "
                    "tells whether its comma is a decimal point; write numbers without commas."
                )
            else:
                questions.append(decimal_question(column, cell, style.decimal))
    return prepared(cells, findings, questions, schema, reading)


def prepared(
    cells: dict[str, Cells],
    findings: Diagnostics,
    questions: list[Question],
    schema: TableSchema,
    reading: Reading,
) -> Opened:
    """Columns in the form that is assembled: intervals as bounds, wide tables turned long."""
    _note_empty(cells, findings)
    if schema.boxes:
        cells, asked = bounds(cells, findings, reading.get("closed", {}))
        questions = [*questions, *asked]
    cells = _turned(cells, findings, schema, reading)
    return Opened(cells, findings, questions)


def columns_of(frame: pd.DataFrame, name: str, maximum_columns: int) -> dict[str, Cells]:
    """The columns of a data frame, by their names as text.

    Raises:
        BadInput: No data, too many columns, or a name that is there twice.
    """
    names = [str(c) for c in frame.columns]
    if not len(frame) or not names:
        raise BadInput(f"{name} has {len(frame)} rows and {len(names)} columns; give data.")
    twice = [n for n in names if names.count(n) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise BadInput(f"{name} has the column {twice[0]!r} twice; rename one of them.")
    if len(names) > maximum_columns:
        raise BadInput(
            f"{name} has {len(names):,} columns and the limit is {maximum_columns:,}; "
            "keep the columns you need."
        )
    return {n: from_series(n, words(frame.iloc[:, i])) for i, n in enumerate(names)}


def _turned(
    cells: dict[str, Cells], findings: Diagnostics, schema: TableSchema, reading: Reading
) -> dict[str, Cells]:
    """The columns of a wide table turned long, where the study takes replicas; others as they are.

    A mapping of the file's own columns says that it is long already.
    """
    long = set(reading.get("mapping") or ()) & set(cells)
    if not schema.replicas or reading.get("purpose", "fit") != "fit" or long:
        return cells
    turned = long_form(cells, findings.rows, schema)
    if turned is None:
        return cells
    cells, findings.rows, message = turned
    findings.notes.append(f"{findings.file}: {message}.")
    return cells


def _note_empty(cells: Mapping[str, Cells], findings: Diagnostics) -> None:
    """Say which unusual words were read as empty cells."""
    odd = sorted({word for column in cells.values() for word in column.odd_words()})
    if odd:
        named = ", ".join(map(repr, odd))
        findings.notes.append(f"{findings.file}: {named} was read as an empty cell.")
