"""Assembly of checked columns into a `Table`: selection of features, levels, and notes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from scant.tables import checks, column_matching, geometry
from scant.tables.cells import Cells
from scant.tables.checks import Diagnostics
from scant.tables.column_kinds import is_time
from scant.tables.guesses import Guesses
from scant.tables.intervals import CLOSED
from scant.tables.levels import LEVELS, UNSEEN, Levels, encoded, levels_of, names, origin, same
from scant.tables.limits import BESIDE, beside, with_limits
from scant.tables.renaming import renamed, suggested_for
from scant.tables.schema import COVARIATE, READING, Table, TableSchema
from scant.tables.variance_columns import errors_from_variances
from scant.tables.wide import tasks

_WIDE_TABLE = 1000  # columns of a table that is stored as one block
_LISTED = 30  # most column names in one note


def assemble(
    cells: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
    mapping: Mapping[str, str] | None = None,
    target: str | None = None,
    purpose: str = "fit",
    features: Sequence[str] | None = None,
    missing_codes: Sequence[float] | Mapping[str, Sequence[float]] = (),
    levels: Levels | None = None,
    suggestion: tuple[dict[str, str], Guesses] | None = None,
) -> Table:
    """Assemble a table; problems are collected in `findings`.

    The other arguments are those of `read_table`. `suggestion` is the result of `suggested` if
    known, and `levels` are the levels of text columns used as inputs (None determines them).
    """
    if purpose not in ("fit", "predict"):
        raise ValueError(f"purpose must be 'fit' or 'predict', got {purpose!r}")
    predict, schema = purpose == "predict", schema.with_target(target)
    if not isinstance(missing_codes, Mapping):
        missing_codes = dict.fromkeys(cells, missing_codes)
    if not predict and (unknown := [name for name in missing_codes if name not in cells]):
        findings.problems.append(
            f"{findings.file} has no column {unknown[0]!r}, for which a code for missing values is "
            f"given; it has {column_matching.listed(list(cells))}."
        )
    cells = {n: _without(c, missing_codes.get(n, ())) for n, c in cells.items()}
    if schema.boxes:
        if mapping is None:
            suggestion = suggestion or suggested_for(cells, schema, purpose)
        cells, mapping, suggestion = _by_tasks(cells, findings, mapping, suggestion)
    columns, ignored = renamed(cells, schema, findings, mapping, purpose, suggestion)
    if schema.errors:
        columns, variance_notes = errors_from_variances(columns, findings.headers)
        columns, limit_notes = with_limits(columns)
        for name, sentence in [*variance_notes.items(), *limit_notes.items()]:
            findings.note(name, sentence)
    made: dict[str, np.ndarray] = dict(checks.named(columns, schema, findings, predict=predict))
    named = {c.name for c in schema.columns}
    others = {n: c for n, c in columns.items() if n not in named}
    has_polygons = any(c.kind == "geometry" and c.name in columns for c in schema.columns)
    if has_polygons:
        made[geometry.COLUMN] = geometry.checked(columns[geometry.COLUMN], findings)
        others, attributes = _polygon_columns(others, findings, predict=predict)
        ignored += attributes
    if not predict and levels is None:
        levels = _levels(others, columns, schema, findings)
    levels = levels or {}
    others, unseen, level_notes = encoded(others, levels)
    for name, note in level_notes.items():
        findings.note(name, note)
    ignored += [columns[name] for name in levels if name in columns]
    if predict and features is not None:
        others, extra = _as_trained(others, features, schema, findings)
        ignored += extra
    used: dict[str, np.ndarray] = {}
    if schema.features:
        if schema.boxes:
            checks.boxes(others, findings)
        used, left_out = checks.features(
            others, schema, findings, predict=predict, trained=features is not None
        )
        ignored += [others[n] for n in left_out]
        if not used and not has_polygons and not findings.problems:
            findings.problems.append(
                f"{findings.file} has no feature column with numbers beside "
                f"{column_matching.listed(sorted(named))}; add at least one."
            )
    else:
        ignored += list(others.values())
        if others and not predict:
            findings.notes.append(
                f"{findings.file}: not used: {column_matching.listed(list(others))}."
            )
    made.update(used)
    index = pd.RangeIndex(len(findings.rows))
    order = [new for n in columns for new in (names(n, levels[n]) if n in levels else [n])]
    ordered = {n: made[n] for n in [*order, *made] if n in made}
    frame = _frame(ordered, index)
    ignored_frame = pd.DataFrame({c.name: c.labels() for c in ignored}, index=index)
    inputs = tuple(schema.order([n for n in used if not (schema.errors and beside(n, used))]))
    if unseen.any():
        frame.attrs[UNSEEN] = np.flatnonzero(unseen).tolist()
    reading = _reading(findings, missing_codes, levels, schema)
    return _finish(frame, ignored_frame, inputs, schema, findings, reading, predict=predict)


def _by_tasks(
    cells: dict[str, Cells],
    findings: Diagnostics,
    mapping: Mapping[str, str] | None,
    suggestion: tuple[dict[str, str], Guesses] | None,
) -> tuple[dict[str, Cells], Mapping[str, str] | None, tuple[dict[str, str], Guesses] | None]:
    """Stack several value columns as tasks, by the mapping or else the suggestion."""
    roles = mapping if suggestion is None or mapping is not None else suggestion[0]
    assert roles is not None
    values = [n for n in cells if roles.get(n, n) == "y"]
    if len(values) < 2:
        return cells, mapping, suggestion
    cells, rows, roles = tasks(cells, findings.rows, roles)
    if findings.files is not None:
        findings.files = np.tile(findings.files, len(rows) // len(findings.rows))
    findings.rows = rows
    findings.notes.append(
        f"{findings.file}: {len(values)} columns became tasks, one value per row: "
        f"{column_matching.listed(values)}."
    )
    if mapping is None and suggestion is not None:
        return cells, None, (roles, suggestion[1])
    return cells, roles, suggestion


def _levels(
    rest: Mapping[str, Cells],
    columns: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
) -> dict[str, tuple[str, ...]]:
    """Levels of the text columns that become inputs, except copies of a target.

    Text columns of a table of boxes name tasks and are not inputs.
    """
    if not schema.features or schema.boxes:
        return {}
    targets = [columns[c.name] for c in schema.columns if c.target and c.name in columns]
    result: dict[str, tuple[str, ...]] = {}
    for name, cells in rest.items():
        levels = levels_of(cells, schema.missing)[0] if cells.is_text else ()
        if not levels:
            continue
        if target := next((g.name for g in targets if same(cells, g)), ""):
            target = findings.headers.get(target, target)
            findings.note(name, f"it has the same values as the target {target!r} and was left out")
            continue
        result[name] = levels
        count = len(names(name, levels))
        became = f"{count} inputs of 0 and 1" if count > 1 else "one input of 0 and 1"
        findings.note(name, f"its {len(levels)} levels became {became}")
    return result


def _polygon_columns(
    rest: Mapping[str, Cells], findings: Diagnostics, *, predict: bool
) -> tuple[dict[str, Cells], list[Cells]]:
    """Split the columns of a map into further dimensions and unused attributes.

    Dimensions are times, intervals with both ends, and columns named as covariates.
    """
    dimensions = {n for n in rest if n.endswith(("_lo", "_hi")) or n.startswith(COVARIATE)}
    used = {n: c for n, c in rest.items() if n in dimensions or (is_time(n) and not c.is_text)}
    attributes = [c for n, c in rest.items() if n not in used]
    if attributes and not predict:
        names = [findings.headers.get(c.name, c.name) for c in attributes]
        findings.notes.append(
            f"{findings.file}: columns not used, because only times can be inputs beside polygons: "
            f"{column_matching.listed(names)}."
        )
    return used, attributes


def _reading(
    findings: Diagnostics,
    missing_codes: Mapping[str, Sequence[float]],
    levels: Levels,
    schema: TableSchema,
) -> dict[str, Any]:
    """How the table was read: renamed headers, missing codes, levels, and closed intervals.

    Headers with unchanged names are included if they would be left out by default.
    """
    headers = findings.headers
    default = column_matching.suggest(list(headers.values()), schema)
    default_out = {h for h, to in default.items() if not to}
    mapping = {
        header: to for to, header in headers.items() if header != to or header in default_out
    }
    codes = {name: list(own) for name, own in missing_codes.items() if len(own)}
    level_lists = {name: list(known) for name, known in levels.items()}
    reading = {"mapping": mapping, "missing_codes": codes, LEVELS: level_lists}
    reading[CLOSED] = dict(findings.closed)
    return {key: values for key, values in reading.items() if values}


def _frame(columns: Mapping[str, np.ndarray], index: pd.Index) -> pd.DataFrame:
    """Create a data frame; thousands of numeric columns as one block, which is much faster."""
    numbers = {n: v for n, v in columns.items() if v.dtype == np.float64}
    if len(numbers) < _WIDE_TABLE:
        return pd.DataFrame(columns, index=index, copy=False)
    frame = pd.DataFrame(np.array(list(numbers.values())).T, index, list(numbers))
    for position, (name, values) in enumerate(columns.items()):
        if name not in numbers:
            frame.insert(position, name, values)
    return frame


def _finish(
    frame: pd.DataFrame,
    ignored: pd.DataFrame,
    inputs: tuple[str, ...],
    schema: TableSchema,
    findings: Diagnostics,
    reading: Mapping[str, Any],
    *,
    predict: bool,
) -> Table:
    """Drop rows without a target, check the number of rows, and hash the data."""
    rows: Int[np.ndarray, " n"] = findings.rows
    if not predict and not findings.problems:
        needed = [c.name for c in schema.columns if c.target and not c.missing]
        needed += inputs if schema.boxes else ()  # rows without coordinates are useless
        gaps = [n for n in needed if n in frame and frame[n].isna().any()]
        keep = frame[gaps].notna().all(axis=1).to_numpy()
        if dropped := int((~keep).sum()):
            findings.notes.append(
                f"{findings.file}: {dropped:,} row{'s' * (dropped > 1)} without a value in "
                f"{' or '.join(map(repr, gaps))} {'were' if dropped > 1 else 'was'} left out, the "
                f"first in row {rows[int(np.flatnonzero(~keep)[0])]}."
            )
        if dropped:
            frame, ignored = (f[keep].reset_index(drop=True) for f in (frame, ignored))
            rows = rows[keep]
        if len(frame) < schema.minimum_rows:
            findings.problems.append(
                f"{findings.file} has too few usable rows: {len(frame):,}, and at least "
                f"{schema.minimum_rows:,} are needed; add rows."
            )
        checks.duplicates(frame, rows, findings)
    notes = tuple(findings.notes)
    return noted(Table(frame, inputs, ignored, rows, notes, content_hash(frame), reading))


def noted(table: Table) -> Table:
    """Attach notes, hash and reading to the frame's `attrs`, and return the table."""
    table.frame.attrs |= {"notes": list(table.notes), "sha256": table.sha256}
    if table.reading:
        table.frame.attrs[READING] = dict(table.reading)
    return table


def _as_trained(
    columns: dict[str, Cells], features: Sequence[str], schema: TableSchema, findings: Diagnostics
) -> tuple[dict[str, Cells], list[Cells]]:
    """Columns the model was trained on, in its order; absent columns are all missing values."""
    n = len(findings.rows)
    absent = [f for f in features if f not in columns]
    inputs = [f for f in features if not beside(f, features)]
    if absent and (not schema.missing or all(f in absent for f in inputs)):
        findings.problems.append(
            f"{findings.file} lacks the column {origin(absent[0])!r} that the model was trained "
            f"on; it has {column_matching.listed(list(columns))}: rename or add it."
        )
        return {}, []
    if absent:
        names = column_matching.listed(list(dict.fromkeys(map(origin, absent))))
        findings.notes.append(f"{findings.file} lacks {names}; all its cells are taken as missing.")
    nan = np.full(n, np.nan)
    selected = {
        f: columns.get(f, Cells(f, nan, np.ones(n, dtype=bool), np.zeros(n, dtype=bool)))
        for f in features
    }
    if schema.errors:
        beside_names = (f"{f}{end}" for f in inputs for end in BESIDE)
        selected |= {
            name: columns[name] for name in beside_names if name in columns and name not in selected
        }
    return selected, [c for name, c in columns.items() if name not in selected]


def _without(cells: Cells, codes: Sequence[float]) -> Cells:
    """Empty the cells that are equal to a missing code."""
    if not len(codes):
        return cells
    return cells.emptied(np.isin(cells.values, codes))


def content_hash(frame: pd.DataFrame) -> str:
    """SHA-256 of a table's column names and values."""
    digest = hashlib.sha256("\x1f".join(str(c) for c in frame.columns).encode())
    blocks: dict[str, np.ndarray] = {}
    if frame.shape[1] >= _WIDE_TABLE:  # one block, see `_frame`
        numbers = frame.select_dtypes(np.float64)
        blocks = dict(zip(map(str, numbers), numbers.to_numpy().T))
    for column in frame.columns:
        values = blocks.get(str(column))
        values = frame[column].to_numpy() if values is None else values
        if values.dtype == np.float64:
            digest.update(np.ascontiguousarray(values).data)
        else:
            cells = ("\x00" if pd.isna(v) else str(v) for v in values)
            digest.update("\x1f".join(cells).encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()
