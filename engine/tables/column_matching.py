"""Which column of a file is which of the schema: names as people give them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import pandas as pd
from scant.tables.levels import is_made
from scant.tables.schema import Column, ColumnPreview, Table, TableSchema

_REMEMBERED = 50_000  # headers; a wide table asks for each of them many times
_ERROR_WORDS = {"err", "error", "e", "unc", "uncertainty", "sigma", "sig", "std", "sd"}
_ERROR_END = re.compile(r"(.+?)_?(?:err|error|sigma|unc)$")
_IDENTIFIERS = {"id", "objid", "objectid", "specobjid", "index", "row", "rownumber", "galaxyid"}
_IDENTIFIERS |= {"sourceid", "sampleid", "no", "nr", "number", "unnamed0", "uid", "uuid", "guid"}
_ID_WORDS = {"id", "uid", "uuid", "guid"}
_UNIT = re.compile(r"\s*[\[(][^\[\]()]*[\])]\s*$")  # "flux [mJy]", "BMI (kg/m²)"
_ENDS = {"lo": "hi", "low": "high", "lower": "upper", "min": "max", "from": "to"}
_ENDS |= {"start": "end", "left": "right", "west": "east", "south": "north"}
_ENDS |= {"bottom": "top"}
_SAME_END = {"begin": "start", "since": "from", "stop": "end", "finish": "end", "until": "to"}
_NAMELESS = {"west": "east", "south": "north", "bottom": "height"}  # ends that are a whole header
_GLUED = re.compile(r"(.+?)(min|max|start|end|lo|hi)|(min|max)(.+)")  # xmin, maxlon


def suggest(
    names: Sequence[str], schema: TableSchema, columns: Mapping[str, ColumnPreview] | None = None
) -> dict[str, str]:
    """A schema name for each column of a file: its own where nothing better is known.

    Aliases are taken where the schema's own name is absent and one column answers to it, by its
    whole name or, where the column is needed, by a word of it; a unit in brackets is no part of a
    name. Columns of errors are called `<feature>_err`, the ends of boxes `<dim>_lo` and `<dim>_hi`.
    Identifiers are left out ("").

    Args:
        names: The file's headers.
        schema: What the study takes.
        columns: What they hold, where that is known: dates answer to no name of numbers.
    """
    mapping = {name: name for name in names}
    _answering(mapping, names, schema, columns or {})
    rival = rival_target(names, schema)
    if rival is not None:
        target = schema.targets[0]
        mapping |= {target: f"{target}_band", rival: target}
    own = schema_names(schema)
    if schema.one_target:  # a date is no time of survival, whatever it is called
        dated = {c.name for c in schema.columns if c.kind == "number" and not c.dates}
        mapping |= {n: "" for n, c in (columns or {}).items() if n in dated and c.kind == "date"}
    if schema.errors:
        features = {n: mapping[n] for n in names if mapping[n] not in own}
        by_key = {key(n): n for n in names} | {key(bare(n)): n for n in names}
        for name in features:
            base = error_base(name, by_key)
            if base not in (None, name) and mapping[base] not in own:
                mapping[name] = f"{mapping[base]}_err"
    free = [n for n in names if mapping[n] == n and n not in own]
    if schema.boxes:
        mapping |= _box_ends(free)
    if schema.features:
        mapping |= {n: "" for n in free if mapping[n] == n and is_identifier(n)}
    return mapping


def as_before(
    names: Sequence[str], schema: TableSchema, known: Mapping[str, str]
) -> dict[str, str]:
    """A schema name for each column of a file whose headers were given names once.

    Args:
        names: The file's headers.
        schema: What the study takes.
        known: Headers of the earlier file, each with its name.
    """
    own = {name: known[name] for name in names if name in known}
    taken = set(own.values())
    rest = {n: to for n, to in suggest(names, schema).items() if n not in own}
    return own | {n: "" if to in taken else to for n, to in rest.items()}


def _answering(
    mapping: dict[str, str],
    names: Sequence[str],
    schema: TableSchema,
    columns: Mapping[str, ColumnPreview],
) -> None:
    """Note in the mapping which columns answer to names that the file lacks."""
    dates = {n for n, c in columns.items() if c.kind == "date"}
    absent = [c for c in schema.columns if c.name not in names]
    own = schema_names(schema)
    called = {n: {key(n), key(bare(n))} for n in names}
    spoken = {n: _runs(words(n)) for n in names} if any(map(_sought, absent)) else {}
    for by_word in (False, True):
        for column in absent:
            if column.name in mapping.values() or (by_word and not _sought(column)):
                continue
            wanted = {key(a) for a in column.aliases} | (set() if by_word else {key(column.name)})
            tokens = spoken if by_word else called
            matches = [n for n in names if mapping[n] == n and n not in own and wanted & tokens[n]]
            if column.kind == "number" and not column.dates:
                matches = [n for n in matches if n not in dates]
            if len(matches) == 1:
                mapping[matches[0]] = column.name


def _sought(column: Column) -> bool:
    """Is a table without this column refused, or misread?"""
    return column.required or bool(column.default) or (column.target and bool(column.levels))


def _runs(parts: Sequence[str]) -> set[str]:
    """Words, and neighboring words as one: of "log2 z spec" also "zspec"."""
    n = min(len(parts), 8)
    return {"".join(parts[i:j]) for i in range(n) for j in range(i + 1, n + 1)}


def _box_ends(names: Sequence[str]) -> dict[str, str]:
    """`<dim>_lo` and `<dim>_hi` for columns such as "time_start [h]" and "time_end [h]"."""
    by_ending: dict[tuple[str, str], str] = {}
    for name in names:
        parts = words(name)
        for last, others in ((parts[-1:], parts[:-1]), (parts[:1], parts[1:])):
            end = _SAME_END.get("".join(last), "".join(last))
            by_ending.setdefault((end, "_".join(others)), name)
        if glued := _GLUED.fullmatch("_".join(parts)):
            end, rest = glued[2] or glued[3], glued[1] or glued[4]
            by_ending.setdefault((end, rest.strip("_")), name)
    made: dict[str, str] = {}
    for (end, rest), name in by_ending.items():
        other = by_ending.get((_ENDS.get(end, ""), rest))
        if other is None or other == name or (name.endswith("_lo") and other == f"{name[:-3]}_hi"):
            continue
        brackets = _UNIT.search(name)
        dim = rest or _NAMELESS.get(end, "x")
        dim += f" {brackets[0].strip()}" if brackets else ""
        if not {name, other} & set(made):
            made |= {name: f"{dim}_lo", other: f"{dim}_hi"}
    return made


def error_base(name: str, by_key: Mapping[str, str]) -> str | None:
    """The column whose error `name` holds, by its name: `err_u`, `u_error`, `modelMagErr_u`.

    Args:
        name: A header.
        by_key: All headers by their letters and digits in lower case.
    """
    parts = [w for w in re.split(r"[_\s.\-]+", bare(name).lower()) if w]
    for i, word in enumerate(parts):
        rest = parts[:i] + parts[i + 1 :]
        if rest and word in _ERROR_WORDS:
            result = by_key.get("".join(rest))
            if result is not None:
                return result
        end = _ERROR_END.fullmatch(word)
        if end is not None:
            result = by_key.get("".join([*parts[:i], end[1], *parts[i + 1 :]]))
            if result is not None:
                return result
    return None


@lru_cache(_REMEMBERED)
def is_identifier(name: str) -> bool:
    """Does a column of that name number the rows?"""
    return key(name) in _IDENTIFIERS or bool(_ID_WORDS & set(words(name)))


def with_identifiers(table: Table, schema: TableSchema) -> pd.DataFrame:
    """The frame of a table and the identifiers beside it, which reading it again leaves out again.

    Predictions of the table carry them, so that its owner can tell the rows apart.
    """
    names = [str(n) for n in table.ignored if n not in table.frame and is_identifier(str(n))]
    again = suggest([*map(str, table.frame), *names], schema) if names else {}
    beside = {n: table.ignored[n] for n in names if again[n] in ("", n)}
    return table.frame.assign(**beside) if beside else table.frame


@lru_cache(_REMEMBERED)
def bare(name: str) -> str:
    """A header without its unit."""
    return _UNIT.sub("", name) or name


def unit(name: str) -> str:
    """The unit in a header's brackets; "" where it has none."""
    found = _UNIT.search(name)
    return found[0].strip(" []()") if found and found.start() else ""


@lru_cache(_REMEMBERED)
def words(name: str) -> tuple[str, ...]:
    """The words of a header in lower case, without its unit: "PatientID" has two.

    An input that was made of a level has none: `state = ID` is no identifier.
    """
    if is_made(name):
        return ()
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", bare(name))
    return tuple(re.findall(r"[^\W_]+", apart.lower()))


def schema_names(schema: TableSchema) -> set[str]:
    """The names that a schema gives to columns."""
    return {column.name for column in schema.columns}


def rival_target(names: Collection[str], schema: TableSchema) -> str | None:
    """A column that is rather the target than the one which bears the name.

    Tables of ugriz photometry call the fifth band z, which is also the name of a redshift: taken
    for the target it would be learned without anybody noticing.
    """
    targets = [c for c in schema.columns if c.target and c.name in names]
    lower = {n.lower() for n in names}
    if not targets or not {"g", "r", "i"} <= lower:
        return None
    aliases = {key(a) for a in targets[0].aliases}
    return next((n for n in names if key(n) in aliases and n != targets[0].name), None)


def complaints(mapping: Mapping[str, str], names: Sequence[str], file: str) -> list[str]:
    """What is wrong with a mapping: columns that are not there, two for one name."""
    known = set(names)
    messages = [
        f"{file} has no column {name!r} to map to {to!r}; it has {listed(names)}."
        for name, to in mapping.items()
        if name not in known and to
    ]
    taken: dict[str, str] = {}
    for name in names:
        to = mapping.get(name, name)
        if to and to in taken:
            messages.append(
                f"{file}: columns {taken[to]!r} and {name!r} are both mapped to {to!r}; "
                "leave one of them out."
            )
        taken[to] = name
    return messages


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a sentence, the first few of many."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


@lru_cache(_REMEMBERED)
def key(name: str) -> str:
    """A header's letters and digits in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
