"""Page requests subject to limits on builds and sessions."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from bokeh.server.server import Server
from bokeh.server.session import ServerSession
from panel.io.server import DocHandler, WSHandler
from tornado.web import authenticated

from scant_dashboard.engine_text import translated
from scant_dashboard.limits.client import Busy, Client
from scant_dashboard.limits.gate import PageGate, Turn, Withdrawn
from scant_dashboard.limits.message_turns import BoundedSocket, MessageTurns
from scant_dashboard.limits.sessions import LiveSessions
from scant_dashboard.template import assets
from scant_dashboard.translate import COOKIE, chosen, speaking, spoken, tr
from scant_dashboard.upstream.server_parts import application


@dataclass
class PageLimits:
    """Limits shared by the page requests of a server.

    Attributes:
        gate: Queue of page builds.
        sessions: Live sessions.
        messages: Queue of messages of open pages.
    """

    gate: PageGate = field(default_factory=PageGate)
    sessions: LiveSessions = field(default_factory=LiveSessions)
    messages: MessageTurns = field(default_factory=MessageTurns)


class BoundedPages:
    """Page-handler mixin: pages are built in turns, and sessions are counted."""

    limits: PageLimits  # set by `bound_pages`, like `key`
    key: str
    _turn: Turn | None = None

    @authenticated  # before the gate, so that unauthenticated requests take no turn
    async def get(self: Any, *args: Any, **kwargs: Any) -> None:
        """Build the page in its turn, or send a sentence on a page that reloads itself."""
        client = Client.of(self.request, self.key)
        self._turn = self.limits.gate.turn(client.address, client.visitor)
        try:
            async with self._turn:
                self.limits.sessions.check(client)
                await super().get(*args, **kwargs)  # type: ignore[misc]
        except Withdrawn:
            return  # the client has disconnected
        except Busy as busy:
            self.set_status(busy.status)
            self.set_header("Retry-After", str(busy.seconds))
            self.set_header("Cache-Control", "no-store")
            self.set_header("Content-Type", "text/html; charset=utf-8")
            query = {name: self.get_query_argument(name) for name in self.request.query_arguments}
            with speaking(chosen(query, self.get_cookie(COOKIE, "") or "")):
                self.finish(busy_page(busy))

    def on_connection_close(self: Any) -> None:
        """Cancel a build that has not begun when the client disconnects."""
        if self._turn is not None:
            self._turn.withdraw()
        super().on_connection_close()  # type: ignore[misc]

    async def get_session(self: Any) -> ServerSession:
        """Return the page's session, counted for its client."""
        session: ServerSession = await super().get_session()  # type: ignore[misc]
        self.limits.sessions.add(session, Client.of(self.request, self.key))
        return session


def bound_pages(server: Server, limits: PageLimits, key: str) -> None:
    """Install the limits on every page and websocket of a server.

    Args:
        server: Server with its routes installed.
        limits: The limits.
        key: Key that signs visitor cookies.
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
    """Return a page with the message, which reloads itself after some seconds."""
    page = (assets() / "html" / "busy.html").read_text(encoding="utf-8")
    page = page.replace("{seconds}", str(busy.seconds)).replace("{language}", spoken())
    page = page.replace("{title}", html.escape(tr("One moment")))
    return page.replace("{sentence}", html.escape(translated(str(busy))))
