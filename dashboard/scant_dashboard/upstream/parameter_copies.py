"""Patch: copy Param's parameters faster.

Param gives an object its own copy of a parameter on first access. A page has some 250 Panel
objects, and each accesses nearly all of its forty parameters: the copies took a fifth of a page's
server time, mostly to check in Python whether each slot is bound. Parameters of a class are always
bound, so that their slots can be read directly. Panel also sets the same flags on the same class
parameters for each object.

Private API of Param 2.4, pinned in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from param import parameterized
from param._utils import MUTABLE_TYPES

from scant_dashboard.upstream.replacing import replace

FLAGS = ("allow_refs", "constant", "readonly")


def install() -> None:
    """Patch Param in this process; a second call changes nothing."""
    replace(parameterized, "_instantiate_param_obj", _copied)
    replace(parameterized.Parameter, "__setattr__", _flag_set)


def _copied(original: Callable[..., Any]) -> Callable[..., Any]:
    read, write = object.__getattribute__, object.__setattr__

    cache: dict[type, bool] = {}

    def mutable(kind: type) -> bool:
        if kind not in cache:
            cache[kind] = issubclass(kind, MUTABLE_TYPES)
        return cache[kind]

    def _instantiate_param_obj(paramobj: Any, owner: Any = None) -> Any:
        if paramobj.name is None:
            return original(paramobj, owner)
        kind: Any = type(paramobj)
        made = kind.__new__(kind)
        for slot in kind._all_slots_:
            value = read(paramobj, slot)
            if slot != "default" and mutable(type(value)):
                value = copy(value)
            write(made, slot, value)
        write(made, "owner", owner)
        write(made, "watchers", {})
        return made

    return _instantiate_param_obj


def _flag_set(original: Callable[..., None]) -> Callable[..., None]:
    def set_attribute(self: Any, attribute: str, value: Any) -> None:
        if attribute in FLAGS and getattr(self, attribute, None) is value:
            return
        original(self, attribute, value)

    return set_attribute
