"""Panel leaves messages lying that it has put off, until some other message is put off.

Messages that meet a busy socket are put off to a task (`panel.io.document._dispatch_msgs`). A task
that ends takes down the mark by which the next one knows that it has work; messages put off just
before stay where they are until some other message is put off, which may be never.

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
