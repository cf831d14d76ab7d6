"""Websocket messages accepted from a page, and the responses to invalid ones.

Bokeh responds to a message that it cannot handle with exception and traceback. Here those are
logged, and the page gets a sentence with the number of the log entry.
"""

from __future__ import annotations

import logging
import secrets
import sys
import traceback
from collections.abc import Callable
from typing import Any

from bokeh.protocol.exceptions import ProtocolError
from bokeh.server.protocol_handler import ProtocolHandler
from bokeh.server.session import ServerSession

LONGEST = 200  # maximum characters of an exception's text in the log

log = logging.getLogger(__name__)


async def _server_info(message: Any, connection: Any) -> Any:
    return connection.protocol.create("SERVER-INFO-REPLY", message.header["msgid"])


TAKEN: dict[str, Callable[[Any, Any], Any]] = {
    "PULL-DOC-REQ": ServerSession.pull,
    "PATCH-DOC": ServerSession.patch,
    "SERVER-INFO-REQ": _server_info,
}


class PageProtocol(ProtocolHandler):
    """Accepts changes of the document and requests for it, but no replacement of the document."""

    async def handle(self, message: Any, connection: Any) -> Any:
        """Return the response to a message; an error with a sentence if it cannot be handled."""
        try:
            taken = TAKEN.get(message.msgtype)
            if taken is None:
                raise ProtocolError(f"a page sent {message.msgtype}")
            return await taken(message, connection)
        except Exception:
            if _is_left(connection):
                return connection.ok(message)  # which nobody reads
            sentence = closing("The server could not take a change of this page")
        # Outside the except block, otherwise the message would include the exception.
        return connection.error(message, sentence)


def _is_left(connection: Any) -> bool:
    """Return True if the page was left before its last message was handled."""
    try:
        return connection.session is None
    except AssertionError:  # Bokeh has detached the session
        return True


def closing(sentence: str, why: str = "") -> str:
    """Return a sentence for the page with the number of the log entry.

    Args:
        sentence: The sentence without its full stop.
        why: One line for the log; "" logs the current exception with its traceback.
    """
    number = secrets.token_hex(4)
    if why:
        log.warning("fault %s: %s: %s", number, sentence, why)
    else:
        log.error("fault %s: %s%s", number, sentence, _where())
    return f"{sentence} (noted as {number})."


def _where() -> str:
    """Format the current exception for the log, truncated: it may contain a visitor's input."""
    kind, error, at = sys.exc_info()
    if kind is None:
        return ""
    lines = "".join(traceback.format_tb(at))
    return f"\n{lines}{kind.__name__}: {ascii(str(error))[:LONGEST]}"
