"""A browser that leaves while it is written to leaves no line in the log."""

from __future__ import annotations

import asyncio
import gc
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from bokeh.document import Document
from bokeh.server.connection import ServerConnection
from bokeh.server.views.ws import WSHandler
from panel.io import document as sending
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler, WebSocketProtocol13

from scant_dashboard.upstream import closed_sockets


@pytest.fixture(autouse=True)
def installed() -> None:
    closed_sockets.install()


class Protocol(WebSocketProtocol13):
    """A connection whose stream closes after some frames; those before fail, too, but later."""

    def __init__(self, frames: int) -> None:
        self._message_bytes_out, self._compressor, self.frames = 0, None, frames

    def _write_frame(self, fin: bool, opcode: int, data: bytes, flags: int = 0) -> Any:
        self.frames -= 1
        if self.frames < 0:
            raise StreamClosedError
        written = asyncio.get_running_loop().create_future()
        written.set_exception(StreamClosedError())
        return written

    def is_closing(self) -> bool:
        return False

    def __del__(self) -> None: ...


class Socket(WebSocketHandler):
    def __init__(self, frames: int) -> None:
        self.ws_connection = Protocol(frames)


MESSAGE: Any = SimpleNamespace(header_json="{}", metadata_json="{}", content_json="{}", _buffers=[])


@pytest.mark.slow
def test_parts_of_a_message_that_nobody_awaits(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio says "Task exception was never retrieved" when such a task goes."""

    async def main() -> None:
        for frames in (3, 1):  # gone after the message, and between two of its parts
            connection: Any = SimpleNamespace(_socket=Socket(frames))
            futures = sending.dispatch_tornado(connection, msg=MESSAGE)
            assert len(futures) == (3 if frames == 3 else 0)
            await asyncio.sleep(0.01)
            del futures
        gc.collect()

    asyncio.run(main())
    assert caplog.records == []


@pytest.mark.parametrize("error", [WebSocketClosedError(), OSError("another trouble")])
def test_only_other_troubles_are_warned_of(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        doc = Document()
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(error)
        sending._WRITE_FUTURES[doc] = [failed]
        await sending._run_write_futures(doc)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert len(caplog.records) == isinstance(error, OSError)


def test_bokehs_own_messages(caplog: pytest.LogCaptureFixture) -> None:
    async def send(_: Any) -> None:
        raise WebSocketClosedError

    message: Any = SimpleNamespace(send=send)
    with caplog.at_level(logging.WARNING):
        asyncio.run(WSHandler.send_message(None, message))  # type: ignore[arg-type]
    assert caplog.records == []


@pytest.mark.parametrize("session", [None, SimpleNamespace(destroyed=True)])
def test_a_connection_that_closes_after_its_session_was_let_go(session: Any) -> None:
    handler: Any = SimpleNamespace(
        connection=ServerConnection.__new__(ServerConnection),
        close_code=1001,
        close_reason="",
        application=None,
    )
    handler.connection._session = session
    WSHandler.on_close(handler)


def test_a_connection_that_closes_ends_its_session() -> None:
    ended: list[str] = []
    session = SimpleNamespace(destroyed=False, notify_connection_lost=lambda: ended.append("lost"))
    connection = ServerConnection.__new__(ServerConnection)
    connection._session = session  # type: ignore[assignment]
    application = SimpleNamespace(client_lost=lambda _: ended.append("client"))
    WSHandler.on_close(
        SimpleNamespace(  # type: ignore[arg-type]
            connection=connection, close_code=1001, close_reason="", application=application
        )
    )
    assert ended == ["lost", "client"]


def original(function: Any) -> Any:
    """A function as its library has it."""
    return function.__wrapped__


@pytest.mark.slow
def test_tornado_needs_it_still(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = original(WebSocketProtocol13.write_message)
    monkeypatch.setattr(WebSocketProtocol13, "write_message", write)

    async def main() -> None:
        connection: Any = SimpleNamespace(_socket=Socket(3))
        sending.dispatch_tornado(connection, msg=MESSAGE)
        await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(main())
    assert "never retrieved" in caplog.text


def test_panel_needs_it_still(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        connection: Any = SimpleNamespace(_socket=Socket(1))
        with pytest.raises(WebSocketClosedError):
            original(sending.dispatch_tornado)(connection, msg=MESSAGE)
        doc = Document()
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(WebSocketClosedError())
        sending._WRITE_FUTURES[doc] = [failed]
        await original(sending._run_write_futures)(doc)

    logging.getLogger("panel").addHandler(caplog.handler)
    try:
        asyncio.run(main())
    finally:
        logging.getLogger("panel").removeHandler(caplog.handler)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_bokeh_needs_it_still(caplog: pytest.LogCaptureFixture) -> None:
    async def send(_: Any) -> None:
        raise WebSocketClosedError

    bokeh = logging.getLogger("bokeh")
    bokeh.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.WARNING, logger="bokeh"):
            asyncio.run(original(WSHandler.send_message)(None, SimpleNamespace(send=send)))
    finally:
        bokeh.removeHandler(caplog.handler)
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    gone = ServerConnection.__new__(ServerConnection)
    gone._session = None  # type: ignore[assignment]
    handler = SimpleNamespace(connection=gone, close_code=1001, close_reason="", application=None)
    with pytest.raises(AssertionError):
        original(WSHandler.on_close)(handler)
