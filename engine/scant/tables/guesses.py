"""Rules that guess the roles of columns: targets, inputs and row numbers.

A guess is certain if the header determines it or there is only one candidate. The others become
questions, each with a default answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scant.tables.column_kinds import (
    CLASSES,
    COVARIATES,
    LIKELY_NAMES,
    POLYGON_ATTRIBUTES,
    Columns,
    durations,
    is_class,
    is_dimension,
    is_flag,
    is_instrument,
    is_value,
    named_target,
    numbered,
    other_targets,
    row_numbers,
    survival,
    target,
)
from scant.tables.column_matching import is_end, is_identifier, schema_names
from scant.tables.error_columns import error_bases, roles
from scant.tables.headers import key
from scant.tables.schema import Column, Question, TableSchema

MAX_TASKS = 12  # most value columns that are offered as tasks
ONE_TASK = ""  # answer for tables without a task column


@dataclass
class Guesses:
    """Guessed roles of columns that their headers do not determine.

    Attributes:
        certain: Headers to names of the schema, "" to leave a column out.
        uncertain: The same for guesses that should be confirmed.
        questions: Questions on the uncertain guesses.
    """

    certain: dict[str, str] = field(default_factory=dict)
    uncertain: dict[str, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def assign(self, column: Column, name: str, options: Sequence[str], certain: bool) -> None:
        """Assign a header to a column of the schema, with a question unless it is certain."""
        (self.certain if certain else self.uncertain)[name] = column.name
        if not certain:
            self.ask(column, [(n, n) for n in options], name)

    def ask(self, column: Column, options: Sequence[tuple[Any, str]], guess: Any = None) -> None:
        """Add a question on the header of a schema column; the default is the first option."""
        guess = options[0][0] if guess is None else guess
        self.questions.append(
            Question("mapping", column.question, tuple(options), guess, column.name)
        )


def guess(columns: Columns, mapping: Mapping[str, str], schema: TableSchema) -> Guesses:
    """Guess the roles of columns that their headers do not determine.

    Args:
        columns: Previews by header.
        mapping: Mapping by headers.
        schema: Schema of the study.
    """
    guesses, schema_columns = Guesses(), schema_names(schema)
    taken = set(mapping.values())
    free = {
        n: c
        for n, c in columns.items()
        if mapping[n] == n
        and n not in schema_columns
        and c.kind != "empty"
        and not is_identifier(n)
    }
    if schema.features and not schema.boxes and len(free) > 2:
        guesses.certain |= dict.fromkeys(row_numbers(free), "")
    errors = error_bases(list(columns))
    free = {n: c for n, c in free.items() if n not in guesses.certain and n not in errors}
    absent = {c.name: c for c in schema.columns if c.name not in taken}
    if schema.replicas:
        _guess_replicas(free, absent, guesses)
    elif schema.boxes:
        _guess_boxes(free, absent, columns, mapping, guesses)
    else:
        _guess_target(free, absent, taken, schema, guesses)
        found = {*taken, *guesses.certain.values(), *guesses.uncertain.values()}
        labels = [absent[t] for t in schema.targets if t in absent and absent[t].kind == "label"]
        if labels and not found & {*schema.targets}:
            options = _optional_classes(columns, mapping, schema)
            if options:
                guesses.assign(labels[0], target(columns, options)[0], options, False)
    if schema.one_target:
        guesses.certain |= _flag_targets(columns, mapping, schema)
        guesses.uncertain |= dict.fromkeys(_other_schema_targets(mapping, schema), "")
    chosen = next((n for n, to in {**mapping, **guesses.certain, **guesses.uncertain}.items()
                   if to in schema.targets), "")  # fmt: skip
    if schema.features and not schema.boxes and chosen:
        rest = {n: c for n, c in columns.items() if n in free or n == chosen}
        others = [
            n
            for n in other_targets(rest, chosen)
            if n not in {**guesses.certain, **guesses.uncertain}
        ]
        (guesses.uncertain if chosen in guesses.uncertain else guesses.certain).update(
            dict.fromkeys(others, "")
        )
    if schema.features:
        of_errors = roles({**mapping, **guesses.certain, **guesses.uncertain}, schema, columns)
        for name, role in of_errors.items():
            unsure = errors[name] in guesses.uncertain
            (guesses.uncertain if unsure else guesses.certain)[name] = role
    return guesses


def _optional_classes(
    columns: Columns, mapping: Mapping[str, str], schema: TableSchema
) -> list[str]:
    """Texts whose header is that of an optional label: the only class may be called "group"."""
    optional = {c.name for c in schema.columns
                if c.kind == "label" and not (c.required or c.target or c.levels)}  # fmt: skip
    return [n for n, c in columns.items()
            if mapping[n] in optional and c.kind == "text" and is_class(c)]  # fmt: skip


def _flag_targets(
    columns: Columns, mapping: Mapping[str, str], schema: TableSchema
) -> dict[str, str]:
    """A target of zeros and ones as the class: "y" or "target" does not tell that from a value."""
    targets = [c for c in schema.columns if c.name in schema.targets]
    label = next((c.name for c in targets if c.kind == "label"), "")
    values = {c.name for c in targets if c.kind == "number" and not c.positive}
    if not label or label in mapping.values():
        return {}
    return {n: label for n, to in mapping.items() if to in values and is_flag(columns[n])}


def _other_schema_targets(mapping: Mapping[str, str], schema: TableSchema) -> list[str]:
    """Headers of other targets; a survival time with its event takes precedence over a class."""
    named = {to: n for n, to in mapping.items() if to in schema.targets}
    with_event = [
        c.beside for c in schema.columns if c.beside in named and c.name in mapping.values()
    ]
    target = next(iter(with_event), next((t for t in schema.targets if t in named), ""))
    return [n for to, n in named.items() if to != target]


def _guess_target(
    free: Columns,
    absent: Mapping[str, Column],
    taken: set[str],
    schema: TableSchema,
    guesses: Guesses,
) -> None:
    """Guess one target: a class, a value, or a time with its event."""
    if "event" in taken and "time" in absent and (times := durations(free)):
        guesses.assign(absent["time"], times[0], times, len(times) == 1)
        return
    absent_targets = [absent[t] for t in schema.targets if t in absent and absent[t].guessed]
    if len(absent_targets) < len(schema.targets) or not absent_targets:
        return
    if "event" in absent and (both := survival(free)):
        guesses.assign(absent["time"], both[0], list(free), True)
        guesses.assign(absent["event"], both[1], list(free), True)
        return
    label = next((c for c in absent_targets if c.kind == "label"), None)
    value = next((c for c in absent_targets if c.kind == "number" and not c.positive), None)
    classes = [n for n, c in free.items() if is_class(c)]
    values = [n for n, c in free.items() if is_value(c)]
    textual = [n for n in classes if free[n].kind == "text"]
    if label and not label.required and not schema.one_target:
        classes = [n for n in classes if free[n].levels == 2]  # a pool may be unlabeled
        textual = [n for n in textual if n in classes]
    if label and value:
        name, named = target(free, [n for n in free if n in classes or n in values])
        if not named and len(textual) == 1:
            name = textual[0]
        column, candidates = (label, classes) if name in classes else (value, values)
    elif label:
        column, candidates = label, classes
    else:
        assert value is not None
        column, candidates = value, values
    name, certain = target(free, candidates)
    if column is label and not certain and len(textual) == 1:
        name, certain = textual[0], len([c for c in free.values() if c.kind == "text"]) == 1
    if name:
        guesses.assign(column, name, candidates, certain)
    outer = next((c for c in absent.values() if c.default), None)
    other = [n for n in textual if n != name]
    if outer and name and len(other) == 1 and free[other[0]].levels < free[name].levels:
        guesses.assign(outer, other[0], textual, False)


def _guess_boxes(
    free: Columns,
    absent: Mapping[str, Column],
    columns: Columns,
    mapping: Mapping[str, str],
    guesses: Guesses,
) -> None:
    """Guess tasks, boxes or points in time and space, and the value."""
    taken, headers = set(mapping.values()), columns.keys()
    task, value = absent.get("task"), absent.get("y")
    box_ends = {
        n
        for n in free
        if n.endswith(("_lo", "_hi")) and {f"{n[:-3]}_lo", f"{n[:-3]}_hi"} <= headers
    }
    outlines = [n for n, to in mapping.items() if to == "geometry"]
    has_polygons = bool(outlines)
    boxed = bool(box_ends) or has_polygons or any(to.endswith("_lo") for to in taken)
    free = {n: c for n, c in free.items() if n not in box_ends}  # of any dimension
    if boxed:  # start dates of intervals are redundant
        interval_starts = [n for n, c in free.items() if c.kind == "date" and is_end(n)]
        guesses.certain |= dict.fromkeys(interval_starts, "")
        free = {n: c for n, c in free.items() if n not in interval_starts}
    textual = [n for n, c in free.items() if c.kind == "text" and 2 <= c.levels <= CLASSES]
    if has_polygons:  # names of places are not tasks
        n_polygons = max((c.levels for c in columns.values() if c.name in outlines), default=0)
        textual = [n for n in textual if not free[n].distinct and free[n].levels < n_polygons]
    if task and len(textual) == 1 and not free[textual[0]].missing:
        guesses.assign(task, textual[0], textual, True)
    elif task and textual:
        guesses.ask(task, [(ONE_TASK, "none: all rows are one task"), *((n, n) for n in textual)])
    dims = [n for n, c in free.items() if c.kind == "date" or is_dimension(n)]
    dims = [n for n in dims if not is_flag(free[n])] or dims
    named = boxed or bool(dims)
    if not named:
        dims = [n for n, c in free.items() if c.kind == "number"][:1]
    numbers = [n for n, c in free.items() if c.kind == "number" and n not in dims]
    if not value:
        guesses.uncertain |= dict.fromkeys(numbers if named else [], "")  # other measurements
        return
    if not numbers or not (boxed or dims):
        return
    values = [n for n in numbers if not is_class(free[n]) or key(n) in LIKELY_NAMES] or numbers
    values = [n for n in values if key(n) not in COVARIATES] or values
    stems = {numbered(key(n))[0] for n in values} - {""}  # small values of the same series
    values = [n for n in numbers if n in values or numbered(key(n))[0] in stems]
    values = [n for n in values if not is_instrument(n)] or values
    if has_polygons:
        values = [n for n in values if key(n) not in POLYGON_ATTRIBUTES] or values
    likely = [n for n in values if n in named_target(free) or key(n) in LIKELY_NAMES]
    # The last of two columns, or the first of a station's measurements, is the value.
    name = likely[-1] if likely else values[-1 if len(values) == 2 else 0]
    guesses.uncertain |= dict.fromkeys(numbers, "")
    single = len(values) == 1 and all(is_instrument(n) or n == name for n in numbers)
    if named and single:
        guesses.certain |= {n: guesses.uncertain.pop(n) for n in numbers}
        guesses.assign(value, name, numbers, True)
        return
    options: list[tuple[Any, str]] = [(n, n) for n in [name, *(m for m in numbers if m != name)]]
    if not textual and 1 < len(values) <= MAX_TASKS:
        each = f"all {len(values)}, each a task of its own: {', '.join(values)}"
        options.append((tuple(values), each))
        if len({numbered(key(n))[0] for n in values}) == 1 and numbered(key(name))[0]:
            # Columns of one numbered series: certain, but still shown as a question.
            guesses.certain |= dict.fromkeys(values, value.name)
            guesses.uncertain = {n: to for n, to in guesses.uncertain.items() if n not in values}
            guesses.ask(value, options, tuple(values))
            return
    guesses.uncertain[name] = value.name
    guesses.ask(value, options)


def _guess_replicas(free: Columns, absent: Mapping[str, Column], guesses: Guesses) -> None:
    """Guess outputs, replicas, input and value of a long table."""
    inputs = [n for n, c in free.items() if c.kind == "date" or (is_value(c) and is_dimension(n))]
    numbers = [n for n, c in free.items() if is_value(c)]
    if "x" in absent and (inputs or len(numbers) > 1):
        guesses.assign(absent["x"], (inputs or numbers)[0], inputs or numbers, len(inputs) == 1)
    numbers = [n for n in numbers if n not in {**guesses.certain, **guesses.uncertain}]
    if "replica" in absent:
        textual = [n for n, c in free.items() if c.kind == "text" and c.levels > 1]
        whole = [n for n in numbers if free[n].whole and free[n].levels < 100]
        options = [*textual[1 if "output" in absent else 0 :], *whole]
        if options and (len(numbers) > 1 or options[0] not in numbers):
            guesses.assign(absent["replica"], options[0], options, False)
            numbers = [n for n in numbers if n != options[0]]
    if "output" in absent:
        textual = [n for n, c in free.items() if c.kind == "text" and n not in guesses.uncertain]
        if textual:
            guesses.assign(absent["output"], textual[0], textual, len(textual) == 1)
    if "y" in absent and numbers:
        certain = len(numbers) == 1 and not guesses.uncertain
        guesses.assign(absent["y"], target(free, numbers)[0], numbers, certain)
