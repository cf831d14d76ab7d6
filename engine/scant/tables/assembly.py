"""From checked columns to a table: columns renamed, features chosen."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from scant.tables import checks, column_matching, geometry
from scant.tables.cells import Cells
from scant.tables.checks import Diagnostics
from scant.tables.dates import are_dates, as_numbers
from scant.tables.guesses import Guesses, guess, is_time, views
from scant.tables.intervals import CLOSED
from scant.tables.levels import LEVELS, UNSEEN, Levels, encoded, levels_of, names, origin, same
from scant.tables.limits import BESIDE, beside, with_limits
from scant.tables.profile import profile
from scant.tables.schema import COVARIATE, READING, ColumnPreview, Table, TableSchema
from scant.tables.wide import tasks

_MANY = 1000  # columns
_LISTED = 30  # of which one sentence speaks


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
    """The table, as far as it goes; what is wrong with it stands in the findings.

    Arguments are those of `read_table`; `suggestion` is that of `suggested`, where it is known, and
    `levels` are those of the text columns that are inputs; to fit, None finds them.
    """
    if purpose not in ("fit", "predict"):
        raise ValueError(f"purpose must be 'fit' or 'predict', got {purpose!r}")
    predict, schema = purpose == "predict", schema.with_target(target)
    if not isinstance(missing_codes, Mapping):
        missing_codes = dict.fromkeys(cells, missing_codes)
    if not predict and (lost := [name for name in missing_codes if name not in cells]):
        findings.problems.append(
            f"{findings.file} has no column {lost[0]!r}, of which a code for missing values is "
            f"given; it has {column_matching.listed(list(cells))}."
        )
    cells = {n: _without(c, missing_codes.get(n, ())) for n, c in cells.items()}
    if schema.boxes:
        if mapping is None:
            suggestion = suggestion or _suggestion(cells, schema, purpose)
        cells, mapping, suggestion = _by_tasks(cells, findings, mapping, suggestion)
    columns, ignored = _renamed(cells, schema, findings, mapping, purpose, suggestion)
    if schema.errors:
        columns, said = with_limits(columns)
        for name, sentence in said.items():
            findings.note(name, sentence)
    made: dict[str, np.ndarray] = dict(checks.named(columns, schema, findings, predict=predict))
    own = {c.name for c in schema.columns}
    rest = {n: c for n, c in columns.items() if n not in own}
    drawn = any(c.kind == "geometry" and c.name in columns for c in schema.columns)
    if drawn:
        made[geometry.COLUMN] = geometry.checked(columns[geometry.COLUMN], findings)
        rest, attributes = _beside_polygons(rest, findings, predict=predict)
        ignored += attributes
    if not predict and levels is None:
        levels = _levels(rest, columns, schema, findings)
    levels = levels or {}
    rest, unseen, strange = encoded(rest, levels)
    for name, note in strange.items():
        findings.note(name, note)
    ignored += [columns[name] for name in levels if name in columns]
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
        ignored += [rest[n] for n in left_out]
        if not used and not drawn and not findings.problems:
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
    inside = [new for n in columns for new in (names(n, levels[n]) if n in levels else [n])]
    taken = {n: made[n] for n in [*inside, *made] if n in made}
    frame = _frame(taken, index)
    aside = pd.DataFrame({c.name: c.labels() for c in ignored}, index=index)
    inputs = tuple(schema.order([n for n in used if not (schema.errors and beside(n, used))]))
    if unseen.any():
        frame.attrs[UNSEEN] = np.flatnonzero(unseen).tolist()
    read = _reading(findings, missing_codes, levels, schema)
    return _finish(frame, aside, inputs, schema, findings, read, predict=predict)


def _by_tasks(
    cells: dict[str, Cells],
    findings: Diagnostics,
    mapping: Mapping[str, str] | None,
    suggestion: tuple[dict[str, str], Guesses] | None,
) -> tuple[dict[str, Cells], Mapping[str, str] | None, tuple[dict[str, str], Guesses] | None]:
    """Several columns of values below each other, by what is mapped or else suggested."""
    known = mapping if suggestion is None or mapping is not None else suggestion[0]
    assert known is not None
    values = [n for n in cells if known.get(n, n) == "y"]
    if len(values) < 2:
        return cells, mapping, suggestion
    cells, rows, known = tasks(cells, findings.rows, known)
    if findings.files is not None:
        findings.files = np.tile(findings.files, len(rows) // len(findings.rows))
    findings.rows = rows
    findings.notes.append(
        f"{findings.file}: {len(values)} columns became tasks, one value a row: "
        f"{column_matching.listed(values)}."
    )
    if mapping is None and suggestion is not None:
        return cells, None, (known, suggestion[1])
    return cells, known, suggestion


def _levels(
    rest: Mapping[str, Cells],
    columns: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
) -> dict[str, tuple[str, ...]]:
    """Levels of the text columns that are inputs; none of those that repeat what is learned.

    A text column of a table of boxes names tasks, and is no dimension.
    """
    if not schema.features or schema.boxes:
        return {}
    goals = [columns[c.name] for c in schema.columns if c.target and c.name in columns]
    found: dict[str, tuple[str, ...]] = {}
    for name, cells in rest.items():
        known = levels_of(cells, schema.missing)[0] if cells.is_text else ()
        if not known:
            continue
        if goal := next((g.name for g in goals if same(cells, g)), ""):
            goal = findings.headers.get(goal, goal)
            findings.note(name, f"it says the same as {goal!r}, which is learned")
            continue
        found[name] = known
        count = len(names(name, known))
        became = f"{count} inputs of 0 and 1" if count > 1 else "one input of 0 and 1"
        findings.note(name, f"its {len(known)} levels became {became}")
    return found


def _beside_polygons(
    rest: Mapping[str, Cells], findings: Diagnostics, *, predict: bool
) -> tuple[dict[str, Cells], list[Cells]]:
    """The further dimensions of a map, and its attributes.

    A map has columns for all that is known of its polygons: of these times are dimensions, and what
    comes with both ends of an interval; covariates are those whose names say so.
    """
    named = {n for n in rest if n.endswith(("_lo", "_hi")) or n.startswith(COVARIATE)}
    kept = {n: c for n, c in rest.items() if n in named or (is_time(n) and not c.is_text)}
    aside = [c for n, c in rest.items() if n not in kept]
    if aside and not predict:
        names = [findings.headers.get(c.name, c.name) for c in aside]
        findings.notes.append(
            f"{findings.file}: not used, for beside polygons only times are further inputs: "
            f"{column_matching.listed(names)}."
        )
    return kept, aside


def _reading(
    findings: Diagnostics,
    missing_codes: Mapping[str, Sequence[float]],
    levels: Levels,
    schema: TableSchema,
) -> dict[str, Any]:
    """The headers that have another name, what means "not measured", levels of text columns, and
    whether intervals include their ends.

    Headers with their own name are among them where another file's would be left out.
    """
    headers = findings.headers
    kept = {h for h in headers.values() if column_matching.is_left_out(h, schema)}
    mapping = {header: to for to, header in headers.items() if header != to or header in kept}
    codes = {name: list(own) for name, own in missing_codes.items() if len(own)}
    own_levels = {name: list(known) for name, known in levels.items()}
    made = {"mapping": mapping, "missing_codes": codes, LEVELS: own_levels}
    made[CLOSED] = dict(findings.closed)
    return {word: values for word, values in made.items() if values}


def _frame(columns: Mapping[str, np.ndarray], index: pd.Index) -> pd.DataFrame:
    """The columns as a data frame; thousands of numbers as one block, which is much faster."""
    numbers = {n: v for n, v in columns.items() if v.dtype == np.float64}
    if len(numbers) < _MANY:
        return pd.DataFrame(columns, index=index, copy=False)
    frame = pd.DataFrame(np.array(list(numbers.values())).T, index, list(numbers))
    for place, (name, values) in enumerate(columns.items()):
        if name not in numbers:
            frame.insert(place, name, values)
    return frame


def _finish(
    frame: pd.DataFrame,
    aside: pd.DataFrame,
    inputs: tuple[str, ...],
    schema: TableSchema,
    findings: Diagnostics,
    reading: Mapping[str, Any],
    *,
    predict: bool,
) -> Table:
    """Rows without a target dropped, rows counted, data hashed."""
    rows: Int[np.ndarray, " n"] = findings.rows
    if not predict and not findings.problems:
        needed = [c.name for c in schema.columns if c.target and not c.missing]
        needed += inputs if schema.boxes else ()  # a value without its place teaches nothing
        gaps = [n for n in needed if n in frame and frame[n].isna().any()]
        keep = frame[gaps].notna().all(axis=1).to_numpy()
        if gone := int((~keep).sum()):
            findings.notes.append(
                f"{findings.file}: {gone:,} row{'s' * (gone > 1)} without a value in "
                f"{' or '.join(map(repr, gaps))} {'were' if gone > 1 else 'was'} left out, "
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
    return noted(Table(frame, inputs, aside, rows, notes, content_hash(frame), reading))


def noted(table: Table) -> Table:
    """The same table, whose frame carries what is known of it to where it is fitted."""
    table.frame.attrs |= {"notes": list(table.notes), "sha256": table.sha256}
    if table.reading:
        table.frame.attrs[READING] = dict(table.reading)
    return table


def suggested(
    columns: Mapping[str, ColumnPreview],
    schema: TableSchema,
    purpose: str,
    aside: Collection[str] = (),
) -> tuple[dict[str, str], Guesses]:
    """What the columns are by name and, of a table to fit, by what they hold; and the guesses.

    Sure ones are in the mapping. Columns that are `aside` are left out unless their names say what
    they are.
    """
    names, goals = list(columns), column_matching.schema_names(schema)
    if purpose != "fit":
        mapping, guesses = column_matching.suggest(names, schema), Guesses()
    else:
        mapping = column_matching.suggest(names, schema, columns)
        mapping |= {n: "" for n in aside if mapping.get(n) == n not in goals}
        guesses = guess(columns, mapping, schema)
        mapping |= guesses.sure
    if schema.views:
        own = column_matching.schema_names(schema)
        taken = own | set(guesses.unsure)
        numeric = [n for n in names if columns[n].kind == "number"]
        free = [n for n in numeric if mapping[n] == n and n not in taken]
        mapping |= views(free)
    return mapping, guesses


def _suggestion(
    cells: Mapping[str, Cells], schema: TableSchema, purpose: str
) -> tuple[dict[str, str], Guesses]:
    return suggested({n: profile(c) for n, c in cells.items()}, schema, purpose)


def _renamed(
    cells: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
    mapping: Mapping[str, str] | None,
    purpose: str,
    suggestion: tuple[dict[str, str], Guesses] | None,
) -> tuple[dict[str, Cells], list[Cells]]:
    """Columns under the schema's names, and those that are left out."""
    names = list(cells)
    if mapping is None:
        mapping, guesses = suggestion or _suggestion(cells, schema, purpose)
        findings.proposals = {to: name for name, to in guesses.unsure.items() if to}
        rival = column_matching.rival_target(names, schema)
        if rival is not None:
            findings.notes.append(
                f"{findings.file} has both {rival[0]!r}, which looks like a magnitude, and "
                f"{rival[1]!r}, which is taken for the target; map the columns where it is not."
            )
        _note_mapping(mapping, schema, findings)
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
    """Say which columns were taken for others, or left out."""
    dotted = [n for n, to in mapping.items() if schema.views and "." in to and to != n]
    if dotted:
        inside = dict.fromkeys(mapping[n].partition(".")[0] for n in dotted)
        findings.notes.append(
            f"{findings.file}: columns were put into the views {', '.join(inside)} by their names."
        )
    errors = [n for n, to in mapping.items() if schema.errors and to == f"{to[:-4]}_err" != n]
    out = [n for n, to in mapping.items() if not to and not column_matching.is_identifier(n)]
    many: set[str] = set()
    for alike, what in ((errors, "read as errors of others"), (out, "left out, as no inputs")):
        if len(alike) > 2:
            many |= {*alike}
            findings.notes.append(
                f"{findings.file}: {len(alike)} columns were {what}: "
                f"{column_matching.listed(alike, _LISTED)}."
            )
    for name, to in mapping.items():
        if to and to != name and name not in dotted and name not in many:
            findings.note(name, f"it was read as {to!r}")
        elif not to and name not in many:
            what = "a number of the row" if column_matching.is_identifier(name) else "no input"
            findings.note(name, f"it looks like {what} and was left out")


def _as_trained(
    rest: dict[str, Cells], features: Sequence[str], schema: TableSchema, findings: Diagnostics
) -> tuple[dict[str, Cells], list[Cells]]:
    """The columns that the model was trained on, in its order; absent ones are all missing."""
    n = len(findings.rows)
    absent = [f for f in features if f not in rest]
    inputs = [f for f in features if not beside(f, features)]
    if absent and (not schema.missing or all(f in absent for f in inputs)):
        findings.problems.append(
            f"{findings.file} lacks the column {origin(absent[0])!r} that the model was trained "
            f"on; it has {column_matching.listed(list(rest))}: rename or add it."
        )
        return {}, []
    if absent:
        lost = list(dict.fromkeys(map(origin, absent)))
        findings.notes.append(
            f"{findings.file} lacks {column_matching.listed(lost)}; every cell is taken as missing."
        )
    nothing = np.full(n, np.nan)
    chosen = {
        f: rest.get(f, Cells(f, nothing, np.ones(n, dtype=bool), np.zeros(n, dtype=bool)))
        for f in features
    }
    if schema.errors:
        extra = (f"{f}{end}" for f in inputs for end in BESIDE)
        chosen |= {name: rest[name] for name in extra if name in rest and name not in chosen}
    return chosen, [c for name, c in rest.items() if name not in chosen]


def _without(cells: Cells, codes: Sequence[float]) -> Cells:
    """Cells equal to a code for "not measured" are empty."""
    if not len(codes):
        return cells
    hit = np.isin(cells.values, codes)
    values = np.where(hit, np.nan, cells.values)
    return Cells(cells.name, values, cells.empty | hit, cells.bad, cells.text)


def content_hash(frame: pd.DataFrame) -> str:
    """SHA-256 of a table's names and values."""
    digest = hashlib.sha256("\x1f".join(str(c) for c in frame.columns).encode())
    blocks: dict[str, np.ndarray] = {}
    if frame.shape[1] >= _MANY:  # at once, as `_frame` made them
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
