"""Reading of users' tables from files and data frames, with checks and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.tables.assembly import assemble
from scant.tables.checks import Diagnostics
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.levels import LEVELS
from scant.tables.opening import (
    Opened,
    Reading,
    columns_of,
    opened_file,
    opened_together,
    prepared,
    suggestion_of,
)
from scant.tables.profile import profile
from scant.tables.questions import missing_question
from scant.tables.schema import Preview, Table, TableSchema, counts

MOST_PROBLEMS = 20
_HEAD = 8  # maximum number of rows in a preview


def read_table(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    limit_bytes: int = LIMIT_BYTES,
    **reading: Unpack[Reading],
) -> Table:
    """Read a file of any supported format as a table to fit or to predict.

    Args:
        source: Path or content of the file.
        schema: Columns that the study takes.
        name: Name of the file for messages; by default the name of the path.
        limit_bytes: Maximum size of the file in bytes.
        **reading: Options of `Reading`.

    Raises:
        BadInput: The table has problems; the message has the first one and the number of others.
    """
    file = name or (source.name if isinstance(source, Path) else "file.csv")
    opened = opened_file(source, file, schema, limit_bytes, reading)
    return _assembled(opened, schema, reading, of_file=True)


def read_tables(
    sources: Sequence[Path],
    schema: TableSchema,
    *,
    limit_bytes: int = LIMIT_BYTES,
    **reading: Unpack[Reading],
) -> Table:
    """Read several files as one table: one task for each file, or values joined with a map.

    Args:
        sources: Paths of the files.
        schema: Columns that the study takes.
        limit_bytes: Maximum size of a file in bytes.
        **reading: Options of `Reading`.

    Raises:
        BadInput: The study takes only one table, or the tables have problems.
    """
    if not schema.boxes:
        raise BadInput(
            f"This study takes one table, but got {len(sources)} files; put their rows into one."
        )
    named = [(path.name, path) for path in sources]
    if duplicates := [n for n, _ in named if [m for m, _ in named].count(n) > 1]:
        raise BadInput(
            f"{duplicates[0]} occurs twice, and a file's name is the name of its task; rename one."
        )
    opened = opened_together(named, schema, limit_bytes, reading)
    return _assembled(opened, schema, reading, of_file=True)


def _assembled(
    opened: Opened, schema: TableSchema, reading: Reading, *, of_file: bool = False
) -> Table:
    """Check and assemble the opened columns."""
    aimed = schema.with_target(reading.get("target"))
    suggestion, mapping = None, reading.get("mapping")
    if mapping is None:
        suggestion = suggestion_of(opened, aimed, reading)
        if of_file and schema.boxes and not set(opened.cells) & set(aimed.targets):
            mapped, guesses = suggestion
            if not any(guesses.uncertain.values()):  # else a question on y comes first
                mapped |= guesses.uncertain
    options = _assembling(reading) | {"mapping": mapping, "suggestion": suggestion}
    table = assemble(opened.cells, schema, opened.findings, **options)
    _raise(opened.findings)
    return table


def read_frame(
    frame: pd.DataFrame,
    schema: TableSchema,
    *,
    name: str = "the table",
    **reading: Unpack[Reading],
) -> Table:
    """Read a data frame with the checks of `read_table`; messages count rows from 0.

    Raises:
        BadInput: The table has problems; the message has the first one and the number of others.
    """
    cells = columns_of(frame, name, schema.maximum_columns)
    findings = Diagnostics(name, np.arange(len(frame)))
    return _assembled(prepared(cells, findings, [], schema, reading), schema, reading)


def inspect_table(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    limit_bytes: int = LIMIT_BYTES,
    check: Callable[[pd.DataFrame, str], None] | None = None,
    **reading: Unpack[Reading],
) -> Preview:
    """Preview a file for the upload wizard, with its problems listed instead of raised.

    Uncertain guesses are applied, each with a question. Arguments are those of `read_table`, and:

    Args:
        source: Path or content of the file.
        schema: Columns that the study takes.
        name: Name of the file for messages.
        limit_bytes: Maximum size of the file in bytes.
        check: Raises `BadInput` for a table, of a name, that is right and cannot be fitted.
        **reading: Options of `Reading`.
    """
    file = name or (source.name if isinstance(source, Path) else "file.csv")
    try:
        opened = opened_file(source, file, schema, limit_bytes, reading)
    except BadInput as error:
        return Preview(problems=(str(error),))
    cells, findings, questions = opened.cells, opened.findings, list(opened.questions)
    aimed, mapping = schema.with_target(reading.get("target")), reading.get("mapping")
    columns, suggestion = {n: profile(c) for n, c in cells.items()}, None
    if mapping is None:
        suggestion = suggestion_of(opened, aimed, reading, columns)
        mapping, guesses = suggestion[0], suggestion[1]
        questions += guesses.questions
        if guesses.uncertain:  # the preview shows them for confirmation
            mapping |= guesses.uncertain
            reading["mapping"] = mapping
    if "missing_codes" not in reading and (missing := missing_question(cells, mapping)):
        questions += missing
        reading["missing_codes"] = missing[0].guess
    n_rows = len(findings.rows)
    table = assemble(cells, schema, findings, suggestion=suggestion, **_assembling(reading))
    refusal = ""
    if check is not None and not findings.problems:
        try:
            check(table.frame, file)
        except BadInput as error:
            refusal = str(error)
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
        refusal=refusal,
    )


def _assembling(reading: Reading) -> dict[str, Any]:
    """Return the options that `assemble` takes."""
    file_options = ("part", "decimal", "columns", "closed", "join")
    return {k: v for k, v in reading.items() if k not in file_options}


def _raise(findings: Diagnostics) -> None:
    problems = findings.problems
    if problems:
        more = len(problems) - 1
        also = f" (And {more} more problem{'s' if more > 1 else ''}.)" if more else ""
        raise BadInput(problems[0] + also)
