"""Bokeh reads websocket messages without limits of size, depth or pace.

`bokeh/server/views/ws.py` makes a `Receiver` for each connection; it gets ours, which refuses what
is over a limit (`dashboard.limits.messages`). Bokeh also writes the whole content of a message that
could not be handled into the log: megabytes, and whatever a visitor has typed. Its name suffices.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from bokeh.protocol.message import Message
from bokeh.server.views import ws

from dashboard.limits.messages import BoundedReceiver


def install() -> None:
    """Patch Bokeh in this process; a second call changes nothing."""
    patched: Any = ws
    patched.Receiver = BoundedReceiver
    Message.__repr__ = _without_content  # type: ignore[method-assign]


def _without_content(message: Message[Any]) -> str:
    return f"Message {message.msgtype!r}"
