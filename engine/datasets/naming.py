"""Which column of a file is which of the schema: names as people give them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from engine.datasets.tables import TableSchema

_ERROR_WORDS = {"err", "error", "e", "unc", "uncertainty", "sigma", "sig", "std", "sd"}
_ERROR_END = re.compile(r"(.+?)_?(?:err|error|sigma|unc)$")
_IDENTIFIERS = {"id", "objid", "objectid", "specobjid", "index", "row", "rownumber", "galaxyid"}
_IDENTIFIERS |= {"sourceid", "sampleid", "no", "number", "unnamed0"}


def suggest(names: Sequence[str], schema: TableSchema) -> dict[str, str]:
    """A schema name for each column of a file: its own where nothing better is known.

    Aliases are taken where the schema's own name is absent and one column answers to it; columns
    of errors are called `<feature>_err`. Identifiers are left out ("").
    """
    mapping = {name: name for name in names}
    for column in schema.columns:
        if column.name in names:
            continue
        wanted = {_key(column.name), *(_key(a) for a in column.aliases)}
        found = [n for n in names if _key(n) in wanted]
        if len(found) == 1:
            mapping[found[0]] = column.name
    rival = rival_target(names, schema)
    if rival is not None:
        target = schema.targets[0]
        mapping |= {target: f"{target}_band", rival: target}
    own = {c.name for c in schema.columns}
    if schema.errors:
        features = {n: mapping[n] for n in names if mapping[n] not in own}
        by_key = {_key(n): n for n in names}
        for name in features:
            base = error_base(name, by_key)
            if base not in (None, name) and mapping[base] not in own:
                mapping[name] = f"{mapping[base]}_err"
    if schema.features:
        for name in names:
            if mapping[name] == name and name not in own and is_identifier(name):
                mapping[name] = ""
    return mapping


def error_base(name: str, by_key: Mapping[str, str]) -> str | None:
    """The column whose error `name` holds, by its name: `err_u`, `u_error`, `modelMagErr_u`.

    Args:
        name: A header.
        by_key: All headers by their letters and digits in lower case.
    """
    words = [w for w in re.split(r"[_\s.\-]+", name.lower()) if w]
    for i, word in enumerate(words):
        rest = words[:i] + words[i + 1 :]
        if rest and word in _ERROR_WORDS:
            found = by_key.get("".join(rest))
            if found is not None:
                return found
        end = _ERROR_END.fullmatch(word)
        if end is not None:
            found = by_key.get("".join([*words[:i], end[1], *words[i + 1 :]]))
            if found is not None:
                return found
    return None


def is_identifier(name: str) -> bool:
    """Does a column of that name number the rows?"""
    return _key(name) in _IDENTIFIERS


def rival_target(names: Collection[str], schema: TableSchema) -> str | None:
    """A column that is rather the target than the one which bears the name.

    Tables of ugriz photometry call the fifth band z, which is also the name of a redshift: taken
    for the target it would be learnt without anybody noticing.
    """
    targets = [c for c in schema.columns if c.target and c.name in names]
    lower = {n.lower() for n in names}
    if not targets or not {"g", "r", "i"} <= lower:
        return None
    aliases = {_key(a) for a in targets[0].aliases}
    return next((n for n in names if _key(n) in aliases and n != targets[0].name), None)


def complaints(mapping: Mapping[str, str], names: Sequence[str], file: str) -> list[str]:
    """What is wrong with a mapping: columns that are not there, two for one name."""
    said = [
        f"{file} has no column {name!r} to map to {to!r}; it has {listed(names)}."
        for name, to in mapping.items()
        if name not in names and to
    ]
    taken: dict[str, str] = {}
    for name in names:
        to = mapping.get(name, name)
        if to and to in taken:
            said.append(
                f"{file}: columns {taken[to]!r} and {name!r} are both mapped to {to!r}; "
                "leave one of them out."
            )
        taken[to] = name
    return said


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a sentence, the first few of many."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
