"""Bokeh reads websocket messages without limits of size, depth or pace.

Tornado limits the size of a frame, Bokeh has no limits: a message may have any number of frames,
its base64 text is decompressed without limit (`bokeh/core/serialization.py`), and an array may
declare a type of a gigabyte per element. Therefore messages are counted and checked here while they
arrive, before Bokeh decodes anything. Refused messages raise `ProtocolError`, and Bokeh then closes
the connection and logs one line. `bokeh/server/views/ws.py` creates a `Receiver` for each
connection; the patch makes it create ours.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
import zlib
from typing import Any

from bokeh.core.serialization import Buffer
from bokeh.core.types import ID
from bokeh.protocol.exceptions import MessageError, ProtocolError, ValidationError
from bokeh.protocol.message import Message
from bokeh.protocol.receiver import Receiver
from bokeh.server.views import ws

TEXT_LIMIT = 2**20  # bytes of JSON a message; a list takes up to 20 times its text in memory
MESSAGE_LIMIT = 4 * 2**20  # bytes a message with its binary buffers; uploads send 2 MB each
INFLATED_LIMIT = 4 * 2**20  # bytes that a message's compressed text may come to in all
DEPTH = 64  # levels of nested JSON
BUFFERS = 100  # binary buffers a message
EVENTS = 200  # changes of the document a message; browsers send them one by one
BURST = 500  # changes that are read at once
PACE = 100.0  # changes a second after that; a slider that is dragged makes 60

# The types of arrays that Bokeh itself sends.
DTYPES = frozenset(
    ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64", "object"]
)


def install() -> None:
    """Patch Bokeh in this process; a second call changes nothing."""
    patched: Any = ws
    patched.Receiver = BoundedReceiver


class BoundedReceiver(Receiver):
    """Bokeh's receiver of message fragments, with limits on size, depth and pace."""

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol)
        self._text = self._total = self._parts = 0
        self._allowance, self._last = float(BURST), time.monotonic()

    async def consume(self, fragment: str | bytes) -> Message[Any] | None:
        """Add a fragment; return the message that it completes, or None.

        Raises:
            ProtocolError: The message exceeds a limit or is not one of Bokeh's.
        """
        self._count(fragment)
        try:
            if self._parts == 1:
                _check_buffer_count(json.loads(fragment))
            message: Message[Any] | None = await super().consume(fragment)
        except (MessageError, ProtocolError, ValidationError):
            raise
        except RecursionError:
            raise ProtocolError("a message is nested too deeply") from None
        except Exception as error:
            kind = type(error).__name__
            raise ProtocolError(f"a message could not be assembled ({kind})") from None
        if message is not None:
            self._text = self._total = self._parts = 0
            check(message.content)
            await self._wait(_count_events(message.content))
        return message

    def _count(self, fragment: str | bytes) -> None:
        """Add a fragment to the sizes of its message. Raises ProtocolError over the limits."""
        if isinstance(fragment, str):
            self._text += len(fragment)
        self._total += len(fragment)
        self._parts += 1
        if self._text > TEXT_LIMIT:
            raise ProtocolError(f"a message has more than {TEXT_LIMIT} bytes of text")
        if self._total > MESSAGE_LIMIT:
            raise ProtocolError(f"a message has more than {MESSAGE_LIMIT} bytes")

    async def _wait(self, events: int) -> None:
        """Delay a message if changes come faster than `PACE`; TCP then slows the sender."""
        now = time.monotonic()
        self._allowance = min(BURST, self._allowance + (now - self._last) * PACE) - events
        self._last = now
        if self._allowance < 0:
            await asyncio.sleep(-self._allowance / PACE)


def _count_events(content: Any) -> int:
    """Return the number of changes in a message, at least 1. Raises ProtocolError over `EVENTS`."""
    events = content.get("events") if isinstance(content, dict) else None
    count = len(events) if isinstance(events, list) else 1
    if count > EVENTS:
        raise ProtocolError(f"a message has {count} changes, at most {EVENTS} may come in one")
    return max(count, 1)


def _check_buffer_count(header: dict[str, Any]) -> None:
    count = header.get("num_buffers", 0)
    if not isinstance(count, int) or not 0 <= count <= BUFFERS:
        raise ProtocolError(f"a message announces {str(count)[:20]} buffers, at most {BUFFERS} may")


def check(content: Any) -> None:
    """Check a message's decoded JSON, and replace compressed text in it by its bytes.

    Raises:
        ProtocolError: It nests deeper than `DEPTH`, its compressed text comes to more than
            `INFLATED_LIMIT`, it uses a binary buffer twice (each use is a copy), or an array has a
            type that Bokeh does not send.
    """
    remaining, used = INFLATED_LIMIT, set[str]()
    stack: list[tuple[Any, int]] = [(content, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > DEPTH:
            raise ProtocolError(f"a message nests more than {DEPTH} levels")
        if isinstance(node, list):
            stack.extend((value, depth + 1) for value in node)
        elif isinstance(node, dict):
            data = node.get("data")
            if node.get("type") == "bytes" and isinstance(data, str):
                inflated = inflate(data, remaining)
                remaining -= len(inflated)
                node["data"] = Buffer(ID("inflated"), inflated)
                continue
            if node.get("type") == "bytes" and isinstance(data, dict):
                buffer = str(data.get("id"))
                if buffer in used:
                    raise ProtocolError("a message uses a binary buffer twice")
                used.add(buffer)
            if node.get("type") == "ndarray" and str(node.get("dtype")) not in DTYPES:
                raise ProtocolError("a message has an array of an unknown type")
            stack.extend((value, depth + 1) for value in node.values())


def inflate(text: str, limit: int) -> bytes:
    """Decompress base64 text of a gzip stream; never uses more than `limit` bytes.

    Raises:
        ProtocolError: The result would exceed `limit`, or the text is no such stream.
    """
    stream = zlib.decompressobj(wbits=31)  # gzip, as Bokeh writes it
    try:
        data = stream.decompress(base64.b64decode(text, validate=True), limit + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise ProtocolError("compressed data of a message are damaged") from None
    if len(data) > limit:
        raise ProtocolError(f"data of a message decompress to more than {INFLATED_LIMIT} bytes")
    if not stream.eof or stream.unused_data:
        raise ProtocolError("compressed data of a message are damaged")
    return data
