"""What a publication prints: the settings of its experiments.

A study's preset "as published" is built from its `published.SETTINGS`, which a test compares with
the study's settings: none may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Stated(NamedTuple):
    """Value of a setting in a publication.

    Attributes:
        value: Value that the preset "as published" gives to the setting.
        where: Section, table or equation that states it; "authors' program: …" where only their
            code does; or "not stated: …" with the reason for the value.
    """

    value: Any
    where: str


def values(settings: Mapping[str, Stated]) -> dict[str, Any]:
    """Return the values of a preset by name of the setting."""
    return {name: stated.value for name, stated in settings.items()}
