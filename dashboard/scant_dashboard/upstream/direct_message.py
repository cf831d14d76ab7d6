"""Bokeh sends a message to browsers only as a change of their document.

Which costs some milliseconds a session to find out what has changed and to put it into words. There
is no public way to a session's connections, by which one message could go to many browsers.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from bokeh.document import Document
from bokeh.protocol.message import Message


async def send(doc: Document, message: Message[Any]) -> None:
    """Send a message to a document's browsers past the document, on which nothing changes."""
    session: Any = getattr(doc.session_context, "session", None)
    if session is not None:
        for connection in list(session._subscribed_connections):
            await connection._socket.send_message(message)
