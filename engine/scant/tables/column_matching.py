"""Matching of file headers with the names of a schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import pandas as pd

from scant.tables.error_columns import match_errors, says_error
from scant.tables.headers import CACHED, bare, key, words
from scant.tables.schema import Column, ColumnPreview, Table, TableSchema

_IDENTIFIERS = {"id", "objid", "objectid", "specobjid", "index", "row", "rownumber", "galaxyid"}
_IDENTIFIERS |= {"targetid", "seqnr", "coaddobjectid", "coaddobjectsid", "thingid", "parentid"}
_IDENTIFIERS |= {"sourceid", "sampleid", "no", "nr", "number", "unnamed0", "uid", "uuid", "guid"}
_ID_WORDS = {"id", "uid", "uuid", "guid"}
_ENDS = {"lo": "hi", "low": "high", "lower": "upper", "min": "max", "from": "to"}
_ENDS |= {"start": "end", "left": "right", "west": "east", "south": "north"}
_ENDS |= {"bottom": "top"}
_SAME_END = {"begin": "start", "since": "from", "stop": "end", "finish": "end", "until": "to"}
_NAMELESS = {"west": "east", "south": "north", "bottom": "height"}  # ends that are a whole header
_GLUED = re.compile(r"(.+?)(min|max|start|end|lo|hi)|(min|max)(.+)")  # xmin, maxlon


def suggest(
    names: Sequence[str], schema: TableSchema, columns: Mapping[str, ColumnPreview] | None = None
) -> dict[str, str]:
    """Suggest a schema name for each column of a file, by default its own header.

    If a name of the schema is absent, a single column that matches one of its aliases is used: by
    its whole header or, for required columns, by a word of it. Units in brackets are ignored.
    Columns of errors become `<feature>_err`, limits `<feature>_lim`, and ends of boxes `<dim>_lo`
    and `<dim>_hi`. Identifiers are left out ("").

    Args:
        names: Headers of the file.
        schema: Schema of the study.
        columns: Previews of the columns, if known; dates do not match numeric names.
    """
    mapping = {name: name for name in names}
    _match_aliases(mapping, names, schema, columns or {})
    rival = rival_target(names, schema)
    if rival is not None:
        target, (band, named) = schema.targets[0], rival
        mapping |= {band: f"{target}_band" if band == target else band, named: target}
    schema_columns = schema_names(schema)
    if schema.one_target:  # a date is no time of survival, whatever it is called
        dated = {c.name for c in schema.columns if c.kind == "number" and not c.dates}
        mapping |= {n: "" for n, c in (columns or {}).items() if n in dated and c.kind == "date"}
    if schema.aside:
        mapping |= {n: "" for n in names if mapping[n] == n and is_aside(n, schema)}
    if schema.target_setting:
        mapping |= dict.fromkeys(also_targets(mapping, schema), "")
    if schema.features and not schema.boxes:
        match_errors(mapping, schema, columns or {})
    free = [n for n in names if mapping[n] == n and n not in schema_columns]
    if schema.boxes:
        ends = _box_ends(free)
        dated = {n for n, c in (columns or {}).items() if c.kind == "date"}
        if {n for n, to in ends.items() if to in ("x_lo", "x_hi")} <= dated:
            ends = {n: to.replace("x_", "time_") if to in ("x_lo", "x_hi") else to
                    for n, to in ends.items()}  # fmt: skip
        mapping |= ends
    if schema.features:
        mapping |= {n: "" for n in free if mapping[n] == n and is_identifier(n)}
    return mapping


def as_before(
    names: Sequence[str], schema: TableSchema, earlier: Mapping[str, str]
) -> dict[str, str]:
    """Suggest names for a file like an earlier one, reusing the earlier mapping.

    Args:
        names: Headers of the file.
        schema: Schema of the study.
        earlier: Mapping of the earlier file.
    """
    mapped = {name: earlier[name] for name in names if name in earlier}
    taken = set(mapped.values())
    others = {n: to for n, to in suggest(names, schema).items() if n not in mapped}
    return mapped | {n: "" if to in taken else to for n, to in others.items()}


def _match_aliases(
    mapping: dict[str, str],
    names: Sequence[str],
    schema: TableSchema,
    columns: Mapping[str, ColumnPreview],
) -> None:
    """Map columns whose headers match names of the schema that the file lacks."""
    dates = {n for n, c in columns.items() if c.kind == "date"}
    absent = [c for c in schema.columns if c.name not in names]
    schema_columns = schema_names(schema)
    keys = {n: {key(n), key(bare(n))} for n in names}
    word_keys = {n: _runs(words(n)) for n in names} if any(map(_sought, absent)) else {}
    for by_word in (False, True):
        for column in absent:
            if column.name in mapping.values() or (by_word and not _sought(column)):
                continue
            if column.only_with and column.only_with not in mapping.values():
                continue
            aliases = {key(a) for a in column.aliases} | (set() if by_word else {key(column.name)})
            tokens = word_keys if by_word else keys
            matches = [
                n
                for n in names
                if mapping[n] == n and n not in schema_columns and aliases & tokens[n]
            ]
            if schema.errors and by_word:
                matches = [n for n in matches if not says_error(n) and not is_aside(n, schema)]
            if column.kind == "number" and not column.dates:
                matches = [n for n in matches if n not in dates]
            if len(matches) == 1:
                mapping[matches[0]] = column.name


def _sought(column: Column) -> bool:
    """Return True if a table without this column would be refused or misread."""
    return column.required or bool(column.default) or (column.target and bool(column.levels))


def _runs(parts: Sequence[str]) -> set[str]:
    """Words and joined adjacent words: "zspec" for "log2 z spec"."""
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
        dim = rest or _NAMELESS.get(end, "x")
        brackets = name[len(bare(name)) :].strip()
        dim += f" {brackets}" if brackets else ""
        if not {name, other} & set(made):
            made |= {name: f"{dim}_lo", other: f"{dim}_hi"}
    return made


def is_end(name: str) -> bool:
    """Return True if a header is only a word for an end, such as "start"."""
    end = _SAME_END.get(key(name), key(name))
    return end in _ENDS or end in _ENDS.values()


def is_aside(name: str, schema: TableSchema) -> bool:
    """Return True if the schema excludes a column of this name from the features."""
    return bool(schema.aside and re.fullmatch(schema.aside, "_".join(words(name))))


def also_targets(mapping: Mapping[str, str], schema: TableSchema) -> list[str]:
    """Headers that also match an alias of the mapped target."""
    target = next((c for c in schema.columns if c.target), None)
    if target is None or target.name not in mapping.values():
        return []
    aliases = {key(a) for a in target.aliases}
    return [n for n, to in mapping.items() if to == n != target.name and key(bare(n)) in aliases]


@lru_cache(CACHED)
def is_identifier(name: str) -> bool:
    """Return True if the header denotes an identifier of rows."""
    return key(name) in _IDENTIFIERS or bool(_ID_WORDS & set(words(name)))


def with_identifiers(table: Table, schema: TableSchema) -> pd.DataFrame:
    """Add a table's identifiers to its frame, so that predictions can be assigned to rows.

    Only identifiers that are left out again when the result is read are added.
    """
    names = [str(n) for n in table.ignored if n not in table.frame and is_identifier(str(n))]
    mapping = suggest([*map(str, table.frame), *names], schema) if names else {}
    identifiers = {n: table.ignored[n] for n in names if mapping[n] in ("", n)}
    return table.frame.assign(**identifiers) if identifiers else table.frame


def schema_names(schema: TableSchema) -> set[str]:
    """Column names of a schema."""
    return {column.name for column in schema.columns}


def rival_target(names: Collection[str], schema: TableSchema) -> tuple[str, str] | None:
    """A photometric band with the target's name, and the column that is probably the target.

    Tables of ugriz photometry call the fifth band z, which is also the name of the redshift.
    """
    target = next((c for c in schema.columns if c.target), None)
    if target is None or len(target.name) > 1 or not {"g", "r", "i"} <= {n.lower() for n in names}:
        return None
    bands = [n for n in names if n.lower() == target.name]
    aliases = {key(a) for a in target.aliases}
    named = [n for n in names if key(bare(n)) in aliases]
    return (bands[0], named[0]) if len(bands) == 1 and named else None


def complaints(mapping: Mapping[str, str], names: Sequence[str], file: str) -> list[str]:
    """Problems of a mapping: columns that do not exist, or two columns for one name."""
    available = set(names)
    messages = [
        f"{file} has no column {name!r} to map to {to!r}; it has {listed(names)}."
        for name, to in mapping.items()
        if name not in available and to
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
    """Comma-separated names for a message, at most `most` of them."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"
