"""Patch: cache the defaults of Bokeh's properties.

Bokeh computes the default of a property whenever it is read. A figure has some forty models of
fifty properties, most of them at their defaults, and each traversal of a page reads all of them,
which took a third of a page's server time. Immutable defaults are computed once per class.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bokeh.core.property.descriptors import PropertyDescriptor

from scant_dashboard.upstream.replacing import replace

FIXED = (str, int, float, bool, type(None))  # immutable types


def install() -> None:
    """Patch Bokeh in this process; a second call changes nothing."""
    replace(PropertyDescriptor, "has_unstable_default", _unstable)
    replace(PropertyDescriptor, "_get_default", _default)


def _unstable(original: Callable[..., bool]) -> Callable[..., bool]:
    cache: dict[tuple[type, str], bool] = {}

    def has_unstable_default(self: Any, obj: Any) -> bool:
        key = type(obj), self.name
        if key not in cache:
            cache[key] = original(self, obj)
        return cache[key]

    return has_unstable_default


def _default(original: Callable[..., Any]) -> Callable[..., Any]:
    cache: dict[tuple[type, str], Any] = {}

    def _get_default(self: Any, obj: Any) -> Any:
        key = type(obj), self.name
        themed = self.name in (obj.__dict__.get("__themed_values__") or ())
        if key in cache and not themed:
            return cache[key]
        value = original(self, obj)
        if isinstance(value, FIXED) and not themed and not self.has_unstable_default(obj):
            cache[key] = value
        return value

    return _get_default
