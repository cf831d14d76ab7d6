"""The messages that a page may send over its websocket, and the answers to bad ones.

Bokeh answers a message that it cannot take with the exception and its traceback. Those belong into
the server's log; the page hears a sentence and the number under which they stand there.
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

LONGEST = 200  # characters of an exception's text in the log

log = logging.getLogger(__name__)


async def _server_info(message: Any, connection: Any) -> Any:
    return connection.protocol.create("SERVER-INFO-REPLY", message.header["msgid"])


TAKEN: dict[str, Callable[[Any, Any], Any]] = {
    "PULL-DOC-REQ": ServerSession.pull,
    "PATCH-DOC": ServerSession.patch,
    "SERVER-INFO-REQ": _server_info,
}


class PageProtocol(ProtocolHandler):
    """Takes changes of the document, and requests for it; not a whole new document."""

    async def handle(self, message: Any, connection: Any) -> Any:
        """The answer to a message of the page; a sentence where it could not be taken."""
        try:
            taken = TAKEN.get(message.msgtype)
            if taken is None:
                raise ProtocolError(f"a page sent {message.msgtype}")
            return await taken(message, connection)
        except Exception:
            sentence = closing("The server could not take a change of this page")
        # Outside of the handling of the exception, which the message would else carry along.
        return connection.error(message, sentence)


def closing(sentence: str, why: str = "") -> str:
    """A sentence for the page, and the number under which the log has what it is about.

    Args:
        sentence: What the page hears, without its full stop.
        why: One line for the log; "" logs the exception at hand and where it was raised.
    """
    number = secrets.token_hex(4)
    if why:
        log.warning("fault %s: %s: %s", number, sentence, why)
    else:
        log.error("fault %s: %s%s", number, sentence, _where())
    return f"{sentence} (noted as {number})."


def _where() -> str:
    """The exception at hand for the log; what a visitor sent is in its text, so that is cut."""
    kind, error, at = sys.exc_info()
    if kind is None:
        return ""
    lines = "".join(traceback.format_tb(at))
    return f"\n{lines}{kind.__name__}: {ascii(str(error))[:LONGEST]}"
