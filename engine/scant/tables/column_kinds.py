"""Kinds of columns by headers and values: classes, values, times and places, targets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from scant.tables.headers import key, words
from scant.tables.schema import ColumnPreview

Columns = Mapping[str, ColumnPreview]

CLASSES = 30  # most distinct texts of classes; more are probably names
_WHOLE_CLASSES = 12  # most distinct integers of classes; more are probably counts
_TARGETS = {"target", "label", "class", "outcome", "response", "y", "dependent", "endog"}
_TARGETS |= {"classes", "labels", "targets", "classification", "groundtruth"}
LIKELY_NAMES = {
    "species",
    "diagnosis",
    "survived",
    "died",
    "churn",
    "default",
    "variety",
    "cultivar",
}
LIKELY_NAMES |= {
    "type",
    "kind",
    "status",
    "result",
    "grade",
    "quality",
    "disease",
    "digit",
    "phase",
}
LIKELY_NAMES |= {
    "price",
    "medv",
    "value",
    "mpg",
    "strength",
    "yield",
    "progression",
    "rating",
    "score",
}
LIKELY_NAMES |= {"wage", "salary", "sales", "rate", "demand", "load", "power", "rings"}
LIKELY_NAMES |= {
    "concentration",
    "redshift",
    "cost",
    "expenditure",
    "consumption",
    "loss",
    "category",
}
LIKELY_NAMES |= {
    "deaths",
    "cases",
    "visits",
    "accidents",
    "claims",
    "crimes",
    "mortality",
    "incidence",
}
LIKELY_NAMES |= {
    "duration",
    "choice",
    "vote",
    "votes",
    "turnout",
    "admissions",
    "failures",
    "defects",
}
# Attributes of people and places that are not measurements.
COVARIATES = {"population", "pop", "sex", "gender", "race", "ethnicity", "urban", "rural"}
_TIME = {"time", "date", "year", "month", "day", "hour", "week", "minute", "quarter", "timestamp"}
_TIME |= {"datetime", "t", "yr", "hours", "days", "weeks", "months", "years"}
_SPACE = {"lat", "latitude", "lon", "long", "lng", "longitude", "easting", "northing", "x1", "x2"}
_SPACE |= {"x", "coordx", "coordy"}
# Attributes of map polygons: sizes and district codes.
POLYGON_ATTRIBUTES = {
    "area",
    "perimeter",
    "shapearea",
    "shapelength",
    "shapeleng",
    "shapelen",
    "fips",
    "geoid",
}
POLYGON_ATTRIBUTES |= {"fipsno", "aland", "awater", "statefp", "countyfp", "cnty"}
# Status and ambient readings of instruments.
_INSTRUMENT = {"status", "valid", "flag", "flags", "qc", "qa", "battery", "voltage", "flow", "rh"}
_INSTRUMENT |= {"temp", "temperature", "humidity", "pressure", "readings", "altitude", "elevation"}
_GLUED = tuple(word for word in LIKELY_NAMES if len(word) > 3)  # as the end of a header
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


def is_class(column: ColumnPreview) -> bool:
    """Return True if a column may hold classes."""
    if column.kind == "text":
        return 2 <= column.levels <= CLASSES and not column.distinct
    small = column.kind == "number" and column.whole and 2 <= column.levels <= _WHOLE_CLASSES
    if not small or column.distinct:
        return False
    # Codes of classes are consecutive.
    last = column.levels - 1 + (column.minimum or 0)
    return column.levels == 2 or (column.minimum in (0, 1) and column.maximum == last)


def is_flag(column: ColumnPreview) -> bool:
    """Return True if all cells are 0 or 1, as in a column of flags."""
    return column.whole and column.levels == 2 and (column.minimum, column.maximum) == (0, 1)


def is_value(column: ColumnPreview) -> bool:
    """Return True if a column may hold a numeric target."""
    return column.kind == "number" and column.levels > 2


def named_target(columns: Columns) -> list[str]:
    """Columns whose header denotes a target.

    A y with an x is a coordinate, and with g, r and i a photometric band.
    """
    keys = {key(n) for n in columns}
    not_target = "x" in keys or {"g", "r", "i"} <= keys
    return [n for n in columns if key(n) in _TARGETS - ({"y"} if not_target else set())]


def target(columns: Columns, candidates: Sequence[str]) -> tuple[str, bool]:
    """Guess the target among candidates ("" if there are none), and whether it is certain.

    Named targets come first, then headers with or ending in a likely word ("STACKLOSS"), then the
    last column, the first column and the last candidate. A derived column or a covariate is
    replaced by the first candidate that is neither.
    """
    ends = [list(columns)[-1], next(iter(columns))] if columns else []
    candidates = [n for n in candidates if not is_dimension(n)] or candidates
    for names, certain in (
        ([n for n in named_target(columns) if n in candidates], True),
        ([n for n in candidates if key(n) in LIKELY_NAMES], False),
        ([n for n in candidates if n in ends[:1] and LIKELY_NAMES & set(words(n))], False),
        ([n for n in candidates[-1:] if key(n).endswith(_GLUED)], False),
        ([n for n in candidates[:1] if key(n).endswith(_GLUED)], False),
    ):
        if names:
            return names[-1], certain and len(names) == 1
    fallback = next((n for n in ends if n in candidates), candidates[-1] if candidates else "")
    if fallback and _is_input(fallback, columns):
        fallback = next((n for n in candidates if not _is_input(n, columns)), fallback)
    return fallback, False


def _is_input(name: str, columns: Columns) -> bool:
    """Return True for covariates, derived columns, earlier values, and indicators of a factor.

    Derived: `COUTAX_FEMALEUNEMP` with `COUTAX`, `INCOMESQ` with `INCOME`. Earlier value: `BILLS103`
    with `BILLS104`. Indicators: several 0/1 columns whose headers differ in the last letter.
    """
    name_key, column = key(name), columns[name]
    stem, number = numbered(name_key)
    for other in (key(n) for n in columns if n != name):
        derived = len(other) > 2 and name_key.startswith(other) and name_key != other
        base, later = numbered(other)
        if derived or (stem and base == stem and 0 <= number < later):
            return True
    indicators = [n for n, c in columns.items() if c.levels == 2 and key(n)[:-1] == name_key[:-1]]
    return name_key in COVARIATES or (
        column.levels == 2 and len(name_key) > 3 and len(indicators) > 2
    )


def numbered(word: str) -> tuple[str, int]:
    """Split a word into stem and final number (-1 if there is none)."""
    match = re.fullmatch(r"(.*?)(\d+)", word)
    return (match[1], int(match[2])) if match else (word, -1)


def other_targets(columns: Columns, chosen: str) -> list[str]:
    """Other target columns, which would reveal the chosen one as inputs."""
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
    """Return True if a header denotes a time or a place."""
    return key(name) in _TIME | _SPACE or bool(set(words(name)) & (_TIME | _SPACE - {"x", "long"}))


def is_instrument(name: str) -> bool:
    """Return True if a header denotes the status or ambient conditions of an instrument."""
    return bool(set(words(name)) & _INSTRUMENT)


def is_time(name: str) -> bool:
    """Return True if a header denotes a time."""
    return key(name) in _TIME or bool(set(words(name)) & (_TIME - {"t"}))


def survival(columns: Columns) -> tuple[str, str] | None:
    """Columns of survival time and event, or None."""
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
    """Candidate columns of times until an event; an age only if there is no other."""
    times = [
        n
        for n, c in columns.items()
        if is_value(c) and (c.minimum or 0) > 0 and set(words(n)) & _DURATIONS
    ]
    return [n for n in times if key(n) != "age"] or times


def views(names: Sequence[str]) -> dict[str, str]:
    """Names `<view>.<feature>` for headers such as "mean radius", "radius error", "worst radius".

    The result is empty if a header has a dot or a column would belong to no view.
    """
    if any("." in n for n in names) or len(names) < 4:
        return {}
    split = {n: [w for w in re.split(r"[ _]+", n.strip()) if w] for n in names}
    remaining, made = dict(split), dict[str, str]()
    while remaining:
        groups: dict[tuple[int, str], list[str]] = {}
        for name, parts in remaining.items():
            if len(parts) > 1:
                for end in (0, -1):
                    groups.setdefault((end, parts[end].lower()), []).append(name)
        if not groups:
            return {}
        (end, view), in_view = max(groups.items(), key=lambda g: (len(g[1]), g[0][0]))
        if len(in_view) < 2:
            return {}
        for name in in_view:
            parts = remaining.pop(name)
            rest = parts[1:] if end == 0 else parts[:-1]
            made[name] = f"{view}.{' '.join(rest)}"
    several = len({m.partition(".")[0] for m in made.values()}) > 1
    return made if several and len(set(made.values())) == len(made) else {}


def row_numbers(free: Columns) -> list[str]:
    """The first column if it numbers the rows and is not a time, as a list."""
    if not free:
        return []
    first = next(iter(free))
    return [first] if free[first].counts_rows and not is_dimension(first) else []
