"""Reading a user's table: text or data frame in, checked numbers and plain sentences out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
from scant.errors import BadInput
from scant.tables import column_matching
from scant.tables.assembly import assemble, suggest_mapping
from scant.tables.cells import Cells, comma_cell, comma_style, from_series, from_text
from scant.tables.checks import Diagnostics
from scant.tables.csv_parser import RawTable, parse
from scant.tables.encoding import LIMIT_BYTES, decode, load
from scant.tables.schema import ColumnPreview, Preview, Table, TableSchema, counts

MOST_PROBLEMS = 20
_HEAD = 8  # rows of a preview


class Reading(TypedDict, total=False):
    """How a table is read.

    Attributes:
        mapping: The table's column names to the schema's, "" to leave one out; names that it lacks
            stay as they are. None: as `inspect_table` suggests.
        target: The target column where the schema leaves it to a setting.
        purpose: "fit", or "predict": then no target is needed, no row or column is dropped.
        features: For "predict": the columns that the model was trained on.
        missing_codes: Numbers that mean "not measured", such as -99.
    """

    mapping: Mapping[str, str] | None
    target: str | None
    purpose: str
    features: Sequence[str] | None
    missing_codes: Sequence[float]


def read_table(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    limit_bytes: int = LIMIT_BYTES,
    **reading: Unpack[Reading],
) -> Table:
    """A CSV file as a table that can be fitted, or predicted.

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
    raw, cells, findings = _open(source, file, schema, limit_bytes)
    findings.rows = raw.rows
    table = assemble(cells, schema, findings, **reading)
    _raise(findings)
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
    names = [str(c) for c in frame.columns]
    if not len(frame) or not names:
        raise BadInput(f"{name} has {len(frame)} rows and {len(names)} columns; give data.")
    twice = [n for n in names if names.count(n) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise BadInput(f"{name} has the column {twice[0]!r} twice; rename one of them.")
    if len(names) > schema.maximum_columns:
        raise BadInput(
            f"{name} has {len(names):,} columns and the limit is {schema.maximum_columns:,}; "
            "keep the columns you need."
        )
    cells = {n: from_series(n, frame.iloc[:, i]) for i, n in enumerate(names)}
    findings = Diagnostics(name, np.arange(len(frame)))
    table = assemble(cells, schema, findings, **reading)
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

    Arguments are those of `read_table`.
    """
    file = name or (source.name if isinstance(source, Path) else "file.csv")
    try:
        raw, cells, findings = _open(source, file, schema, limit_bytes)
    except BadInput as error:
        return Preview(problems=(str(error),))
    aimed, mapping = schema.with_target(reading.get("target")), reading.get("mapping")
    suggested = (
        suggest_mapping(cells, aimed, reading.get("purpose", "fit"))
        if mapping is None
        else dict(mapping)
    )
    rival = column_matching.rival_target(raw.names, aimed) if mapping is None else None
    if rival is not None:  # what is suggested is on show, and can be agreed to
        reading["mapping"] = suggested
        findings.notes.append(
            f"{file} has both {aimed.targets[0]!r}, which looks like a magnitude, and {rival!r}: "
            f"{rival!r} is taken for the target; choose another column where it is not."
        )
    table = assemble(cells, schema, findings, **reading)
    head = [[str(v) for v in column[:_HEAD].to_pylist()] for column in raw.columns]
    return Preview(
        names=raw.names,
        head=tuple(zip(*head)),
        columns=tuple(_column_preview(c) for c in cells.values()),
        n_rows=len(raw.rows),
        mapping=suggested,
        problems=tuple(findings.problems[:MOST_PROBLEMS]),
        warnings=tuple(findings.notes),
        absent=tuple(findings.absent),
        features=table.features,
        counts=counts(table.frame, aimed),
    )


def _open(
    source: Path | bytes, file: str, schema: TableSchema, limit_bytes: int
) -> tuple[RawTable, dict[str, Cells], Diagnostics]:
    text, notes = decode(load(source, file, limit_bytes), file)
    raw = parse(text, file, schema.maximum_columns)
    del text
    pa.default_memory_pool().release_unused()  # what the parser had, several times the file
    commas, message = comma_style(raw.columns, raw.delimiter)
    findings = Diagnostics(
        file, raw.rows, notes=[*notes, *raw.notes, *([message] if message else [])]
    )
    style = "" if commas == "unclear" else commas
    cells = {n: from_text(n, c, style) for n, c in zip(raw.names, raw.columns)}
    if commas == "unclear":
        name, at = next((n, i) for n, c in cells.items() if (i := comma_cell(c.text)) is not None)
        findings.problems.append(
            f"{file}, column {name!r}, row {raw.rows[at]}: got {cells[name].shown(at)!r}, and "
            "nothing tells whether its comma is a decimal point; write numbers without commas."
        )
    return raw, cells, findings


def _column_preview(cells: Cells) -> ColumnPreview:
    observed = cells.values[~np.isnan(cells.values)]
    missing = int(cells.empty.sum())
    if cells.empty.all():
        return ColumnPreview(cells.name, "empty", missing)
    if cells.is_text:
        return ColumnPreview(cells.name, "text", missing, levels=cells.levels)
    return ColumnPreview(
        cells.name, "number", missing, float(observed.min()), float(observed.max())
    )


def _raise(findings: Diagnostics) -> None:
    problems = findings.problems
    if problems:
        more = len(problems) - 1
        also = f" (And {more} more problem{'s' if more > 1 else ''}.)" if more else ""
        raise BadInput(problems[0] + also)
