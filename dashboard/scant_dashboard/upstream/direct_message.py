"""Send a message to browsers without a change of their document.

With Bokeh's public API a message is a change of the document, which takes some milliseconds per
session to detect and serialize. There is no public access to a session's connections, by which one
message could be sent to many browsers.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from bokeh.document import Document
from bokeh.protocol.message import Message


async def send(doc: Document, message: Message[Any]) -> None:
    """Send a message to a document's browsers, without changing the document."""
    session: Any = getattr(doc.session_context, "session", None)
    if session is not None:
        for connection in list(session._subscribed_connections):
            await connection._socket.send_message(message)
