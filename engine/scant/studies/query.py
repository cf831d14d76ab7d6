"""The words of a question to a fitted study, as they come from a page, a script or a link."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from jaxtyping import Float

from scant.errors import BadInput


def names_in(given: Any) -> list[str]:
    """Names given as a list, or as text with commas; empty ones are skipped."""
    names = given.split(",") if isinstance(given, str) else given
    return [name for name in (str(name).strip() for name in names) if name]


def whole(word: Any, name: str, low: int, high: int) -> int:
    """A whole number.

    Args:
        word: What was given.
        name: Of it, for the sentence.
        low: The least that is allowed.
        high: The most.

    Raises:
        BadInput: It is none, or outside.
    """
    try:
        number = int(word)
    except (TypeError, ValueError):
        number = low - 1
    if not low <= number <= high:
        raise BadInput(f"{name}: got {str(word)[:40]!r}; send a whole number from {low} to {high}.")
    return number


def numbers(
    given: Any, name: str, count: int, why: str, missing: bool = False, shades: int = 0
) -> Float[np.ndarray, " n"]:
    """A list of finite numbers.

    Args:
        given: Numbers, or a text of them with commas; with `shades` also base64 of bytes.
        name: Of them, for the sentence.
        count: How many there must be.
        why: What has as many, for the sentence.
        missing: Whether some may be NaN or empty; never all.
        shades: What a byte is divided by.

    Raises:
        BadInput: They are none, too few or too many.
    """
    try:
        if shades and isinstance(given, str) and "," not in given:
            packed = base64.b64decode(given, validate=True)
            result = np.frombuffer(packed, np.uint8) / shades
        else:
            every = given.split(",") if isinstance(given, str) else given
            empty = ("", None) if missing else ()
            result = np.array([np.nan if w in empty else float(w) for w in every], np.float64)
    except (TypeError, ValueError, binascii.Error):
        raise BadInput(f"{name}: got something that is no list of numbers; send some.") from None
    observed = result[~np.isnan(result)] if missing else result
    if len(result) != count or not np.isfinite(observed).all() or not len(observed):
        raise BadInput(
            f"{name}: got {len(result):,} and {why}, all finite; send {count:,} finite numbers."
        )
    return result
