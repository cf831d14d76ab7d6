"""A message goes to a document's browsers as it is; Bokeh has no public way to do so."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from bokeh.document import Document
from bokeh.server.session import ServerSession

from scant_dashboard.upstream import direct_message


def test_every_browser_is_sent_the_message() -> None:
    sent: list[Any] = []

    async def send_message(message: Any) -> None:
        sent.append(message)

    sockets = [SimpleNamespace(_socket=SimpleNamespace(send_message=send_message))] * 2
    session = SimpleNamespace(_subscribed_connections=sockets)
    doc: Any = SimpleNamespace(session_context=SimpleNamespace(session=session))
    message: Any = object()
    asyncio.run(direct_message.send(doc, message))
    assert sent == [message, message]


def test_a_document_without_a_session_has_none_to_send_to() -> None:
    message: Any = object()
    asyncio.run(direct_message.send(Document(), message))


def test_bokeh_has_no_public_way_still() -> None:
    public = [name for name in dir(ServerSession) if "connection" in name and name[0] != "_"]
    assert public == ["connection_count", "notify_connection_lost"]
