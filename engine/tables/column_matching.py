"""Which column of a file is which of the schema: names as people give them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from scant.tables.schema import Column, TableSchema

_ERROR_WORDS = {"err", "error", "e", "unc", "uncertainty", "sigma", "sig", "std", "sd"}
_ERROR_END = re.compile(r"(.+?)_?(?:err|error|sigma|unc)$")
_IDENTIFIERS = {"id", "objid", "objectid", "specobjid", "index", "row", "rownumber", "galaxyid"}
_IDENTIFIERS |= {"sourceid", "sampleid", "uid", "uuid", "guid", "no", "number", "unnamed0"}
_UNIT = re.compile(r"\s*[\[(][^\[\]()]*[\])]\s*$")  # "flux [mJy]", "BMI (kg/m²)"
_CLASSES = 30  # more different words are rather names than classes
_ENDS = {"lo": "hi", "low": "high", "lower": "upper", "min": "max", "from": "to"}
_ENDS |= {"start": "end", "begin": "end", "left": "right"}


def suggest(
    names: Sequence[str], schema: TableSchema, levels: Mapping[str, int] | None = None
) -> dict[str, str]:
    """A schema name for each column of a file: its own where nothing better is known.

    Aliases are taken where the schema's own name is absent and one column answers to it, by its
    whole name or, where the column is needed, by a word of it; a unit in brackets is no part of a
    name. Columns of errors are called `<feature>_err`, the ends of boxes `<dim>_lo` and `<dim>_hi`.
    Identifiers are left out (""). What is still missing then is the one column that it can be.

    Args:
        names: The file's headers.
        schema: What the study takes.
        levels: How many different words the columns of words hold, and 0 of those of numbers; None
            where nothing is known of what they hold.
    """
    mapping = {name: name for name in names}
    _answering(mapping, names, schema)
    rival = rival_target(names, schema)
    if rival is not None:
        target = schema.targets[0]
        mapping |= {target: f"{target}_band", rival: target}
    own = schema_names(schema)
    if schema.errors:
        features = {n: mapping[n] for n in names if mapping[n] not in own}
        by_key = {_key(n): n for n in names} | {_key(bare(n)): n for n in names}
        for name in features:
            base = error_base(name, by_key)
            if base not in (None, name) and mapping[base] not in own:
                mapping[name] = f"{mapping[base]}_err"
    free = [n for n in names if mapping[n] == n and n not in own]
    if schema.boxes:
        mapping |= _box_ends(free)
    if schema.features:
        mapping |= {n: "" for n in free if mapping[n] == n and is_identifier(n)}
    left = {n for n in free if mapping[n] == n and not is_identifier(n)}
    known = {n: count for n, count in (levels or {}).items() if n in left}
    return mapping | _left_over(known, mapping, schema)


def _left_over(
    levels: Mapping[str, int], mapping: Mapping[str, str], schema: TableSchema
) -> dict[str, str]:
    """The only column of words for the one label that is wanting, of numbers for the one value.

    A label that a table may lack is two classes; of one that it must have there may be some more.
    """
    taken = set(mapping.values())
    absent = [c for c in schema.columns if c.name not in taken]
    sought = () if taken & {*schema.targets} else schema.targets
    made: dict[str, str] = {}
    labels = [c for c in absent if c.kind == "label" and (c.required or c.name in sought)]
    textual = [n for n, count in levels.items() if count]
    if len(labels) == 1 and len(textual) == 1:
        must = labels[0].required or schema.one_target
        if 2 <= levels[textual[0]] <= (_CLASSES if must else 2):
            made[textual[0]] = labels[0].name
    numbers = [n for n, count in levels.items() if not count]
    values = [c for c in absent if c.kind == "number" and c.required]
    others = not schema.features or any(to.endswith("_lo") for to in taken)  # to learn from
    if len(values) == 1 and len(numbers) == 1 and others:
        made[numbers[0]] = values[0].name
    return made


def _answering(mapping: dict[str, str], names: Sequence[str], schema: TableSchema) -> None:
    """Note in the mapping which columns answer to names that the file lacks."""
    absent = [c for c in schema.columns if c.name not in names]
    own = schema_names(schema)
    called = {n: {_key(n), _key(bare(n))} for n in names}
    spoken = {n: _runs(words(n)) for n in names} if any(map(_sought, absent)) else {}
    for by_word in (False, True):
        for column in absent:
            if column.name in mapping.values() or (by_word and not _sought(column)):
                continue
            wanted = {_key(a) for a in column.aliases} | (set() if by_word else {_key(column.name)})
            tokens = spoken if by_word else called
            matches = [n for n in names if mapping[n] == n and n not in own and wanted & tokens[n]]
            if len(matches) == 1:
                mapping[matches[0]] = column.name


def _sought(column: Column) -> bool:
    """Is a table without this column refused, or misread?"""
    return column.required or (column.target and bool(column.levels))


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
            by_ending.setdefault(("".join(last), "_".join(others)), name)
    made: dict[str, str] = {}
    for (end, rest), name in by_ending.items():
        other = by_ending.get((_ENDS.get(end, ""), rest))
        if other is None or other == name or (name.endswith("_lo") and other == f"{name[:-3]}_hi"):
            continue
        unit = _UNIT.search(name)
        dim = (rest or "x") + (f" {unit[0].strip()}" if unit else "")
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


def is_identifier(name: str) -> bool:
    """Does a column of that name number the rows?"""
    return _key(name) in _IDENTIFIERS or "id" in words(name)


def bare(name: str) -> str:
    """A header without its unit."""
    return _UNIT.sub("", name) or name


def words(name: str) -> list[str]:
    """The words of a header in lower case, without its unit: "PatientID" has two."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", bare(name))
    return re.findall(r"[^\W_]+", apart.lower())


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
    aliases = {_key(a) for a in targets[0].aliases}
    return next((n for n in names if _key(n) in aliases and n != targets[0].name), None)


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


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
