"""Bands in the order of their wavelengths, so that neighbors in a table are neighbors in color."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scant.tables.headers import words

_ORDER = ("fuv nuv u b g v r vis i z y j h k ks w1 w2 w3 w4").split()  # noqa: SIM905
PLACES = {band: rank for rank, band in enumerate(_ORDER)}
LEAST = 3  # recognized bands; two letters may mean anything
_GLUED = re.compile(r"mag(\w{1,3})|(\w{1,3})(?:mag|mpro|sigmpro)(?:err)?")  # umag, w1mpro


def band(name: str) -> str:
    """Return the band named in a header, in lower case; "" if there is none or several."""
    bands = [w for w in words(name) if w in PLACES]
    if not bands:
        matches = [m for w in words(name) if (m := _GLUED.fullmatch(w))]
        bands = [b for m in matches if (b := m[1] or m[2]) in PLACES]
    return bands[0] if len(bands) == 1 else ""


def by_wavelength(names: Sequence[str]) -> list[str]:
    """Sort the names of bands by wavelength if there are three or more; others stay in place.

    Nothing is moved if two names denote the same band.
    """
    ranks = {n: PLACES[b] for n in names if (b := band(n))}
    if len(ranks) < LEAST or len(set(ranks.values())) < len(ranks):
        return list(names)
    ordered = iter(sorted(ranks, key=lambda name: ranks[name]))
    return [next(ordered) if name in ranks else name for name in names]
