"""Clicks that come right behind another change wait for their document's lock, as all else does.

While a change from the browser waits its turn (a slider moved, a figure came into view), Panel puts
a click behind it, and then handles the click without the lock. A handler that writes to a figure is
stopped by Bokeh halfway: server and browser differ from then on. Private API of Panel, pinned in
pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from panel.reactive import Syncable


def lock_events() -> None:
    """Have Panel take the lock for events that it puts off."""
    handler: Any = Syncable._event_coroutine
    handler.lock = True  # what `panel.io.with_lock` sets on functions of one's own
