"""Patch: log only the name of a message that could not be handled.

Bokeh logs its whole content, which may be megabytes, and includes visitors' input.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from bokeh.protocol.message import Message

from scant_dashboard.upstream.replacing import replace


def install() -> None:
    """Patch Bokeh in this process; a second call changes nothing."""
    replace(Message, "__repr__", lambda _: _without_content)


def _without_content(message: Message[Any]) -> str:
    return f"Message {message.msgtype!r}"
