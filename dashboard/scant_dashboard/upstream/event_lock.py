"""Panel handles events that it has put off without the document's lock.

While a change from the browser waits its turn (a slider moved, a figure came into view), Panel
puts a click behind it, and then handles the click without the lock. A handler that writes to a
figure is stopped by Bokeh halfway ("_pending_writes should be non-None").

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from panel.reactive import Syncable


def install() -> None:
    """Patch Panel in this process; a second call changes nothing."""
    handler: Any = Syncable._event_coroutine
    handler.lock = True  # what `panel.io.with_lock` sets on functions of one's own
