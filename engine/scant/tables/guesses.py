"""What the columns of any table are for: targets, inputs and numbers of rows, by simple rules.

A guess is sure where the name says it or nothing else is left; the rest become questions, each
with the answer that is taken until somebody gives another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scant.tables.column_matching import (
    error_base,
    is_end,
    is_identifier,
    key,
    schema_names,
    words,
)
from scant.tables.schema import Column, ColumnPreview, Question, TableSchema

Columns = Mapping[str, ColumnPreview]

CLASSES = 30  # more different words are rather names than classes
MOST_TASKS = 12  # values of one table that are offered as tasks
ONE_TASK = ""  # the answer that no column names the task
_WHOLE_CLASSES = 12  # more different whole numbers are rather counts
_TARGETS = {"target", "label", "class", "outcome", "response", "y", "dependent", "endog"}
_TARGETS |= {"classes", "labels", "targets", "classification", "groundtruth"}
_LIKELY = {"species", "diagnosis", "survived", "died", "churn", "default", "variety", "cultivar"}
_LIKELY |= {"type", "kind", "status", "result", "grade", "quality", "disease", "digit", "phase"}
_LIKELY |= {"price", "medv", "value", "mpg", "strength", "yield", "progression", "rating", "score"}
_LIKELY |= {"wage", "salary", "sales", "rate", "demand", "load", "power", "rings"}
_LIKELY |= {"concentration", "redshift", "cost", "expenditure", "consumption", "loss", "category"}
_LIKELY |= {"deaths", "cases", "visits", "accidents", "claims", "crimes", "mortality", "incidence"}
_LIKELY |= {"duration", "choice", "vote", "votes", "turnout", "admissions", "failures", "defects"}
# What is known of people and places before anything is measured.
_COVARIATES = {"population", "pop", "sex", "gender", "race", "ethnicity", "urban", "rural"}
_TIME = {"time", "date", "year", "month", "day", "hour", "week", "minute", "quarter", "timestamp"}
_TIME |= {"datetime", "t", "yr", "hours", "days", "weeks", "months", "years"}
_SPACE = {"lat", "latitude", "lon", "long", "lng", "longitude", "easting", "northing", "x1", "x2"}
_SPACE |= {"x", "coordx", "coordy"}
# What a map says of its polygons themselves, and of the districts' numbers.
_DRAWN = {"area", "perimeter", "shapearea", "shapelength", "shapeleng", "shapelen", "fips", "geoid"}
_DRAWN |= {"fipsno", "aland", "awater", "statefp", "countyfp", "cnty"}
# What instruments say of themselves and of the air around them.
_INSTRUMENT = {"status", "valid", "flag", "flags", "qc", "qa", "battery", "voltage", "flow", "rh"}
_INSTRUMENT |= {"temp", "temperature", "humidity", "pressure", "readings", "altitude", "elevation"}
_GLUED = tuple(word for word in _LIKELY if len(word) > 3)  # where a header ends in one
_TRANSFORMED = {"log", "ln", "log10", "log2", "sqrt", "scaled", "binned", "cat"}
_EVENTS = {"event", "e", "died", "dead", "death", "status", "observed", "fustat", "arrest", "cens"}
_EVENTS |= {"relapse", "censor", "censors", "vitalstatus", "osevent", "deathevent", "dpd"}
_DURATIONS = _TIME | {
    "duration",
    "tenure",
    "futime",
    "stop",
    "os",
    "pfs",
    "survival",
    "stime",
    "age",
}


@dataclass
class Guesses:
    """What is thought of the columns that no name explains.

    Attributes:
        sure: Headers to names of the schema, "" to leave one out.
        unsure: The same, where somebody should look.
        questions: On the unsure ones.
    """

    sure: dict[str, str] = field(default_factory=dict)
    unsure: dict[str, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def settle(self, column: Column, name: str, options: Sequence[str], sure: bool) -> None:
        """Take a header for a column of the schema."""
        (self.sure if sure else self.unsure)[name] = column.name
        if not sure:
            self.ask(column, [(n, n) for n in options], name)

    def ask(self, column: Column, options: Sequence[tuple[Any, str]], guess: Any = None) -> None:
        """Ask which header, or headers, a column of the schema is; the first is the guess."""
        what = column.doc.partition(";")[0]  # more than that stands in the template's help
        means = ", the target" if column.target else f" ({what})" if what else ""
        text = f"Which column is “{column.name}”{means}?"
        guess = options[0][0] if guess is None else guess
        self.questions.append(Question("mapping", text, tuple(options), guess, column.name))


def is_class(column: ColumnPreview) -> bool:
    """Could a column hold classes?"""
    if column.kind == "text":
        return 2 <= column.levels <= CLASSES and not column.distinct
    few = column.kind == "number" and column.whole and 2 <= column.levels <= _WHOLE_CLASSES
    if not few or column.distinct:
        return False
    # Codes of classes are counted through; numbers of things leave some out.
    top = column.levels - 1 + (column.minimum or 0)
    return column.levels == 2 or (column.minimum in (0, 1) and column.maximum == top)


def _is_mark(column: ColumnPreview) -> bool:
    """Are all cells 0 or 1, as of rows whose date was mended?"""
    return column.whole and column.levels == 2 and (column.minimum, column.maximum) == (0, 1)


def is_value(column: ColumnPreview) -> bool:
    """Could a column hold values to be learned?"""
    return column.kind == "number" and column.levels > 2


def named_target(columns: Columns) -> list[str]:
    """Columns whose name says that they are learned.

    A y beside an x is a coordinate, and beside g, r and i a band of light.
    """
    keys = {key(n) for n in columns}
    other = "x" in keys or {"g", "r", "i"} <= keys
    return [n for n in columns if key(n) in _TARGETS - ({"y"} if other else set())]


def target(columns: Columns, candidates: Sequence[str]) -> tuple[str, bool]:
    """The target among candidates, and whether that is sure; "" where there are none.

    Named ones come first, then the last and the first whose names end in a likely word
    ("STACKLOSS"), then the last column, the first one, and what is nearest to the end;
    where that one is made of others, or known beforehand, the first candidate that is not.
    """
    ends = [list(columns)[-1], next(iter(columns))] if columns else []
    candidates = [n for n in candidates if not is_dimension(n)] or candidates
    for names, sure in (
        ([n for n in named_target(columns) if n in candidates], True),
        ([n for n in candidates if key(n) in _LIKELY], False),
        ([n for n in candidates if n in ends[:1] and _LIKELY & set(words(n))], False),
        ([n for n in candidates[-1:] if key(n).endswith(_GLUED)], False),
        ([n for n in candidates[:1] if key(n).endswith(_GLUED)], False),
    ):
        if names:
            return names[-1], sure and len(names) == 1
    found = next((n for n in ends if n in candidates), candidates[-1] if candidates else "")
    if found and _is_input(found, columns):
        found = next((n for n in candidates if not _is_input(n, columns)), found)
    return found, False


def _is_input(name: str, columns: Columns) -> bool:
    """Is a column a covariate by its name, made of others, an earlier value, or one of a factor?

    Made of others: `COUTAX_FEMALEUNEMP` beside `COUTAX`, `INCOMESQ` beside `INCOME`. An earlier
    value: `BILLS103` beside `BILLS104`. Of a factor: one of several columns of 0 and 1 whose names
    differ by the last letter.
    """
    own, column = key(name), columns[name]
    stem, number = _numbered(own)
    for other in (key(n) for n in columns if n != name):
        made = len(other) > 2 and own.startswith(other) and own != other
        base, later = _numbered(other)
        if made or (stem and base == stem and 0 <= number < later):
            return True
    alike = [n for n, c in columns.items() if c.levels == 2 and key(n)[:-1] == own[:-1]]
    return own in _COVARIATES or (column.levels == 2 and len(own) > 3 and len(alike) > 2)


def _numbered(word: str) -> tuple[str, int]:
    """A word that ends in a number, and the number; -1 where it has none."""
    match = re.fullmatch(r"(.*?)(\d+)", word)
    return (match[1], int(match[2])) if match else (word, -1)


def other_targets(columns: Columns, chosen: str) -> list[str]:
    """Columns that are targets as well: inputs that give the answer away."""
    stem = re.sub(r"[\d_\s.]+$", "", chosen.lower())
    parts, named = set(words(chosen)), set(named_target(columns))
    result = []
    for name, column in columns.items():
        if name == chosen or not (column.kind == "number" or is_class(column)):
            continue
        same = stem in _TARGETS and re.sub(r"[\d_\s.]+$", "", name.lower()) == stem
        transformed = set(words(name)) - parts and set(words(name)) - parts <= _TRANSFORMED
        if same or (transformed and parts < set(words(name))) or name in named:
            result.append(name)
    return result


def is_dimension(name: str) -> bool:
    """Does a header name a time or a place?"""
    return key(name) in _TIME | _SPACE or bool(set(words(name)) & (_TIME | _SPACE - {"x", "long"}))


def is_instrument(name: str) -> bool:
    """Does a header name what an instrument says beside what it measures?"""
    return bool(set(words(name)) & _INSTRUMENT)


def is_time(name: str) -> bool:
    """Does a header name a time?"""
    return key(name) in _TIME or bool(set(words(name)) & (_TIME - {"t"}))


def survival(columns: Columns) -> tuple[str, str] | None:
    """The columns of time and event, where rows are of patients, machines or customers."""
    events = [
        n
        for n, c in columns.items()
        if c.levels == 2
        and (key(n) in _EVENTS or set(words(n)) & (_EVENTS - {"e", "status"}))
        and (c.kind == "text" or (c.minimum == 0 and c.maximum == 1))
    ]
    times = durations(columns)
    return (times[0], events[0]) if times and len(events) == 1 else None


def durations(columns: Columns) -> list[str]:
    """The columns that may be times until an event; an age only where there is nothing else."""
    times = [
        n
        for n, c in columns.items()
        if is_value(c) and (c.minimum or 0) > 0 and set(words(n)) & _DURATIONS
    ]
    return [n for n in times if key(n) != "age"] or times


def views(names: Sequence[str]) -> dict[str, str]:
    """`<view>.<feature>` for headers such as "mean radius", "radius error" and "worst radius".

    Nothing, where a header has a dot or a column would be in no view.
    """
    if any("." in n for n in names) or len(names) < 4:
        return {}
    split = {n: [w for w in re.split(r"[ _]+", n.strip()) if w] for n in names}
    left, made = dict(split), dict[str, str]()
    while left:
        groups: dict[tuple[int, str], list[str]] = {}
        for name, parts in left.items():
            if len(parts) > 1:
                for end in (0, -1):
                    groups.setdefault((end, parts[end].lower()), []).append(name)
        if not groups:
            return {}
        (end, view), members = max(groups.items(), key=lambda g: (len(g[1]), g[0][0]))
        if len(members) < 2:
            return {}
        for name in members:
            parts = left.pop(name)
            rest = parts[1:] if end == 0 else parts[:-1]
            made[name] = f"{view}.{' '.join(rest)}"
    several = len({m.partition(".")[0] for m in made.values()}) > 1
    return made if several and len(set(made.values())) == len(made) else {}


def guess(columns: Columns, mapping: Mapping[str, str], schema: TableSchema) -> Guesses:
    """What the columns are that no name explains.

    Args:
        columns: The file's, by header.
        mapping: What is known by name.
        schema: What the study takes.
    """
    made, own = Guesses(), schema_names(schema)
    taken = set(mapping.values())
    free = {
        n: c
        for n, c in columns.items()
        if mapping[n] == n and n not in own and c.kind != "empty" and not is_identifier(n)
    }
    if schema.features and not schema.boxes and len(free) > 2:
        made.sure |= dict.fromkeys(row_numbers(free), "")
    by_key = {key(n): n for n in columns}
    free = {
        n: c for n, c in free.items() if n not in made.sure and error_base(n, by_key) in (None, n)
    }
    absent = {c.name: c for c in schema.columns if c.name not in taken}
    if schema.replicas:
        _guess_replicas(free, absent, made)
    elif schema.boxes:
        _guess_boxes(free, absent, columns, mapping, made)
    else:
        _guess_target(free, absent, taken, schema, made)
    if schema.one_target:
        made.unsure |= dict.fromkeys(_further_goals(mapping, schema), "")
    chosen = next((n for n, to in {**mapping, **made.sure, **made.unsure}.items()
                   if to in schema.targets), "")  # fmt: skip
    if schema.features and not schema.boxes and chosen:
        rest = {n: c for n, c in columns.items() if n in free or n == chosen}
        others = [n for n in other_targets(rest, chosen) if n not in {**made.sure, **made.unsure}]
        (made.unsure if chosen in made.unsure else made.sure).update(dict.fromkeys(others, ""))
    return made


def _further_goals(mapping: Mapping[str, str], schema: TableSchema) -> list[str]:
    """Headers of targets beside the one that is learned: a time with its event before a class."""
    named = {to: n for n, to in mapping.items() if to in schema.targets}
    whole = [c.beside for c in schema.columns if c.beside in named and c.name in mapping.values()]
    kept = next(iter(whole), next((t for t in schema.targets if t in named), ""))
    return [n for to, n in named.items() if to != kept]


def row_numbers(free: Columns) -> list[str]:
    """The first column, where it counts the rows and is no time."""
    if not free:
        return []
    first = next(iter(free))
    return [first] if free[first].counts_rows and not is_dimension(first) else []


def _guess_target(
    free: Columns, absent: Mapping[str, Column], taken: set[str], schema: TableSchema, made: Guesses
) -> None:
    """One target: a class, a value, or a time with its event."""
    if "event" in taken and "time" in absent and (times := durations(free)):
        made.settle(absent["time"], times[0], times, len(times) == 1)
        return
    goals = [absent[t] for t in schema.targets if t in absent and absent[t].guessed]
    if len(goals) < len(schema.targets) or not goals:
        return
    if "event" in absent and (both := survival(free)):
        made.settle(absent["time"], both[0], list(free), True)
        made.settle(absent["event"], both[1], list(free), True)
        return
    label = next((c for c in goals if c.kind == "label"), None)
    value = next((c for c in goals if c.kind == "number" and not c.positive), None)
    classes = [n for n, c in free.items() if is_class(c)]
    values = [n for n, c in free.items() if is_value(c)]
    textual = [n for n in classes if free[n].kind == "text"]
    if label and not label.required and not schema.one_target:
        classes = [n for n in classes if free[n].levels == 2]  # a pool may have no labels at all
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
    name, sure = target(free, candidates)
    if column is label and not sure and len(textual) == 1:
        name, sure = textual[0], len([c for c in free.values() if c.kind == "text"]) == 1
    if name:
        made.settle(column, name, candidates, sure)
    outer = next((c for c in absent.values() if c.default), None)
    other = [n for n in textual if n != name]
    if outer and name and len(other) == 1 and free[other[0]].levels < free[name].levels:
        made.settle(outer, other[0], textual, False)


def _guess_boxes(
    free: Columns,
    absent: Mapping[str, Column],
    columns: Columns,
    mapping: Mapping[str, str],
    made: Guesses,
) -> None:
    """Tasks, boxes or points in time and space, and the value."""
    taken, headers = set(mapping.values()), columns.keys()
    task, value = absent.get("task"), absent.get("y")
    ends = {
        n
        for n in free
        if n.endswith(("_lo", "_hi")) and {f"{n[:-3]}_lo", f"{n[:-3]}_hi"} <= headers
    }
    outlines = [n for n, to in mapping.items() if to == "geometry"]
    drawn = bool(outlines)
    boxed = bool(ends) or drawn or any(to.endswith("_lo") for to in taken)
    free = {n: c for n, c in free.items() if n not in ends}  # of whatever dimension
    if boxed:  # a time that an interval begins at says nothing more
        again = [n for n, c in free.items() if c.kind == "date" and is_end(n)]
        made.sure |= dict.fromkeys(again, "")
        free = {n: c for n, c in free.items() if n not in again}
    textual = [n for n, c in free.items() if c.kind == "text" and 2 <= c.levels <= CLASSES]
    if drawn:  # names of places are no tasks
        places = max((c.levels for c in columns.values() if c.name in outlines), default=0)
        textual = [n for n in textual if not free[n].distinct and free[n].levels < places]
    if task and len(textual) == 1 and not free[textual[0]].missing:
        made.settle(task, textual[0], textual, True)
    elif task and textual:
        made.ask(task, [(ONE_TASK, "none: all rows are one task"), *((n, n) for n in textual)])
    dims = [n for n, c in free.items() if c.kind == "date" or is_dimension(n)]
    dims = [n for n in dims if not _is_mark(free[n])] or dims
    named = boxed or bool(dims)
    if not named:
        dims = [n for n, c in free.items() if c.kind == "number"][:1]
    numbers = [n for n, c in free.items() if c.kind == "number" and n not in dims]
    if not value:
        made.unsure |= dict.fromkeys(numbers if named else [], "")  # measured as well
        return
    if not numbers or not (boxed or dims):
        return
    measured = [n for n in numbers if not is_class(free[n]) or key(n) in _LIKELY] or numbers
    measured = [n for n in measured if key(n) not in _COVARIATES] or measured
    stems = {_numbered(key(n))[0] for n in measured} - {""}  # few values of one, of a series
    measured = [n for n in numbers if n in measured or _numbered(key(n))[0] in stems]
    measured = [n for n in measured if not is_instrument(n)] or measured
    if drawn:
        measured = [n for n in measured if key(n) not in _DRAWN] or measured
    likely = [n for n in measured if n in named_target(free) or key(n) in _LIKELY]
    # Of two columns the last is the value; of all that a station measures, the first.
    name = likely[-1] if likely else measured[-1 if len(measured) == 2 else 0]
    made.unsure |= dict.fromkeys(numbers, "")
    alone = len(measured) == 1 and all(is_instrument(n) or n == name for n in numbers)
    if named and alone:
        made.sure |= {n: made.unsure.pop(n) for n in numbers}
        made.settle(value, name, numbers, True)
        return
    options: list[tuple[Any, str]] = [(n, n) for n in [name, *(m for m in numbers if m != name)]]
    if not textual and 1 < len(measured) <= MOST_TASKS:
        each = f"all {len(measured)}, each a task of its own: {', '.join(measured)}"
        options.append((tuple(measured), each))
        if len({_numbered(key(n))[0] for n in measured}) == 1 and _numbered(key(name))[0]:
            # The first to the fourth of the same: they are sure, and shown as a question.
            made.sure |= dict.fromkeys(measured, value.name)
            made.unsure = {n: to for n, to in made.unsure.items() if n not in measured}
            made.ask(value, options, tuple(measured))
            return
    made.unsure[name] = value.name
    made.ask(value, options)


def _guess_replicas(free: Columns, absent: Mapping[str, Column], made: Guesses) -> None:
    """Outputs, replicas, the input and the value of a long table."""
    inputs = [n for n, c in free.items() if c.kind == "date" or (is_value(c) and is_dimension(n))]
    numbers = [n for n, c in free.items() if is_value(c)]
    if "x" in absent and (inputs or len(numbers) > 1):
        made.settle(absent["x"], (inputs or numbers)[0], inputs or numbers, len(inputs) == 1)
    numbers = [n for n in numbers if n not in {**made.sure, **made.unsure}]
    if "replica" in absent:
        textual = [n for n, c in free.items() if c.kind == "text" and c.levels > 1]
        whole = [n for n in numbers if free[n].whole and free[n].levels < 100]
        options = [*textual[1 if "output" in absent else 0 :], *whole]
        if options and (len(numbers) > 1 or options[0] not in numbers):
            made.settle(absent["replica"], options[0], options, False)
            numbers = [n for n in numbers if n != options[0]]
    if "output" in absent:
        textual = [n for n, c in free.items() if c.kind == "text" and n not in made.unsure]
        if textual:
            made.settle(absent["output"], textual[0], textual, len(textual) == 1)
    if "y" in absent and numbers:
        sure = len(numbers) == 1 and not made.unsure
        made.settle(absent["y"], target(free, numbers)[0], numbers, sure)
