"""Bands in the order of their wavelengths, so that neighbors in a table are neighbors in color."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scant.tables.headers import words

_ORDER = ("fuv nuv u b g v r vis i z y j h k ks w1 w2 w3 w4").split()  # noqa: SIM905
PLACES = {band: place for place, band in enumerate(_ORDER)}
LEAST = 3  # bands that are known; two letters may mean anything
_GLUED = re.compile(r"mag(\w{1,3})|(\w{1,3})(?:mag|mpro|sigmpro)(?:err)?")  # umag, w1mpro


def band(name: str) -> str:
    """The band that a name speaks of, in lower case; "" where there is none, or several."""
    spoken = [w for w in words(name) if w in PLACES]
    if not spoken:
        glued = [m for w in words(name) if (m := _GLUED.fullmatch(w))]
        spoken = [b for m in glued if (b := m[1] or m[2]) in PLACES]
    return spoken[0] if len(spoken) == 1 else ""


def by_wavelength(names: Sequence[str]) -> list[str]:
    """The same names; those of known bands, where there are three, sorted among their places.

    Nothing is moved where two names speak of the same band.
    """
    known = {n: PLACES[b] for n in names if (b := band(n))}
    if len(known) < LEAST or len(set(known.values())) < len(known):
        return list(names)
    ordered = iter(sorted(known, key=lambda name: known[name]))
    return [next(ordered) if name in known else name for name in names]
