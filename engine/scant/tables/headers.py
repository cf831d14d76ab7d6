"""Words of a column's header."""

from __future__ import annotations

import re
from functools import lru_cache

from scant.tables.levels import is_made

CACHED = 50_000  # headers cached; those of wide tables are looked up many times
_UNIT = re.compile(r"\s*[\[(][^\[\]()]*[\])]\s*$")  # "flux [mJy]", "BMI (kg/m²)"


@lru_cache(CACHED)
def bare(name: str) -> str:
    """Header without its unit in brackets."""
    return _UNIT.sub("", name) or name


def unit(name: str) -> str:
    """Unit in a header's brackets; "" if there is none."""
    match = _UNIT.search(name)
    return match[0].strip(" []()") if match and match.start() else ""


@lru_cache(CACHED)
def words(name: str) -> tuple[str, ...]:
    """Words of a header in lower case, without its unit: "PatientID" has two.

    Inputs made from levels (`state = ID`) have no words, so that they are not identifiers.
    """
    if is_made(name):
        return ()
    separated = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", bare(name))
    return tuple(re.findall(r"[^\W_]+", separated.lower()))


@lru_cache(CACHED)
def key(name: str) -> str:
    """Letters and digits of a header in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
