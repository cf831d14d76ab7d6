"""Panel's register of scripts in the browser keeps the parts of closed pages for good.

`panel.links.Callback.registry` is weak in its keys, but the scripts in it hold their source, which
is the key; and with it stays the session's document.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from panel.links import Callback
from panel.viewable import Viewable


def release(page: Viewable) -> None:
    """Take a page's parts out of the register, as its session ends."""
    registry: Any = Callback.registry
    for part in page.select():
        registry.pop(part, None)
