"""Reading a user's table: file or data frame in, checked numbers and plain sentences out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
from scant.errors import BadInput
from scant.tables import column_matching
from scant.tables.assembly import assemble, suggested
from scant.tables.cells import Cells, from_series, from_texts
from scant.tables.checks import Diagnostics
from scant.tables.csv_parser import parse
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats import files
from scant.tables.levels import LEVELS, Levels
from scant.tables.number_style import number_style
from scant.tables.profile import profile
from scant.tables.questions import decimal_question, missing_question, part_question
from scant.tables.schema import Preview, Question, Table, TableSchema, counts
from scant.tables.wide import long_form

MOST_PROBLEMS = 20
_HEAD = 8  # rows of a preview


class Answers(TypedDict, total=False):
    """What only the user knows of a table.

    Attributes:
        missing_codes: Numbers that mean "not measured", such as -99; in all columns, or by header.
        decimal: "." or ",": the decimal mark of numbers in text; None: as the file shows.
        levels: Text columns that are inputs, with their levels; None: those of few levels.
    """

    missing_codes: Sequence[float] | Mapping[str, Sequence[float]]
    decimal: str | None
    levels: Levels | None


class Reading(Answers, total=False):
    """How a table is read.

    Attributes:
        mapping: The table's column names to the schema's, "" to leave one out; names that it lacks
            stay as they are. None: as `inspect_table` suggests.
        target: The target column where the schema leaves it to a setting.
        purpose: "fit", or "predict": then no target is needed, no row or column is dropped.
        features: For "predict": the columns that the model was trained on.
        part: Which sheet of a workbook, file of a ZIP or table of an HDF5 file; the first.
    """

    mapping: Mapping[str, str] | None
    target: str | None
    purpose: str
    features: Sequence[str] | None
    part: str


def read_table(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    limit_bytes: int = LIMIT_BYTES,
    **reading: Unpack[Reading],
) -> Table:
    """A file of any known format as a table that can be fitted, or predicted.

    Args:
        source: A path or the file's bytes.
        schema: What the study takes.
        name: What messages call the file; a path's own name by default.
        limit_bytes: Larger files are refused before they are read.
        **reading: How it is read.

    Raises:
        BadInput: The first problem, and how many more there are.
    """
    file = name or (source.name if isinstance(source, Path) else "file.csv")
    opened = _open(source, file, schema, limit_bytes, reading)
    table = assemble(opened.cells, schema, opened.findings, **_assembling(reading))
    _raise(opened.findings)
    return table


def read_frame(
    frame: pd.DataFrame,
    schema: TableSchema,
    *,
    name: str = "the table",
    **reading: Unpack[Reading],
) -> Table:
    """A data frame, checked as a file is; messages count rows from 0.

    Raises:
        BadInput: The first problem, and how many more there are.
    """
    cells = columns_of(frame, name, schema.maximum_columns)
    findings = Diagnostics(name, np.arange(len(frame)))
    _note_empty(cells, findings)
    cells = _turned(cells, findings, schema, reading)
    table = assemble(cells, schema, findings, **_assembling(reading))
    _raise(findings)
    return table


def inspect_table(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    limit_bytes: int = LIMIT_BYTES,
    **reading: Unpack[Reading],
) -> Preview:
    """What the upload wizard shows: never raises for a bad file, says what is wrong instead.

    Unsure guesses are taken, each with a question. Arguments are those of `read_table`.
    """
    file = name or (source.name if isinstance(source, Path) else "file.csv")
    try:
        opened = _open(source, file, schema, limit_bytes, reading)
    except BadInput as error:
        return Preview(problems=(str(error),))
    cells, findings, questions = opened.cells, opened.findings, list(opened.questions)
    aimed, mapping = schema.with_target(reading.get("target")), reading.get("mapping")
    columns, suggestion = {n: profile(c) for n, c in cells.items()}, None
    if mapping is None:
        suggestion = suggested(columns, aimed, reading.get("purpose", "fit"))
        mapping, guesses = suggestion[0], suggestion[1]
        questions += guesses.questions
        rival = column_matching.rival_target(list(cells), aimed)
        if rival is not None:
            findings.notes.append(
                f"{file} has both {aimed.targets[0]!r}, which looks like a magnitude, and "
                f"{rival!r}: {rival!r} is taken for the target; choose another column where it is "
                "not."
            )
        if rival is not None or guesses.unsure:  # what is on show can be agreed to
            mapping |= guesses.unsure
            reading["mapping"] = mapping
    if "missing_codes" not in reading and (missing := missing_question(cells, mapping)):
        questions += missing
        reading["missing_codes"] = missing[0].guess
    n_rows = len(findings.rows)
    table = assemble(cells, schema, findings, suggestion=suggestion, **_assembling(reading))
    head = [[c.shown(i) for i in range(min(_HEAD, len(c.values)))] for c in cells.values()]
    return Preview(
        names=tuple(cells),
        head=tuple(zip(*head)),
        columns=tuple(columns.values()),
        n_rows=n_rows,
        mapping=dict(mapping),
        problems=tuple(findings.problems[:MOST_PROBLEMS]),
        warnings=tuple(findings.notes),
        absent=tuple(findings.absent),
        features=table.features,
        levels=table.reading.get(LEVELS, {}),
        counts=counts(table.frame, aimed),
        questions=tuple(questions),
    )


@dataclass
class _Opened:
    """The columns of a file, what is wrong with them, and what cannot be known."""

    cells: dict[str, Cells]
    findings: Diagnostics
    questions: list[Question]


def _open(
    source: Path | bytes, file: str, schema: TableSchema, limit_bytes: int, reading: Reading
) -> _Opened:
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
    _note_empty(cells, findings)
    cells = _turned(cells, findings, schema, reading)
    return _Opened(cells, findings, questions)


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
    return {n: from_series(n, frame.iloc[:, i]) for i, n in enumerate(names)}


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


def _assembling(reading: Reading) -> dict[str, Any]:
    """What of it is for columns, and not for the file."""
    return {k: v for k, v in reading.items() if k not in ("part", "decimal")}


def _raise(findings: Diagnostics) -> None:
    problems = findings.problems
    if problems:
        more = len(problems) - 1
        also = f" (And {more} more problem{'s' if more > 1 else ''}.)" if more else ""
        raise BadInput(problems[0] + also)
