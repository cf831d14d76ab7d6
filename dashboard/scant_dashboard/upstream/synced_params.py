"""Patch: determine the synced parameters of an object once.

Panel determines them again for each parameter, which is quadratic in their number, some forty per
object.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from panel.reactive import Syncable

from scant_dashboard.upstream.replacing import replace


def install() -> None:
    """Patch Panel in this process; a second call changes nothing."""
    replace(Syncable, "_init_params", _once)


def _once(original: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    def _init_params(self: Any) -> dict[str, Any]:
        synced = set(self._synced_params)
        values = {name: getattr(self, name) for name in self.param if name in synced}
        return {name: value for name, value in values.items() if value is not None}

    return _init_params
