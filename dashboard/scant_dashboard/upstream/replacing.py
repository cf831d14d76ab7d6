"""Replacement of library functions: once per process, with the original at `__wrapped__`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace `owner.name` by `make(original)`; idempotent.

    Args:
        owner: A module or a class.
        name: Name of one of its functions.
        make: Receives the original, which is then available at `__wrapped__`.
    """
    original = getattr(owner, name)
    if not hasattr(original, "__wrapped__"):
        setattr(owner, name, wraps(original)(make(original)))
