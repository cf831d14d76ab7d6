"""No message is left lying that was put off while the one before was being written."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import MagicMock

import pytest
from bokeh.document import Document
from panel.io import document as sending

from scant_dashboard.upstream import unsent_messages


class Socket:
    """One that keeps what is written to it."""


def put_off_two(monkeypatch: pytest.MonkeyPatch) -> tuple[Document, list[Any]]:
    """Put one message off as the one before has just gone out; returns what was written."""
    doc: Any = Document()
    written: list[Any] = []

    async def case() -> None:
        first = asyncio.get_running_loop().create_future()

        def write(connection: Any, events: Any = None, msg: Any = None) -> list[Any]:
            written.append(msg)
            return [first] if len(written) == 1 else []

        monkeypatch.setitem(sending.extra_socket_handlers, Socket, write)
        connection: Any = MagicMock(_socket=Socket())
        connection.protocol.create = lambda kind, events: events
        earlier: Any = "earlier"
        later: Any = "later"
        sending.schedule_write_events(doc, [connection], earlier)
        await asyncio.sleep(0)  # it is being written
        first.set_result(None)  # written; its task goes on next, before one that begins now
        sending.schedule_write_events(doc, [connection], later)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(case())
    return doc, written


def test_both_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    unsent_messages.install()
    unsent_messages.install()
    doc, written = put_off_two(monkeypatch)
    assert written == ["earlier", "later"]
    assert doc not in sending._WRITE_MSGS
    assert doc not in sending._WRITE_BLOCK


def test_panel_needs_it_still(monkeypatch: pytest.MonkeyPatch) -> None:
    unsent_messages.install()
    patched: Any = sending._dispatch_msgs
    monkeypatch.setattr(sending, "_dispatch_msgs", patched.__wrapped__)
    doc, written = put_off_two(monkeypatch)
    assert written == ["earlier"]
    sending._WRITE_MSGS.pop(doc)
