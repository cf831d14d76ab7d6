"""Patch: do not log browsers that disconnect while the server writes to them.

A closed tab ends its session through `on_close`. Writing meanwhile raises `WebSocketClosedError`,
which the libraries handle differently:

- Tornado's `write_message` returns a task that need not be awaited, but asyncio logs a traceback
  when its error is not retrieved ("Task exception was never retrieved"), e.g. because Panel drops
  the tasks of an ended session.
- Panel's `dispatch_tornado` writes a message in parts; if the stream closes between two of them,
  the code that changed the document gets the error.
- Panel and Bokeh log a warning for each unsent message.
- Bokeh's `on_close` fails if the keep-alive job has already noticed the disconnection.

Private API of Bokeh 3.9 and Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from bokeh.document import Document
from bokeh.server.views import ws
from panel.io import document as sending
from tornado.websocket import WebSocketClosedError, WebSocketProtocol13

from scant_dashboard.upstream.replacing import replace

log = logging.getLogger(__name__)


def install() -> None:
    """Patch the libraries in this process; a second call changes nothing."""
    replace(WebSocketProtocol13, "write_message", _retrieving_errors)
    replace(sending, "dispatch_tornado", _to_open_sockets)
    replace(sending, "_run_write_futures", lambda _: _run_write_futures)
    replace(ws.WSHandler, "send_message", lambda _: _send_message)
    replace(ws.WSHandler, "on_close", _once)


def _retrieving_errors(write: Any) -> Any:
    def write_message(*args: Any, **kwargs: Any) -> Any:
        future = write(*args, **kwargs)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    return write_message


def _to_open_sockets(dispatch: Any) -> Any:
    def dispatch_tornado(*args: Any, **kwargs: Any) -> Sequence[asyncio.Future[None]]:
        try:
            futures: Sequence[asyncio.Future[None]] = dispatch(*args, **kwargs)
        except WebSocketClosedError:
            return []
        return futures

    return dispatch_tornado


def _once(close: Any) -> Any:
    def on_close(handler: Any) -> None:
        session = handler.connection._session if handler.connection is not None else None
        if session is not None and not session.destroyed:
            close(handler)

    return on_close


async def _run_write_futures(doc: Document) -> None:
    """Like Panel's function, which warns about closed connections."""
    for future in sending._WRITE_FUTURES.pop(doc, []):
        try:
            await future
        except WebSocketClosedError:
            log.debug("a message was not sent, for its browser has gone")
        except Exception as error:
            log.warning("a message was not sent: %s", error)


async def _send_message(handler: Any, message: Any) -> None:
    """Like Bokeh's method, which warns about closed connections."""
    try:
        await message.send(handler)
    except WebSocketClosedError:
        log.debug("a message was not sent, for its browser has gone")
