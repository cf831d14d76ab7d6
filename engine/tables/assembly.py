"""From checked columns to a table: columns renamed, features chosen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int
from scant.tables import checks, column_matching
from scant.tables.cells import Cells
from scant.tables.checks import Diagnostics
from scant.tables.schema import Table, TableSchema


def assemble(
    cells: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
    mapping: Mapping[str, str] | None = None,
    target: str | None = None,
    purpose: str = "fit",
    features: Sequence[str] | None = None,
    missing_codes: Sequence[float] = (),
) -> Table:
    """The table, as far as it goes; what is wrong with it stands in the findings."""
    if purpose not in ("fit", "predict"):
        raise ValueError(f"purpose must be 'fit' or 'predict', got {purpose!r}")
    predict, schema = purpose == "predict", schema.with_target(target)
    columns, ignored = _renamed(cells, schema, findings, mapping, purpose)
    for code in missing_codes:
        columns = {n: _without(c, code) for n, c in columns.items()}
    made: dict[str, np.ndarray] = dict(checks.named(columns, schema, findings, predict=predict))
    own = {c.name for c in schema.columns}
    rest = {n: c for n, c in columns.items() if n not in own}
    if predict and features is not None:
        rest, extra = _as_trained(rest, features, schema, findings)
        ignored += extra
    used: dict[str, np.ndarray] = {}
    if schema.features:
        if schema.boxes:
            checks.boxes(rest, findings)
        used, left_out = checks.features(
            rest, schema, findings, predict=predict, trained=features is not None
        )
        ignored += [columns[n] for n in left_out]
        if not used and not findings.problems:
            findings.problems.append(
                f"{findings.file} has no feature column with numbers beside "
                f"{column_matching.listed(sorted(own))}; add at least one."
            )
    else:
        ignored += list(rest.values())
        if rest and not predict:
            findings.notes.append(
                f"{findings.file}: not used: {column_matching.listed(list(rest))}."
            )
    made.update(used)
    index = pd.RangeIndex(len(findings.rows))
    taken = {n: made[n] for n in [*columns, *made] if n in made}
    frame = pd.DataFrame(taken, index=index, copy=False)
    aside = pd.DataFrame({c.name: c.labels() for c in ignored}, index=index)
    inputs = tuple(n for n in used if not (schema.errors and _is_error(n, used)))
    return _finish(frame, aside, inputs, schema, findings, predict=predict)


def _finish(
    frame: pd.DataFrame,
    aside: pd.DataFrame,
    inputs: tuple[str, ...],
    schema: TableSchema,
    findings: Diagnostics,
    *,
    predict: bool,
) -> Table:
    """Rows without a target dropped, rows counted, data hashed."""
    rows: Int[np.ndarray, " n"] = findings.rows
    if not predict and not findings.problems:
        needed = [c.name for c in schema.columns if c.target and not c.missing]
        keep = frame[[n for n in needed if n in frame]].notna().all(axis=1).to_numpy()
        if gone := int((~keep).sum()):
            findings.notes.append(
                f"{findings.file}: {gone:,} row{'s' * (gone > 1)} without a value in "
                f"{' or '.join(repr(n) for n in needed)} {'were' if gone > 1 else 'was'} left out, "
                f"first row {rows[int(np.flatnonzero(~keep)[0])]}."
            )
        if gone:
            frame, aside = (f[keep].reset_index(drop=True) for f in (frame, aside))
            rows = rows[keep]
        if len(frame) < schema.minimum_rows:
            findings.problems.append(
                f"{findings.file} has {len(frame):,} usable rows and at least "
                f"{schema.minimum_rows:,} are needed; add rows."
            )
        checks.duplicates(frame, rows, findings)
    notes = tuple(findings.notes)
    return noted(Table(frame, inputs, aside, rows, notes, content_hash(frame)))


def noted(table: Table) -> Table:
    """The same table, whose frame carries the notes on it to where it is fitted."""
    table.frame.attrs |= {"notes": list(table.notes), "sha256": table.sha256}
    return table


def suggest_mapping(
    cells: Mapping[str, Cells], schema: TableSchema, purpose: str
) -> dict[str, str]:
    """What the names say and, of a table to fit, what the columns hold."""
    if purpose != "fit":
        return column_matching.suggest(list(cells), schema)
    levels = {n: c.levels for n, c in cells.items() if not (c.empty.all() or checks.are_dates(c))}
    return column_matching.suggest(list(cells), schema, levels)


def _renamed(
    cells: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
    mapping: Mapping[str, str] | None,
    purpose: str,
) -> tuple[dict[str, Cells], list[Cells]]:
    """Columns under the schema's names, and those that are left out."""
    names = list(cells)
    if mapping is None:
        mapping = suggest_mapping(cells, schema, purpose)
        rival = column_matching.rival_target(names, schema)
        if rival is not None:
            findings.problems.append(
                f"{findings.file} has both {schema.targets[0]!r}, which looks like a magnitude, "
                f"and {rival!r}; set the target to {rival!r} or map the columns."
            )
        for name, to in mapping.items():
            if to and to != name:
                findings.note(name, f"it was read as {to!r}")
            elif not to:
                findings.note(name, "it looks like a number of the row and was left out")
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
    return columns, ignored


def _as_trained(
    rest: dict[str, Cells], features: Sequence[str], schema: TableSchema, findings: Diagnostics
) -> tuple[dict[str, Cells], list[Cells]]:
    """The columns that the model was trained on, in its order; absent ones are all missing."""
    n = len(findings.rows)
    absent = [f for f in features if f not in rest]
    inputs = [f for f in features if not _is_error(f, features)]
    if absent and (not schema.missing or all(f in absent for f in inputs)):
        findings.problems.append(
            f"{findings.file} lacks the column {absent[0]!r} that the model was trained on; "
            f"it has {column_matching.listed(list(rest))}: rename or add it."
        )
        return {}, []
    if absent:
        findings.notes.append(
            f"{findings.file} lacks {column_matching.listed(absent)}; "
            "every cell is taken as missing."
        )
    nothing = np.full(n, np.nan)
    chosen = {
        f: rest.get(f, Cells(f, nothing, np.ones(n, dtype=bool), np.zeros(n, dtype=bool)))
        for f in features
    }
    chosen |= {
        f"{f}_err": rest[f"{f}_err"]
        for f in features
        if schema.errors and f"{f}_err" in rest and f"{f}_err" not in chosen
    }
    return chosen, [c for name, c in rest.items() if name not in chosen]


def _is_error(name: str, among: Mapping[str, np.ndarray] | Sequence[str]) -> bool:
    return name.endswith("_err") and name[:-4] in among


def _without(cells: Cells, code: float) -> Cells:
    """Cells equal to a code for "not measured" are empty."""
    hit = cells.values == code
    values = np.where(hit, np.nan, cells.values)
    return Cells(cells.name, values, cells.empty | hit, cells.bad, cells.text)


def content_hash(frame: pd.DataFrame) -> str:
    """SHA-256 of a table's names and values."""
    digest = hashlib.sha256("\x1f".join(str(c) for c in frame.columns).encode())
    for column in frame.columns:
        values = frame[column].to_numpy()
        if values.dtype == np.float64:
            digest.update(np.ascontiguousarray(values).tobytes())
        else:
            cells = ("\x00" if pd.isna(v) else str(v) for v in values)
            digest.update("\x1f".join(cells).encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()
