"""Bokeh reads websocket messages without limits of size, depth or pace.

`bokeh/server/views/ws.py` makes a `Receiver` for each connection; it gets ours, which refuses what
is over a limit (`scant_dashboard.limits.messages`).

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from bokeh.server.views import ws

from scant_dashboard.limits.messages import BoundedReceiver


def install() -> None:
    """Patch Bokeh in this process; a second call changes nothing."""
    patched: Any = ws
    patched.Receiver = BoundedReceiver
