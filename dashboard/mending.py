"""What Scant mends in Panel, so that server and browser do not come to differ.

Private API of Panel, pinned in pyproject.toml.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from bokeh.document import Document
from panel.io import document as sending
from panel.reactive import Syncable


def mend_panel() -> None:
    """Mend it in this process; a second call changes nothing."""
    _lock_events()
    _send_all()


def _lock_events() -> None:
    """Have Panel take the document's lock for events that it puts off.

    While a change from the browser waits its turn (a slider moved, a figure came into view), Panel
    puts a click behind it, and then handles the click without the lock. A handler that writes to a
    figure is stopped by Bokeh halfway.
    """
    handler: Any = Syncable._event_coroutine
    handler.lock = True  # what `panel.io.with_lock` sets on functions of one's own


def _send_all() -> None:
    """Have Panel send the messages that it has put off, always.

    Messages that meet a busy socket are put off to a task. A task that ends takes down the mark by
    which the next one knows that it has work; messages put off just before stay where they are
    until some other message is put off, which may be never.
    """
    once: Any = sending._dispatch_msgs
    if hasattr(once, "__wrapped__"):
        return

    @wraps(once)
    async def dispatch(doc: Document) -> None:
        if doc in sending._WRITE_MSGS:
            sending._WRITE_BLOCK[doc] = True
        await once(doc)

    sending._dispatch_msgs = dispatch
