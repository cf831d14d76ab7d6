"""Patch: send all deferred messages.

Panel defers messages to a task when a socket is busy (`panel.io.document._dispatch_msgs`). A task
that ends resets the flag that tells the next one of waiting messages; messages deferred just
before stay unsent until another message is deferred, which may never happen.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bokeh.document import Document
from panel.io import document as sending

from scant_dashboard.upstream.replacing import replace

Dispatch = Callable[[Document], Awaitable[None]]


def install() -> None:
    """Patch Panel in this process; a second call changes nothing."""
    replace(sending, "_dispatch_msgs", _marked)


def _marked(once: Dispatch) -> Dispatch:
    async def dispatch(doc: Document) -> None:
        if doc in sending._WRITE_MSGS:
            sending._WRITE_BLOCK[doc] = True
        await once(doc)

    return dispatch
