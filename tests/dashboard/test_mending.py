"""What is mended in Panel: events that it puts off take the lock, messages are all sent."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from bokeh.document import Document
from panel.io import document as sending
from panel.io.state import set_curdoc, state
from panel.widgets import Button

from dashboard.mending import mend_panel


def test_an_event_that_is_put_off_takes_the_lock() -> None:
    doc: Any = Document()
    doc._session_context = lambda: MagicMock(session=None)  # as on a server
    mend_panel()
    with set_curdoc(doc):
        state.execute(partial(Button()._event_coroutine, doc, SimpleNamespace()), schedule=True)
    (waiting,) = doc.session_callbacks
    callback: Any = waiting.callback
    assert not getattr(callback, "nolock", False)


class Socket:
    """One that keeps what is written to it."""


def test_a_message_put_off_while_the_one_before_is_being_written_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mend_panel()
    mend_panel()
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
    assert written == ["earlier", "later"]
    assert doc not in sending._WRITE_MSGS
    assert doc not in sending._WRITE_BLOCK
