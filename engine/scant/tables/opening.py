"""Opening of files and data frames as columns: archives, intervals and wide tables.

`scant.tables.read` assembles the opened columns with the answers to questions.
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
from scant.tables.renaming import suggested
from scant.tables.schema import ColumnPreview, Question, TableSchema
from scant.tables.several import ALL, Member, stacked, with_polygons
from scant.tables.wide import long_form


class Answers(TypedDict, total=False):
    """User's answers to questions on a table.

    Attributes:
        missing_codes: Numbers that mean "not measured", such as -99; for all columns, or by header.
        decimal: Decimal mark of numbers in text, "." or ","; None to detect it.
        levels: Text columns to use as inputs, with their levels; None for columns with few levels.
        columns: Header by name in the schema; several headers for one task each (only "y"), or ""
            for no column.
        closed: By header, True if intervals such as 15-19 include their upper bounds.
        join: Headers in a table and in a map with the same identifiers; None to detect them.
    """

    missing_codes: Sequence[float] | Mapping[str, Sequence[float]]
    decimal: str | None
    levels: Levels | None
    columns: Mapping[str, str | Sequence[str]]
    closed: Mapping[str, bool]
    join: tuple[str, str] | None


class Reading(Answers, total=False):
    """Options for reading a table.

    Attributes:
        mapping: Name in the schema by header, "" to leave a column out; other headers are kept.
            None for the suggestion of `inspect_table`.
        target: Name of the target column if the schema leaves it to a setting.
        purpose: "fit", or "predict" for a table without target whose rows and columns are all kept.
        features: Columns that the model was trained on, for "predict".
        part: Sheet of a workbook, file of a ZIP or table of an HDF5 file; by default the first.
            "*" for all tables of a ZIP, as tasks or joined with a map, if the study takes boxes.
    """

    mapping: Mapping[str, str] | None
    target: str | None
    purpose: str
    features: Sequence[str] | None
    part: str


@dataclass
class Opened:
    """Columns of a file with the problems found and the questions to the user."""

    cells: dict[str, Cells]
    findings: Diagnostics
    questions: list[Question]
    aside: set[str] = field(default_factory=set)  # columns that hold no values to learn from
    settled: bool = False  # whether the answers on columns were already applied, file by file


def suggestion_of(
    opened: Opened,
    schema: TableSchema,
    reading: Reading,
    columns: Mapping[str, ColumnPreview] | None = None,
) -> tuple[dict[str, str], Guesses]:
    """Map columns to the schema by the user's answers, else by name and content."""
    columns = columns or {n: profile(c) for n, c in opened.cells.items()}
    mapping, guesses = suggested(columns, schema, reading.get("purpose", "fit"), opened.aside)
    for role, headers in reading.get("columns", {}).items():
        if role not in schema_names(schema):
            raise BadInput(
                f"There is no column {role!r} in this study; it has "
                f"{listed([c.name for c in schema.columns])}."
            )
        names = [headers] if isinstance(headers, str) else list(headers)
        missing = [n for n in names if n and n not in columns]
        if missing and opened.settled:
            continue
        if missing:
            raise BadInput(
                f"{opened.findings.file} has no column {missing[0]!r} to take for {role!r}; it has "
                f"{listed(list(columns))}."
            )
        mapping = choose(mapping, columns, schema, role, [n for n in names if n])
        guesses.uncertain = {
            n: to for n, to in guesses.uncertain.items() if to != role and n not in names
        }
        guesses.questions = [q for q in guesses.questions if q.column != role]
    return mapping, guesses


def opened_file(
    source: Path | bytes, file: str, schema: TableSchema, limit_bytes: int, reading: Reading
) -> Opened:
    """Open the columns of a file, or of all tables in an archive if the study takes several."""
    part = reading.get("part", "")
    tables = tables_of(source, file, limit_bytes) if schema.boxes else []
    if len(tables) < 2 or reading.get("purpose", "fit") != "fit":
        return _open_one(source, file, schema, limit_bytes, reading)
    sources = dict(tables)
    if part in ("", ALL):
        opened, guess = opened_together(tables, schema, limit_bytes, reading), ALL
    elif part in sources:
        opened, guess = _open_one(sources[part], part, schema, limit_bytes, _whole(reading)), part
    else:
        raise BadInput(f"{file} has no file {part!r}; it has {listed(list(sources))}.")
    others = [q for q in opened.questions if q.about != "part"]  # questions on a layer in a table
    opened.questions = [tables_question(list(sources), guess), *others]
    return opened


def opened_together(
    files: Sequence[tuple[str, Path | bytes]],
    schema: TableSchema,
    limit_bytes: int,
    reading: Reading,
) -> Opened:
    """Open several files as one table."""
    questions: list[Question] = []
    members = []
    for name, source in files:
        opened = _open_one(source, name, schema, limit_bytes, _whole(reading))
        questions += [q for q in opened.questions if q.about not in {p.about for p in questions}]
        members.append(Member(opened.findings, opened.cells))
    _check_answers(members, reading)
    members, join_questions = with_polygons(members, reading.get("join"))
    for member in members if len(members) > 1 else ():
        own = Opened(member.cells, member.findings, [], member.aside)
        answers: dict[str, str | Sequence[str]] = {}
        for role, headers in reading.get("columns", {}).items():
            names = [headers] if isinstance(headers, str) else headers
            if present := [n for n in names if n in member.cells or not n]:
                answers[role] = present
        mapping, guesses = suggestion_of(own, schema, {"columns": answers})
        member.mapping = mapping | guesses.uncertain
    table = stacked(members, schema)
    settled = len(members) > 1
    return Opened(table.cells, table.findings, [*join_questions, *questions], table.aside, settled)


def _check_answers(members: Sequence[Member], reading: Reading) -> None:
    """Raise `BadInput` for an answer that names a column in none of the files."""
    present = {n for m in members for n in m.cells}
    for role, headers in reading.get("columns", {}).items():
        for name in [headers] if isinstance(headers, str) else headers:
            if name and name not in present:
                raise BadInput(f"No file has a column {name!r} to take for {role!r}; rename it.")


def _whole(reading: Reading) -> Reading:
    """Return the options without `part`, for one of several tables."""
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
        pa.default_memory_pool().release_unused()  # several times the file size
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
    """Convert intervals to bounds and wide tables to long ones before the assembly."""
    _note_empty(cells, findings)
    if schema.boxes:
        cells, interval_questions = bounds(cells, findings, reading.get("closed", {}))
        questions = [*questions, *interval_questions]
    cells = _turned(cells, findings, schema, reading)
    return Opened(cells, findings, questions)


def columns_of(frame: pd.DataFrame, name: str, maximum_columns: int) -> dict[str, Cells]:
    """Return the columns of a data frame by name.

    Raises:
        BadInput: There are no data, too many columns, or duplicate names.
    """
    names = [str(c) for c in frame.columns]
    if not len(frame) or not names:
        raise BadInput(f"{name} has {len(frame)} rows and {len(names)} columns; give data.")
    duplicates = [n for n in names if names.count(n) > 1] if len(set(names)) < len(names) else []
    if duplicates:
        raise BadInput(f"{name} has the column {duplicates[0]!r} twice; rename one of them.")
    if len(names) > maximum_columns:
        raise BadInput(
            f"{name} has {len(names):,} columns and the limit is {maximum_columns:,}; "
            "keep the columns you need."
        )
    return {n: from_series(n, words(frame.iloc[:, i])) for i, n in enumerate(names)}


def _turned(
    cells: dict[str, Cells], findings: Diagnostics, schema: TableSchema, reading: Reading
) -> dict[str, Cells]:
    """Convert a wide table to a long one if the study takes replicas.

    A table for which the user maps columns is long already.
    """
    long = set(reading.get("mapping") or ()) & set(cells)
    if not schema.replicas or reading.get("purpose", "fit") != "fit" or long:
        return cells
    converted = long_form(cells, findings.rows, schema)
    if converted is None:
        return cells
    cells, findings.rows, message = converted
    findings.notes.append(f"{findings.file}: {message}.")
    return cells


def _note_empty(cells: Mapping[str, Cells], findings: Diagnostics) -> None:
    """Add a note on unusual words that were read as empty cells."""
    odd = sorted({word for column in cells.values() for word in column.odd_words()})
    if odd:
        words = ", ".join(map(repr, odd))
        findings.notes.append(f"{findings.file}: {words} was read as an empty cell.")
