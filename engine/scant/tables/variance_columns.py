"""Columns that hold variances of other columns, or inverse variances, by their headers.

`u_var`, `variance of u`; SDSS: `modelFluxIvar_u`, DESI: `flux_ivar_g`. They are read as errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from scant.tables.cells import Cells
from scant.tables.headers import CACHED, bare, key, words

_INVERSE = r"(?:ivar|invvar|inversevariance|inversevar|invvariance)"
_VARIANCE = rf"({_INVERSE}|(?:variance|var))(?:of|in)?"
_GLUED = re.compile(rf"(.+?)({_INVERSE})")  # "modelfluxivar_u"
_WORDS = 3  # at most in "inverse variance of"


@lru_cache(CACHED)
def _variances(name: str) -> dict[str, str]:
    """Word for a variance in a header, by the `key` of the rest of the header."""
    parts, made = words(name), dict[str, str]()
    for i, word in enumerate(parts):
        if match := _GLUED.fullmatch(word):
            made["".join([*parts[:i], match[1], *parts[i + 1 :]])] = match[2]
        for j in range(i + 1, i + _WORDS + 1):
            if match := re.fullmatch(_VARIANCE, "".join(parts[i:j])):
                made["".join([*parts[:i], *parts[j:]])] = match[1]
    return made


def variance_base(name: str, by_key: Mapping[str, str]) -> str | None:
    """Column whose variance, or its inverse, `name` holds by its header.

    Args:
        name: A header.
        by_key: Headers by `headers.key`.
    """
    return next((by_key[rest] for rest in _variances(name) if by_key.get(rest, name) != name), None)


def is_inverse(name: str, base: str) -> bool:
    """Return True if the header `name` denotes the inverse variance of the column `base`."""
    return re.fullmatch(_INVERSE, _variances(name).get(key(bare(base)), "")) is not None


def errors_from_variances(
    columns: Mapping[str, Cells], headers: Mapping[str, str]
) -> tuple[dict[str, Cells], dict[str, str]]:
    """Replace variances by their square roots, and inverse variances by 1 over theirs.

    Where an inverse variance is 0, nothing was measured, and both cells are emptied. Negative
    numbers are left for the checks to report.

    Args:
        columns: Columns by names of the schema: `<feature>` and `<feature>_err`.
        headers: Headers by these names.

    Returns:
        The columns, and notes by feature.
    """
    made, notes = dict(columns), dict[str, str]()
    for name, cells in columns.items():
        error, base = columns.get(f"{name}_err"), headers.get(name, name)
        header = headers.get(f"{name}_err", "")
        if error is None or key(bare(base)) not in _variances(header):
            continue
        inverse, value = is_inverse(header, base), error.values
        root = np.power(value, -0.5 if inverse else 0.5, where=value > 0, out=value.copy())
        unmeasured = (value == 0) if inverse else np.zeros(len(value), dtype=bool)
        made[f"{name}_err"] = replace(error, values=root).emptied(unmeasured)
        made[name] = cells.emptied(unmeasured)
        if count := int(unmeasured.sum()):
            notes[name] = (
                f"{count:,} cell{'s' * (count > 1)} with an inverse variance of 0 "
                f"{'were' if count > 1 else 'was'} read as 'not observed'"
            )
    return made, notes
