"""A browser gets changes in their order, whether Bokeh or Panel sends them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from bokeh.core.serialization import UnknownReferenceError
from bokeh.document import Document
from bokeh.document.events import ModelChangedEvent
from bokeh.models import Column, Div
from bokeh.protocol import Protocol
from bokeh.server.connection import ServerConnection
from bokeh.server.session import ServerSession
from bokeh.server.views.ws import WSHandler
from panel.io import document as sending
from tornado.ioloop import IOLoop
from tornado.locks import Lock

from scant_dashboard.upstream import message_order


class Socket(WSHandler):
    """A socket whose parts of messages are kept, each after a moment."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.write_lock = Lock()
        self.ws_connection = cast(Any, SimpleNamespace(write_message=self._write, is_closing=bool))

    async def write_message(self, message: Any, binary: bool = False, locked: bool = True) -> None:
        await super(WSHandler, self).write_message(message, binary)

    def _write(self, message: Any, binary: bool) -> Any:
        self.parts.append(message)
        return asyncio.ensure_future(asyncio.sleep(0.001))

    def __del__(self) -> None: ...


class Visit:
    """A session with one connection, and the document as its browser has it."""

    def __init__(self) -> None:
        self.doc, self.column = Document(), Column()
        self.doc.add_root(self.column)
        self.browser = Document.from_json(cast(Any, self.doc.to_json()))
        self.session = ServerSession(cast(Any, "id"), self.doc, IOLoop.current())
        self.socket = Socket()
        self.connection = ServerConnection(Protocol(), self.socket, cast(Any, None), self.session)

    def write(self, model: Div, text: str) -> None:
        """Change a text as Panel does: sent at once where the socket is free."""
        self.doc.hold()
        model.text = text
        event = ModelChangedEvent(self.doc, model, "text", text)
        self.doc.callbacks._held_events.clear()
        self.doc.unhold()
        free = self.socket.write_lock._block._value
        how = sending.write_events if free else sending.schedule_write_events
        how(self.doc, [self.connection], [event])

    def received(self) -> list[str]:
        """Apply all messages to the browser's document; the texts in it."""
        for content in self.socket.parts[2::3]:
            self.browser.apply_json_patch(json.loads(content))
        return [child.text for child in self.browser.roots[0].children]


def visited(*callbacks: Callable[[Visit], Any]) -> list[str]:
    """Texts in a browser after some callbacks, which take the document's lock together."""

    async def main() -> list[str]:
        visit = Visit()
        await asyncio.gather(
            *(visit.session.with_document_locked(callback, visit) for callback in callbacks)
        )
        await asyncio.sleep(0.1)
        return visit.received()

    return asyncio.run(main())


def adds_and_writes(visit: Visit) -> None:
    """Bokeh is to send a new model, and Panel its text."""
    made = Div(text="new")
    visit.column.children = [made]
    visit.write(made, "written")


async def writes_while_busy(visit: Visit) -> None:
    """Panel is to send a new model as the socket is busy, and Bokeh its text once it is free."""
    made = Div(text="new")
    with await visit.socket.write_lock.acquire():
        visit.doc.hold()
        visit.column.children = [made]
        events = list(visit.doc.callbacks._held_events)
        visit.doc.callbacks._held_events.clear()
        visit.doc.unhold()
        sending.schedule_write_events(visit.doc, [visit.connection], cast(Any, events))
        await asyncio.sleep(0)
    made.text = "written"


@pytest.fixture
def as_in_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    message_order.install()
    for owner, name in (
        (ServerConnection, "send_patch_document"),
        (sending, "write_events"),
        (sending, "schedule_write_events"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name).__wrapped__)


CASES = [adds_and_writes, writes_while_busy]


@pytest.mark.parametrize("callback", CASES)
def test_changes_arrive_in_their_order(callback: Any) -> None:
    message_order.install()
    message_order.install()
    assert visited(callback) == ["written"]


def test_nothing_is_left_or_sent_twice() -> None:
    message_order.install()

    async def main() -> Visit:
        visit = Visit()
        texts = [Div(text=str(k)) for k in range(3)]

        async def change(k: int) -> None:
            visit.column.children = texts[: k + 1]
            await asyncio.sleep(0)
            visit.write(texts[k], f"written {k}")
            texts[0].text = f"once more {k}"

        await asyncio.gather(*(visit.session.with_document_locked(change, k) for k in range(3)))
        await asyncio.sleep(0.1)
        assert not message_order._unsent[visit.connection]
        return visit

    visit = asyncio.run(main())
    names = [json.loads(header)["msgid"] for header in visit.socket.parts[::3]]
    assert len(set(names)) == len(names) == 9  # three of each change
    assert visit.received() == ["once more 2", "written 1", "written 2"]


@pytest.mark.usefixtures("as_in_the_libraries")
@pytest.mark.parametrize("callback", CASES)
def test_the_libraries_need_it_still(callback: Any) -> None:
    with pytest.raises(UnknownReferenceError):
        visited(callback)
