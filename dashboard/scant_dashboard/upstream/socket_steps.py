"""Public names for the steps of Bokeh's websocket handler.

Bokeh decides in private methods who may join a session, when a message is handled, and how a
browser is informed of an error. `SocketSteps` gives each a public name for subclasses to override.

Private API of Bokeh 3.9 and Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from bokeh.server.session import ServerSession
from panel.io.server import WSHandler


class SocketSteps(WSHandler):
    """A websocket handler whose steps are overridden by public names."""

    application: Any
    handler: Any
    receiver: Any
    connection: Any

    @property
    def session(self) -> ServerSession | None:
        """The joined session; None before joining and after the end of the connection."""
        result: ServerSession | None = getattr(self.connection, "_session", None)
        return result

    async def join_session(self, token: str) -> None:
        """Join the session named by a token, when the connection opens."""
        await super()._async_open(token)

    async def read(self, fragment: str | bytes) -> Any:
        """Read a message fragment; return the message that it completes, or None."""
        return await super()._receive(fragment)

    async def answer(self, message: Any) -> Any:
        """Handle a message; return the response, or None."""
        return await super()._handle(message)

    def unreadable(self, message: str) -> None:
        """Close the connection after an invalid message."""
        super()._protocol_error(message)

    def failed(self, message: str) -> None:
        """Close the connection after an error of the server."""
        super()._internal_error(message)

    async def _async_open(self, token: str) -> None:
        await self.join_session(token)

    async def _receive(self, fragment: str | bytes) -> Any:
        return await self.read(fragment)

    async def _handle(self, message: Any) -> Any:
        return await self.answer(message)

    def _protocol_error(self, message: str) -> None:
        self.unreadable(message)

    def _internal_error(self, message: str) -> None:
        self.failed(message)
