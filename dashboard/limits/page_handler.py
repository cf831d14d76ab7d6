"""Page requests behind the limits on builds and sessions."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from bokeh.server.server import Server
from bokeh.server.session import ServerSession
from panel.io.server import DocHandler

from dashboard import shell
from dashboard.limits.client import Busy, Client
from dashboard.limits.gate import PageGate, Turn, Withdrawn
from dashboard.limits.sessions import LiveSessions


@dataclass
class PageLimits:
    """What the page requests of a server share.

    Attributes:
        gate: Where requests wait for their page to be built.
        sessions: The sessions that live.
    """

    gate: PageGate = field(default_factory=PageGate)
    sessions: LiveSessions = field(default_factory=LiveSessions)


class BoundedDocHandler(DocHandler):
    """Panel's handler of page requests: builds in turns, sessions counted."""

    _turn: Turn | None = None
    limits: PageLimits  # set on the subclass that `bound_pages` makes
    key: str

    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Build the page when its turn has come, or answer with a sentence that reloads itself."""
        client = Client.of(self.request, self.key)
        self._turn = self.limits.gate.turn(client.address, client.visitor)
        try:
            async with self._turn:
                self.limits.sessions.check(client)
                await super().get(*args, **kwargs)
        except Withdrawn:
            return  # nobody is there to answer
        except Busy as busy:
            self.set_status(busy.status)
            self.set_header("Retry-After", str(busy.seconds))
            self.set_header("Cache-Control", "no-store")
            self.set_header("Content-Type", "text/html; charset=utf-8")
            self.finish(busy_page(busy))

    def on_connection_close(self) -> None:
        """The client went away; a build that has not begun does not begin."""
        if self._turn is not None:
            self._turn.withdraw()
        super().on_connection_close()

    async def get_session(self) -> ServerSession:
        session: ServerSession = await super().get_session()
        self.limits.sessions.add(session, Client.of(self.request, self.key))
        return session


def bound_pages(server: Server, limits: PageLimits, key: str) -> None:
    """Put the limits before every page of a server; `key` signs its visitor cookies."""
    handler = type("BoundedDocHandler", (BoundedDocHandler,), {"limits": limits, "key": key})
    for rule in server._tornado.wildcard_router.rules:
        if rule.target is DocHandler:
            rule.target = handler


def busy_page(busy: Busy) -> str:
    """A page with the sentence, which loads itself again after a while."""
    template = (shell.assets() / "busy.html").read_text(encoding="utf-8")
    return template.replace("{seconds}", str(busy.seconds)).replace(
        "{sentence}", html.escape(str(busy))
    )
