"""Patch: send a document's changes to the browser in the order in which they were made.

Bokeh makes a message as a document changes, and sends it at the end of the callback. Panel sends
its own at once (`panel.io.document.unlocked`), or leaves them to a task that looks every 10 ms
whether the socket is free. So one overtakes another: the browser is told of a model before it gets
it, or after it has dropped it ("reference p1234 isn't known"). The task may also end without having
sent what was left to it meanwhile. Here messages of both wait in one queue for each connection.

Private API of Bokeh 3.9 and Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from bokeh.document import Document
from bokeh.document.events import DocumentPatchedEvent
from bokeh.protocol.message import Message
from bokeh.server.connection import ServerConnection
from panel.io import document as sending

from scant_dashboard.upstream.replacing import replace

Write = Callable[[Document, list[ServerConnection], list[DocumentPatchedEvent]], None]

_unsent: WeakKeyDictionary[ServerConnection, deque[Message[Any]]] = WeakKeyDictionary()


def install() -> None:
    """Patch the libraries in this process; a second call changes nothing."""
    replace(ServerConnection, "send_patch_document", lambda _: _send_patch_document)
    replace(sending, "write_events", _after_earlier_ones)
    replace(sending, "schedule_write_events", lambda _: _schedule_write_events)


def _queued(connection: ServerConnection, events: list[DocumentPatchedEvent]) -> Message[Any]:
    """Return a message of events, the last that waits."""
    message: Message[Any] = connection.protocol.create("PATCH-DOC", events)
    _unsent.setdefault(connection, deque()).append(message)
    return message


async def _send(connection: ServerConnection, message: Message[Any]) -> None:
    """Send a message after those before it, unless a later one has already taken it along."""
    unsent = _unsent[connection]
    while message in unsent:
        await connection._socket.send_message(unsent.popleft())


def _send_patch_document(
    connection: ServerConnection, event: DocumentPatchedEvent
) -> Awaitable[None]:
    """Like Bokeh's method: the message is made now, and sent when the result is awaited."""
    return _send(connection, _queued(connection, [event]))


def _schedule_write_events(
    doc: Document, connections: list[ServerConnection], events: list[DocumentPatchedEvent]
) -> None:
    """Like Panel's function, which is called while the socket is busy."""
    for connection in connections:
        sending._dispatch_write_task(doc, _send, connection, _queued(connection, events))


def _after_earlier_ones(write: Write) -> Write:
    def write_events(
        doc: Document, connections: list[ServerConnection], events: list[DocumentPatchedEvent]
    ) -> None:
        """Write messages that wait, then those of the events; the socket is free."""
        for connection in connections:
            unsent = _unsent.get(connection, deque())
            while unsent:
                futures = sending.dispatch_tornado(connection, msg=unsent.popleft())
                sending._WRITE_FUTURES.setdefault(doc, []).extend(futures)
        write(doc, connections, events)

    return write_events
