"""Checks of a table against its schema, which collect all problems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from scant.tables.cells import Cells
from scant.tables.class_labels import MAX_CLASSES, ROWS_EACH, coded
from scant.tables.column_matching import listed
from scant.tables.levels import TEXT, levels_of
from scant.tables.limits import beside
from scant.tables.schema import Column, TableSchema
from scant.tables.sentinels import sentinels

_HUGE = 1e12  # larger values suggest a wrong unit
_HASHED = 50  # columns compared first to find duplicate rows
LARGEST, SMALLEST = 1e100, 1e-100  # limits for squares and products in double precision
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(\D|$)|\d{1,2}([-/.])\d{1,2}\2\d{2,4}(\D|$)")


@dataclass
class Diagnostics:
    """Messages collected while a table is read: problems that prevent a fit, and notes."""

    file: str
    rows: Int[np.ndarray, " n"]
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # required columns that are absent
    headers: dict[str, str] = field(default_factory=dict)  # original headers of renamed columns
    proposals: dict[str, str] = field(default_factory=dict)  # candidate headers for absent columns
    closed: dict[str, bool] = field(
        default_factory=dict
    )  # closed intervals, see `intervals.bounds`
    files: np.ndarray | None = None  # file of each row, if there are several
    origin: dict[tuple[str, str], str] = field(default_factory=dict)  # header by (file, column)

    def cell(self, column: str, bad: Bool[np.ndarray, " n"], got: str, do: str) -> None:
        """Add a problem that names the first of the cells flagged in `bad`."""
        first = int(np.flatnonzero(bad)[0])
        more = int(bad.sum()) - 1
        also = f" (and {more:,} more cell{'s' * (more > 1)} of this column)" if more else ""
        file = self.file if self.files is None else str(self.files[first])
        header = self.headers.get(column, column)
        header = self.origin.get((file, header), header)
        self.problems.append(
            f"{file}, column {header!r}, row {self.rows[first]}: {got}{also}; {do}."
        )

    def column(self, column: str, got: str, do: str) -> None:
        header = self.headers.get(column, column)
        self.problems.append(f"{self.file}, column {header!r}: {got}; {do}.")

    def note(self, column: str, text: str) -> None:
        header = self.headers.get(column, column)
        self.notes.append(f"{self.file}, column {header!r}: {text}.")


def numbers(
    cells: Cells, findings: Diagnostics, *, may_be_empty: bool, labels: bool = False
) -> None:
    """Check that a column has finite numbers of a plausible size, or `labels` if it may."""
    if cells.bad.any():
        text = cells.shown(int(np.flatnonzero(cells.bad)[0]))
        infinite = text.lower().lstrip("+-") in {"inf", "infinity", "∞"}
        kind = (
            "is infinite" if infinite else "is a date" if _DATE.match(text) else "is not a number"
        )
        got = f"got {text!r}, which {kind}"
        hint = "write finite numbers, without units or separators"
        if _DATE.match(text):
            hint = "write a number for it, such as the days since the first"
        elif labels:
            hint = (
                f"write finite numbers without units, or give every row of the task a class label: "
                f"2 to {MAX_CLASSES} classes, with {ROWS_EACH} rows each or more on average"
            )
        if may_be_empty:
            hint += ", or leave the cell empty"
        findings.cell(cells.name, cells.bad, got, hint)
    if not may_be_empty and cells.empty.any():
        findings.cell(cells.name, cells.empty, "the cell is empty", "give a number or drop the row")
    size = np.abs(cells.values)
    if (too_large := size > LARGEST).any():
        got = f"got {cells.shown(int(np.flatnonzero(too_large)[0]))!r}, which is beyond {LARGEST:g}"
        findings.cell(cells.name, too_large, got, "correct it, or write it in another unit")
    elif (size > _HUGE).any():
        findings.note(cells.name, f"some values are beyond {_HUGE:g}; check their unit")
    elif 0 < np.max(size, initial=0.0, where=size > 0) < SMALLEST:
        tiny = f"every value is closer to zero than {SMALLEST:g}"
        findings.column(cells.name, tiny, "write it in another unit")


def codes(cells: Cells, findings: Diagnostics) -> None:
    """Add a note on values that look like missing codes."""
    for code, count, first in sentinels(cells.values):
        share = 100 * count / len(cells.values)
        findings.note(
            cells.name,
            f"{code:g} stands in {count:,} cell{'s' * (count > 1)}, first in row "
            f"{findings.rows[first]} ({share:.2g}% of the column); if it means 'not measured', "
            f"empty {'those cells' if count > 1 else 'that cell'} or give it as a code for missing "
            "values",
        )


def named(
    columns: Mapping[str, Cells], schema: TableSchema, findings: Diagnostics, *, predict: bool
) -> dict[str, np.ndarray]:
    """Check the columns of the schema and return them as float64 numbers or text with None."""
    made: dict[str, np.ndarray] = {}
    columns = dict(columns)
    for column in schema.columns:
        cells = columns.get(column.name)
        if cells is not None and column.labels and column.labels not in columns and not predict:
            cells, labels = coded(cells, columns.get("task"), column.labels)
            if labels is not None:
                columns[column.labels] = labels
                count = labels.levels
                findings.note(column.name, f"{count} labels were read as classes")
        lenient = predict and column.target
        if cells is None:
            if column.default:
                made[column.name] = np.full(len(findings.rows), column.default, dtype=object)
                if not predict:
                    findings.notes.append(
                        f"{findings.file} has no column {column.name!r}: all rows belong to one "
                        f"{column.name}."
                    )
            elif column.required and not lenient:
                findings.absent.append(column.name)
            elif column.without and not predict:
                findings.notes.append(
                    f"{findings.file} has no column {column.name!r}: {column.without}."
                )
            continue
        if column.note and not predict:
            findings.note(column.name, column.note)
        if column.kind == "geometry":  # see `scant.tables.geometry.checked`
            continue
        if column.kind != "number":
            made[column.name] = _level_labels(column, cells, findings)
            if not lenient:
                _labels(column, cells, made[column.name], findings, predict=predict)
            continue
        made[column.name] = cells.values
        if not lenient:
            _named_number(column, cells, findings)
    if findings.absent:
        findings.problems.insert(0, _absence(findings, columns, schema))
    goals = schema.targets
    if schema.one_target and not predict and not any(goal in made for goal in goals):
        findings.problems.insert(
            0,
            f"{findings.file} has none of the columns {', '.join(goals[:-1])} and {goals[-1]}; say "
            "which of its columns is the target, or add one.",
        )
    return made


def _absence(findings: Diagnostics, columns: Mapping[str, Cells], schema: TableSchema) -> str:
    """Sentence on all required columns that are absent."""
    names = [repr(name) for name in findings.absent]
    missing = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    setting = ""
    if schema.target_setting and set(findings.absent) & set(schema.targets):
        setting = f", or name another column in the setting {schema.target_setting!r}"
    available = listed([findings.headers.get(n, n) for n in columns])
    advice = "the right ones" if len(names) > 1 else "the right one"
    candidates = [
        f"{findings.proposals[n]!r} may be {n!r}"
        for n in findings.absent
        if n in findings.proposals
    ]
    guess = f" ({'; '.join(candidates)})" if candidates else ""
    return (
        f"{findings.file} has no column{'s' * (len(names) > 1)} {missing}; it has {available}: "
        f"rename {advice}{setting}{guess}."
    )


def _level_labels(column: Column, cells: Cells, findings: Diagnostics) -> np.ndarray:
    """Labels of a column, with synonyms ("dead", "1.0") replaced by their levels."""
    labels = cells.labels()
    synonyms = {f"{level}.0": level for level in column.levels} | dict(column.synonyms)
    if not synonyms:
        return labels
    other = {w for w in labels if w is not None and w not in column.levels}
    replacements = {w: synonyms[w.lower()] for w in other if w.lower() in synonyms}
    messages = [
        f"{w!r} was read as {level}" for w, level in sorted(replacements.items()) if w[-2:] != ".0"
    ]
    if messages:
        findings.note(column.name, " and ".join(messages))
    return np.array([replacements.get(w, w) for w in labels], dtype=object)


def _named_number(column: Column, cells: Cells, findings: Diagnostics) -> None:
    if cells.empty.all():
        if column.required or not column.missing:
            findings.column(column.name, "every cell is empty", "fill it or map another column")
        return
    # Rows without a target are dropped with a note later.
    may_be_empty = column.missing or column.target
    numbers(cells, findings, may_be_empty=may_be_empty, labels=bool(column.labels))
    codes(cells, findings)
    wrong = cells.values <= 0
    if column.positive and wrong.any():
        got = f"got {cells.shown(int(np.flatnonzero(wrong)[0]))}, but values must be above zero"
        findings.cell(column.name, wrong, got, "correct it or leave the cell empty")
    observed = cells.values[~np.isnan(cells.values)]
    if column.target and len(observed) > 1 and (observed == observed[0]).all():
        findings.column(
            column.name, f"every value is {observed[0]:g}", "choose a target that varies"
        )


def _labels(
    column: Column, cells: Cells, labels: np.ndarray, findings: Diagnostics, *, predict: bool
) -> None:
    if cells.empty.all():
        if not column.missing:
            findings.column(column.name, "every cell is empty", "fill it or map another column")
        elif column.without and not predict:
            findings.note(column.name, f"every cell is empty: {column.without}")
        return
    if not column.missing and not column.target and cells.empty.any():
        findings.cell(column.name, cells.empty, "the cell is empty", "name it or drop the row")
    if void := cells.void():
        findings.note(
            column.name,
            f"{void!r} was read as an empty cell; if it is a class, give it another name",
        )
    levels = {w for w in labels if w is not None}
    if column.levels:
        other = np.array([w is not None and w not in column.levels for w in labels], dtype=bool)
        if other.any():
            got = f"got {cells.shown(int(np.flatnonzero(other)[0]))!r}"
            findings.cell(column.name, other, got, f"write {' or '.join(column.levels)}")
    if not predict and len(levels) < column.minimum_levels:
        findings.column(
            column.name,
            f"only {len(levels)} different value, {next(iter(levels))!r}"
            + (f" ({void!r} was read as an empty cell)" if void else ""),
            f"at least {column.minimum_levels} are needed",
        )


def boxes(columns: Mapping[str, Cells], findings: Diagnostics) -> None:
    """Check boxes: each `<dim>_lo` needs a `<dim>_hi` that is not below it, and no `<dim>`."""
    for name, cells in columns.items():
        base, _, end = name.rpartition("_")
        if end not in ("lo", "hi") or not base:
            continue
        other = columns.get(f"{base}_{'hi' if end == 'lo' else 'lo'}")
        if other is None:
            missing = f"{base}_{'hi' if end == 'lo' else 'lo'}"
            findings.column(name, f"there is no column {missing!r}", "give both ends of the box")
        elif end == "lo":
            if base in columns:
                findings.column(base, f"there is also a column {name!r}", "give a point or a box")
            wrong = other.values < cells.values
            if wrong.any():
                i = int(np.flatnonzero(wrong)[0])
                got = f"{other.shown(i)} is below {name} = {cells.shown(i)}"
                findings.cell(f"{base}_hi", wrong, got, "swap the two or correct them")


def features(
    columns: Mapping[str, Cells],
    schema: TableSchema,
    findings: Diagnostics,
    *,
    predict: bool,
    trained: bool = False,
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Check feature and error columns; return them and the names of columns left out.

    To predict, only text columns are left out, and none if the columns are those `trained` on.
    """
    made: dict[str, np.ndarray] = {}
    left_out: list[str] = []
    for name, cells in columns.items():
        is_beside = schema.errors and beside(name, columns)
        is_error = is_beside and name.endswith("_err")
        if not predict and _useless(cells, schema, findings, is_beside=is_beside):
            left_out.append(name)
            continue
        if predict and not trained and cells.is_text:  # such as a comment or a date
            findings.note(name, TEXT)
            left_out.append(name)
            continue
        # To fit, incomplete rows of boxes are dropped with a note later.
        if schema.boxes and cells.empty.all() and not predict:  # only bounds get here
            findings.column(name, "every cell is empty", "fill it, or leave both bounds out")
        may_be_empty = not predict if schema.boxes else schema.missing
        numbers(cells, findings, may_be_empty=may_be_empty)
        codes(cells, findings)
        if is_error and (cells.values <= 0).any():
            wrong = cells.values <= 0
            got = f"got {cells.shown(int(np.flatnonzero(wrong)[0]))}, but errors must be above zero"
            findings.cell(name, wrong, got, "correct it or leave the cell empty")
        made[name] = cells.values
    orphans = [
        n
        for n in made
        if schema.errors and (n.endswith("_err") or beside(n, columns)) and not beside(n, made)
    ]
    for name in orphans:
        findings.note(name, f"there is no feature {name[:-4]!r} for it; it was left out")
        left_out.append(name)
        del made[name]
    return made, left_out


def _useless(cells: Cells, schema: TableSchema, findings: Diagnostics, *, is_beside: bool) -> bool:
    """Return True (with a note) if a column carries no information and is left out."""
    if schema.boxes and cells.name.endswith(("_lo", "_hi")):
        return False  # a bound is needed even if it is constant
    if cells.empty.all():
        findings.note(cells.name, "every cell is empty; it was left out")
        return True
    if cells.is_text:
        why = "" if schema.boxes else levels_of(cells, schema.missing)[1]
        findings.note(cells.name, why or TEXT)
        return True
    observed = cells.values[~np.isnan(cells.values)]
    constant = not cells.bad.any() and len(observed) > 1 and bool((observed == observed[0]).all())
    if constant and not is_beside and (schema.views or not schema.images):
        findings.note(cells.name, f"every value is {observed[0]:g}; it was left out")
        return True
    return False


def duplicates(frame: pd.DataFrame, rows: Int[np.ndarray, " n"], findings: Diagnostics) -> None:
    """Add a note on duplicate rows."""
    # Hashes of rows are faster than `DataFrame.duplicated`.
    again = pd.util.hash_pandas_object(frame.iloc[:, :_HASHED], index=False).duplicated().to_numpy()
    if again.any() and frame.shape[1] > _HASHED:
        again = pd.util.hash_pandas_object(frame, index=False).duplicated().to_numpy()
    if again.any():
        first = rows[int(np.flatnonzero(again)[0])]
        findings.notes.append(
            f"{findings.file}: rows that repeat an earlier one: {int(again.sum()):,}, the first in "
            f"row {first}. They were kept, but copies of one row may be both in the training and "
            "in the test set."
        )
