"""Bokeh's own receiver takes messages of any size, and its log has all of their content."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from bokeh.protocol import Protocol
from bokeh.protocol.exceptions import ProtocolError
from bokeh.protocol.message import Message
from bokeh.protocol.receiver import Receiver
from bokeh.server.views import ws

from scant_dashboard.upstream import bounded_messages, message_names
from scant_dashboard.upstream.bounded_messages import TEXT_LIMIT


def received(receiver: Receiver, text: str) -> Message[Any]:
    async def main() -> Message[Any]:
        header = {"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 0}
        for fragment in (json.dumps(header), "{}", json.dumps({"events": [], "words": text})):
            message = await receiver.consume(fragment)
        assert message is not None
        return message

    return asyncio.run(main())


def test_what_is_too_large_is_refused() -> None:
    bounded_messages.install()
    with pytest.raises(ProtocolError):
        received(ws.Receiver(Protocol()), "x" * TEXT_LIMIT)


def test_bokeh_needs_limits_still() -> None:
    assert received(Receiver(Protocol()), "x" * TEXT_LIMIT).content


def test_a_message_in_the_log_has_no_content_of_a_visitor() -> None:
    message_names.install()
    message_names.install()
    message = received(Receiver(Protocol()), "a visitor's words")
    assert "PATCH-DOC" in repr(message)
    assert "visitor" not in repr(message)


def test_bokeh_needs_names_still() -> None:
    message_names.install()
    patched: Any = Message.__repr__
    assert "visitor" in patched.__wrapped__(received(Receiver(Protocol()), "a visitor's words"))
