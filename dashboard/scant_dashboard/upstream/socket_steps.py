"""Bokeh's websocket handler has no public name for the steps that a page's connection takes.

Who may join a session, when a message is handled, and what a browser hears of a fault are decided
in private methods. `SocketSteps` gives each a public name, which subclasses override.

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
        """The session that was joined; None before, and after the connection has ended."""
        result: ServerSession | None = getattr(self.connection, "_session", None)
        return result

    async def join_session(self, token: str) -> None:
        """Join the session that a token names, as the connection opens."""
        await super()._async_open(token)

    async def read(self, fragment: str | bytes) -> Any:
        """Take a part of a message; returns the message that it completes, or None."""
        return await super()._receive(fragment)

    async def answer(self, message: Any) -> Any:
        """Handle a message; returns what is sent back, or None."""
        return await super()._handle(message)

    def unreadable(self, message: str) -> None:
        """End the connection after what is no message."""
        super()._protocol_error(message)

    def failed(self, message: str) -> None:
        """End the connection after a fault of the server's."""
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
