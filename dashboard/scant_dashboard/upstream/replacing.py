"""How a function of a library is replaced: once a process, with the original at `__wrapped__`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put `make(original)` in place of `owner.name`; a second call changes nothing.

    Args:
        owner: A module or a class.
        name: Of one of its functions.
        make: Is given the original, which tests find at `__wrapped__` to see whether it is mended.
    """
    original = getattr(owner, name)
    if not hasattr(original, "__wrapped__"):
        setattr(owner, name, wraps(original)(make(original)))
