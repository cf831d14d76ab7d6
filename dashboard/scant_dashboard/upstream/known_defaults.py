"""Bokeh works out the default of a property anew whenever somebody asks a model for it.

A figure is some forty models of fifty properties, most of them at their defaults, and each walk
through a page asks for all of them: it was a third of what a visitor's page costs the server. A
default that no two models can tell apart is worked out once for each class.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bokeh.core.property.descriptors import PropertyDescriptor

from scant_dashboard.upstream.replacing import replace

FIXED = (str, int, float, bool, type(None))  # what nobody can change that has it


def install() -> None:
    """Patch Bokeh in this process; a second call changes nothing."""
    replace(PropertyDescriptor, "has_unstable_default", _unstable)
    replace(PropertyDescriptor, "_get_default", _default)


def _unstable(original: Callable[..., bool]) -> Callable[..., bool]:
    known: dict[tuple[type, str], bool] = {}

    def has_unstable_default(self: Any, obj: Any) -> bool:
        key = type(obj), self.name
        if key not in known:
            known[key] = original(self, obj)
        return known[key]

    return has_unstable_default


def _default(original: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[tuple[type, str], Any] = {}

    def _get_default(self: Any, obj: Any) -> Any:
        key = type(obj), self.name
        themed = self.name in (obj.__dict__.get("__themed_values__") or ())
        if key in known and not themed:
            return known[key]
        value = original(self, obj)
        if isinstance(value, FIXED) and not themed and not self.has_unstable_default(obj):
            known[key] = value
        return value

    return _get_default
