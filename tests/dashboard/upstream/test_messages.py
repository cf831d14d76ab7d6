"""What a browser may send: bombs are refused before they take memory, the rest goes through."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from bokeh.core.serialization import Deserializer
from bokeh.protocol import Protocol
from bokeh.protocol.exceptions import MessageError, ProtocolError, ValidationError
from bokeh.protocol.message import Message
from bokeh.server.views import ws

from scant_dashboard.upstream import bounded_messages
from scant_dashboard.upstream.bounded_messages import BoundedReceiver, inflate

REFUSED = (MessageError, ProtocolError, ValidationError)  # on which Bokeh closes the connection


def send(
    content: Any, *buffers: bytes, receiver: BoundedReceiver | None = None, **header: Any
) -> Message[Any] | None:
    """Pass a message through a receiver as the websocket does; `content` may be its JSON."""
    receiver = receiver or BoundedReceiver(Protocol())
    text = content if isinstance(content, str) else json.dumps(content)
    fragments: list[str | bytes] = [
        json.dumps({"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": len(buffers)} | header),
        "{}",
        text,
    ]
    for k, buffer in enumerate(buffers):
        fragments += [json.dumps({"id": f"b{k}"}), buffer]

    async def main() -> Message[Any] | None:
        message = None
        for fragment in fragments:
            message = await receiver.consume(fragment)
        return message

    return asyncio.run(main())


def events(data: Any, count: int = 1) -> dict[str, Any]:
    event = {"kind": "MessageSent", "msg_type": "x", "msg_data": data}
    return {"events": [event] * count}


def zipped(data: bytes) -> dict[str, str]:
    return {"type": "bytes", "data": base64.b64encode(gzip.compress(data)).decode()}


def array(data: Any, **changed: Any) -> dict[str, Any]:
    rep = {"type": "ndarray", "array": data, "shape": [2], "dtype": "float64", "order": "little"}
    return rep | changed


def test_a_bomb_is_refused_without_the_memory_it_asks_for() -> None:
    bomb = base64.b64encode(gzip.compress(bytes(100_000_000))).decode()
    assert len(bomb) < bounded_messages.TEXT_LIMIT
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="decompress to more than"):
            inflate(bomb, bounded_messages.INFLATED_LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 4 * bounded_messages.INFLATED_LIMIT
    finally:
        tracemalloc.stop()
    with pytest.raises(ProtocolError, match="decompress to more than"):
        send(events({"type": "bytes", "data": bomb}))


def test_many_small_bombs_are_one() -> None:
    fits = zipped(bytes(bounded_messages.INFLATED_LIMIT // 3))
    assert send(events([fits, fits, fits])) is not None
    with pytest.raises(ProtocolError, match="decompress to more than"):
        send(events([fits, fits, fits, fits]))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[" * 900_000, "nested|decoded"),
        ("[" * 200 + "]" * 200, "nests more than"),
        (events(array([], dtype="U100000000")), "unknown type"),
        (events(array([], dtype=["V"])), "unknown type"),
        (events(0, bounded_messages.EVENTS + 1), "changes"),
        ({"x": " " * bounded_messages.TEXT_LIMIT}, "bytes of text"),
        (events({"type": "bytes", "data": "no base64!"}), "damaged"),
        (events({"type": "bytes", "data": "bm8gZ3ppcA=="}), "damaged"),
        (events({"type": "bytes", "data": zipped(b"whole")["data"][:-8]}), "damaged"),
    ],
    ids=lambda value: None if isinstance(value, str) and len(value) < 30 else "-",
)
def test_what_else_is_refused(content: Any, why: str) -> None:
    with pytest.raises(REFUSED, match=why):
        send(content)


@pytest.mark.parametrize("count", [-1, 10**9, "7", None, 1.5])
def test_a_number_of_buffers_that_cannot_be(count: Any) -> None:
    with pytest.raises(REFUSED, match="buffers"):
        send({}, num_buffers=count)


def test_buffers_count_together_and_each_is_used_once() -> None:
    half = bytes(bounded_messages.MESSAGE_LIMIT // 2)
    with pytest.raises(ProtocolError, match="more than"):
        send({}, half, half, half)
    used = {"type": "bytes", "data": {"id": "b0"}}
    with pytest.raises(ProtocolError, match="twice"):
        send(events([array(used), array(used)]), bytes(16))


@pytest.mark.parametrize("header", ["[]", "7", '{"msgid": "1"}', '{"msgid": 1, "msgtype": []}'])
def test_a_header_that_is_none(header: str) -> None:
    async def main() -> None:
        receiver = BoundedReceiver(Protocol())
        for fragment in (header, "{}", "{}"):
            await receiver.consume(fragment)

    with pytest.raises(REFUSED):
        asyncio.run(main())


def test_what_browsers_send_arrives_unchanged() -> None:
    numbers = np.array([1.5, 2.5])
    used = {"type": "bytes", "data": {"id": "b0"}}
    content = events([array(used), array(zipped(numbers.tobytes())), {"a": [1, None, "x"]}])
    message: Any = send(content, numbers.tobytes())
    (event,) = Deserializer().deserialize(message.payload)["events"]
    binary, text, rest = event["msg_data"]
    assert np.array_equal(binary, numbers)
    assert np.array_equal(text, numbers)
    assert rest == {"a": [1, None, "x"]}


def test_one_message_after_another_is_counted_anew() -> None:
    receiver = BoundedReceiver(Protocol())
    for _ in range(8):
        assert send({}, bytes(bounded_messages.MESSAGE_LIMIT // 2), receiver=receiver) is not None


def test_a_flood_of_changes_is_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(bounded_messages.asyncio, "sleep", sleep)
    monkeypatch.setattr(bounded_messages.time, "monotonic", lambda: 100.0)
    receiver = BoundedReceiver(Protocol())
    for _ in range(bounded_messages.BURST // bounded_messages.EVENTS):
        send(events(0, bounded_messages.EVENTS), receiver=receiver)
    send(events(0, bounded_messages.BURST % bounded_messages.EVENTS), receiver=receiver)
    assert pauses == []
    send(events(0, 100), receiver=receiver)
    send({}, receiver=receiver)
    assert pauses == [100 / bounded_messages.PACE, 101 / bounded_messages.PACE]


def test_bokeh_uses_it() -> None:
    bounded_messages.install()
    assert ws.Receiver is BoundedReceiver
