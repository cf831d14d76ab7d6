"""Renaming of columns to the schema's names, as their headers and contents suggest."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scant.tables import column_matching, error_columns
from scant.tables.cells import Cells
from scant.tables.checks import Diagnostics
from scant.tables.column_kinds import views
from scant.tables.dates import are_dates, as_numbers
from scant.tables.guesses import Guesses, guess
from scant.tables.profile import profile
from scant.tables.schema import ColumnPreview, TableSchema

_LISTED = 30  # most column names in one note


def suggested(
    columns: Mapping[str, ColumnPreview],
    schema: TableSchema,
    purpose: str,
    aside: Collection[str] = (),
) -> tuple[dict[str, str], Guesses]:
    """Suggest a mapping of columns by their names and, to fit, by their contents.

    Returns:
        The mapping, including certain guesses, and the guesses. Columns `aside` are left out
        unless their names match the schema.
    """
    names, goals = list(columns), column_matching.schema_names(schema)
    if purpose != "fit":
        mapping, guesses = column_matching.suggest(names, schema), Guesses()
    else:
        mapping = column_matching.suggest(names, schema, columns)
        mapping |= {n: "" for n in aside if mapping.get(n) == n not in goals}
        guesses = guess(columns, mapping, schema)
        mapping |= guesses.certain
    if schema.views:
        own = column_matching.schema_names(schema)
        taken = own | set(guesses.uncertain)
        numeric = [n for n in names if columns[n].kind == "number"]
        free = [n for n in numeric if mapping[n] == n and n not in taken]
        mapping |= views(free)
    return mapping, guesses


def suggested_for(
    cells: Mapping[str, Cells], schema: TableSchema, purpose: str
) -> tuple[dict[str, str], Guesses]:
    """Suggest a mapping of columns that were read."""
    return suggested({n: profile(c) for n, c in cells.items()}, schema, purpose)


def renamed(
    cells: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
    mapping: Mapping[str, str] | None,
    purpose: str,
    suggestion: tuple[dict[str, str], Guesses] | None,
) -> tuple[dict[str, Cells], list[Cells]]:
    """Rename columns to the schema's names, and separate those that are left out."""
    names = list(cells)
    if mapping is None:
        mapping, guesses = suggestion or suggested_for(cells, schema, purpose)
        findings.proposals = {to: name for name, to in guesses.uncertain.items() if to}
        rival = column_matching.rival_target(names, schema)
        if rival is not None:
            findings.notes.append(
                f"{findings.file} has both {rival[0]!r}, which looks like a magnitude, and "
                f"{rival[1]!r}, which was taken for the target; map the columns if that is wrong."
            )
        _note_mapping(mapping, schema, findings)
    if purpose == "fit":
        for action, errors in error_columns.uses(mapping, schema).items():
            if errors:
                pairs = [f"{n} of {base}" for n, base in errors.items()]
                some = column_matching.listed(pairs, _LISTED)
                findings.notes.append(f"{findings.file}: {action}: {some}.")
    findings.problems += column_matching.complaints(mapping, names, findings.file)
    columns: dict[str, Cells] = {}
    ignored: list[Cells] = []
    for name, column in cells.items():
        to = mapping.get(name, name)
        if not to:
            ignored.append(column)
        elif to not in columns:
            findings.headers[to] = name
            columns[to] = Cells(to, column.values, column.empty, column.bad, column.text)
    dated = {c.name for c in schema.columns if c.dates}
    dated |= set(columns) - column_matching.schema_names(schema) if schema.boxes else set()
    for name in dated & set(columns):
        if are_dates(columns[name]):
            columns[name], message = as_numbers(columns[name])
            findings.note(name, message)
    return columns, ignored


def _note_mapping(mapping: Mapping[str, str], schema: TableSchema, findings: Diagnostics) -> None:
    """Add notes on columns that were renamed or left out."""
    dotted = [n for n, to in mapping.items() if schema.views and "." in to and to != n]
    if dotted:
        views = dict.fromkeys(mapping[n].partition(".")[0] for n in dotted)
        findings.notes.append(
            f"{findings.file}: columns were put into the views {', '.join(views)} by their names."
        )
    summarized = {n for of in error_columns.uses(mapping, schema).values() for n in of}
    left_out = [n for n, to in mapping.items() if not to and not column_matching.is_identifier(n)]
    left_out = [n for n in left_out if n not in summarized]
    if len(left_out) > 2:
        summarized |= {*left_out}
        findings.notes.append(
            f"{findings.file}: {len(left_out)} columns were left out, because they appear not to "
            f"be inputs: {column_matching.listed(left_out, _LISTED)}."
        )
    for name, to in mapping.items():
        if to and to != name and name not in dotted and name not in summarized:
            findings.note(name, f"used as {to!r}")
        elif not to and name not in summarized:
            reason = "a row number" if column_matching.is_identifier(name) else "not an input"
            findings.note(name, f"left out, because it appears to be {reason}")
