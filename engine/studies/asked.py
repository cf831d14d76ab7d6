"""The words of a question to a fitted study, as they come from a page, a script or a link."""

from __future__ import annotations

from typing import Any

from engine.errors import BadInput


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
