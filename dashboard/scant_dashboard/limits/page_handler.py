"""Page requests behind the limits on builds and sessions."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from bokeh.server.server import Server
from bokeh.server.session import ServerSession
from panel.io.server import DocHandler, WSHandler
from tornado.web import authenticated

from scant_dashboard.limits.client import Busy, Client
from scant_dashboard.limits.gate import PageGate, Turn, Withdrawn
from scant_dashboard.limits.message_turns import BoundedSocket, MessageTurns
from scant_dashboard.limits.sessions import LiveSessions
from scant_dashboard.template import assets
from scant_dashboard.upstream.server_parts import application


@dataclass
class PageLimits:
    """What the page requests of a server share.

    Attributes:
        gate: Where requests wait for their page to be built.
        sessions: The sessions that live.
        messages: Where messages of open pages wait for each other.
    """

    gate: PageGate = field(default_factory=PageGate)
    sessions: LiveSessions = field(default_factory=LiveSessions)
    messages: MessageTurns = field(default_factory=MessageTurns)


class BoundedPages:
    """Mixed into a handler of page requests: pages are built in turns, and sessions counted."""

    limits: PageLimits  # these two are set on the class that `bound_pages` makes
    key: str
    _turn: Turn | None = None

    @authenticated  # before the gate: who has to log in first neither waits nor takes a turn
    async def get(self: Any, *args: Any, **kwargs: Any) -> None:
        """Build the page when its turn has come, or answer with a sentence that reloads itself."""
        client = Client.of(self.request, self.key)
        self._turn = self.limits.gate.turn(client.address, client.visitor)
        try:
            async with self._turn:
                self.limits.sessions.check(client)
                await super().get(*args, **kwargs)  # type: ignore[misc]
        except Withdrawn:
            return  # nobody is there to answer
        except Busy as busy:
            self.set_status(busy.status)
            self.set_header("Retry-After", str(busy.seconds))
            self.set_header("Cache-Control", "no-store")
            self.set_header("Content-Type", "text/html; charset=utf-8")
            self.finish(busy_page(busy))

    def on_connection_close(self: Any) -> None:
        """The client went away; a build that has not begun does not begin."""
        if self._turn is not None:
            self._turn.withdraw()
        super().on_connection_close()  # type: ignore[misc]

    async def get_session(self: Any) -> ServerSession:
        """The session that the page is built in, counted for its client."""
        session: ServerSession = await super().get_session()  # type: ignore[misc]
        self.limits.sessions.add(session, Client.of(self.request, self.key))
        return session


def bound_pages(server: Server, limits: PageLimits, key: str) -> None:
    """Put the limits before every page and websocket of a server.

    Args:
        server: With its addresses put up.
        limits: The server's.
        key: What signs its visitor cookies.
    """
    for rule in application(server).wildcard_router.rules:
        target: Any = rule.target
        if not isinstance(target, type) or issubclass(target, BoundedPages | BoundedSocket):
            continue
        if issubclass(target, DocHandler):
            shared: dict[str, Any] = {"limits": limits, "key": key}
            rule.target = type("BoundedPage", (BoundedPages, target), shared)
        elif issubclass(target, WSHandler):
            shared = {"turns": limits.messages, "key": key}
            rule.target = type("BoundedPageSocket", (BoundedSocket, target), shared)


def busy_page(busy: Busy) -> str:
    """A page with the sentence, which loads itself again after a while."""
    template = (assets() / "html" / "busy.html").read_text(encoding="utf-8")
    return template.replace("{seconds}", str(busy.seconds)).replace(
        "{sentence}", html.escape(str(busy))
    )
