"""Patch: handle deferred events with the document's lock.

While a change from the browser is pending (a moved slider, a figure that became visible), Panel
defers clicks, and then handles them without the lock. Bokeh interrupts a handler that writes to a
figure then ("_pending_writes should be non-None").

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from panel.reactive import Syncable


def install() -> None:
    """Patch Panel in this process; a second call changes nothing."""
    handler: Any = Syncable._event_coroutine
    handler.lock = True  # like `panel.io.with_lock`
