"""Patch: remove closed pages from Panel's registry of browser scripts.

`panel.links.Callback.registry` has weak keys, but the scripts in it refer to their source, which is
the key, and the source refers to the session's document: neither is ever freed.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from panel.links import Callback
from panel.viewable import Viewable


def release(page: Viewable) -> None:
    """Remove a page's components from the registry; for the end of its session."""
    registry: Any = Callback.registry
    for part in page.select():
        registry.pop(part, None)
