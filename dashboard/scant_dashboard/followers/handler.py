"""A followed run's page, and the stream of what changes on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from bokeh.server.views.auth_request_handler import AuthRequestHandler
from tornado.iostream import StreamClosedError
from tornado.web import authenticated

from scant_dashboard.auth.sessions import login_of
from scant_dashboard.auth.visitor_cookie import COOKIE, verify
from scant_dashboard.followers.channel import GZIP_BEGINS, Channel, event, piece
from scant_dashboard.followers.followers import Followers
from scant_dashboard.followers.wanted import Wanted
from scant_dashboard.frame.site import Site
from scant_dashboard.limits.client import Busy, Client
from scant_dashboard.server.answers import Answer
from scant_dashboard.static_page.handler import LIVE, OVER
from scant_dashboard.static_page.still import Still

BEAT = 15.0  # seconds without news after which a stream shows that it is there
AGAIN = 2_000  # ms until a browser asks again whose stream has broken off
ALONE = "Press a control to open a page of your own, or load this one again."
GONE = "This run cannot be followed any more; it may have been deleted."


class FollowFirst(Still):
    """Mixed into a handler of a page: whoever only follows a run needs no session."""

    followers: Followers

    @authenticated
    async def get(self: Any, *args: Any, **kwargs: Any) -> None:
        """Send the run's page as it stands, or the live one, over which it lies at first."""
        channel = await self._followed()
        if channel is None:
            await super().get(*args, **kwargs)  # type: ignore[misc]
            return
        look = self.look
        page = channel.page(look, self.user)
        if LIVE in self.request.arguments:
            self.lay_over(page)
            for given in (self.request.arguments, self.request.query_arguments):
                given.pop(LIVE, None)  # lest the recorded run's page is laid over it as well
            await super().get(*args, **kwargs)  # type: ignore[misc]
            return
        self.send_still(page, lambda: channel.packed_page(look))

    async def _followed(self: Any) -> Channel | None:
        """What is followed; nothing by who may pause the run, and needs the buttons for that."""
        query = _query(self.request.arguments)
        if query.get(LIVE, OVER) != OVER:
            return None
        wanted = Wanted.of(self.page, query)
        record = wanted and self.followers.record(wanted)
        if not record:
            return None
        cookie = self.request.cookies.get(COOKIE)
        visitor = verify(cookie and cookie.value, self.site.key)
        owner = f"user:{self.user}" if self.user else visitor
        if owner and self.site.service.may_steer(record, owner):
            return None
        try:
            self.followers.limits.check(Client.of(self.request, self.site.key))
        except Busy:
            return None
        channel: Channel | None = await self.followers.channel(wanted, record)
        return channel


class Stream(AuthRequestHandler, Answer):
    """What is new on a page, as server-sent events, until its run is over."""

    destroyed = False  # as a page's session has it: `LiveSessions` counts either

    def initialize(self, site: Site, followers: Followers | None) -> None:
        """Take what the pages share, and the pages of followed runs."""
        self.site, self.followers, self._packed = site, followers, False
        self._telling: asyncio.Task[None] | None = None

    @property
    def ws_connection(self) -> Any:
        """The connection, as a websocket names it: `LoginSessions` closes either."""
        return self.request.connection

    async def prepare(self) -> None:
        """Refuse whoever is not logged in, where the server asks for that."""
        await super().prepare()
        login = login_of(self.request)
        if self.current_user is None:
            self.send_error(403)
        elif login is not None and self.site.logins is not None:
            self.site.logins.attach(login, self)

    async def get(self) -> None:
        """Send the parts that changed since the turn which the browser has seen."""
        self._packed = "gzip" in self.request.headers.get("Accept-Encoding", "")
        self._prepare_answer()
        self.write(GZIP_BEGINS if self._packed else b"")
        self._telling = asyncio.get_running_loop().create_task(self._tell())
        with suppress(asyncio.CancelledError, StreamClosedError):
            await self._telling
        self.destroyed = True

    def head(self) -> None:
        """The headers of the stream."""
        self._prepare_answer()

    def on_connection_close(self) -> None:
        """The browser has gone."""
        self.close()

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """End the stream."""
        self.destroyed = True
        if self._telling is not None:
            self._telling.cancel()

    async def _tell(self) -> None:
        await self._send(f"retry: {AGAIN}\n\n")
        followers, query = self.followers, _query(self.request.arguments)
        wanted = Wanted.of(query.get("study", ""), query)
        record = followers.record(wanted) if followers and wanted else None
        if followers is None or wanted is None or record is None:
            await self._send(event("refused", GONE))
            return
        client = Client.of(self.request, self.site.key)
        try:
            followers.limits.check(client)
        except Busy as busy:
            await self._send(event("refused", f"{busy} {ALONE}"))
            return
        followers.limits.add(self, client)
        channel = await followers.channel(wanted, record)
        if channel is None:
            await self._send(event("refused", ALONE))
            return
        with followers.follows(channel, self):
            await self._follow(
                channel, self.request.headers.get("Last-Event-ID") or query.get("at", "")
            )

    async def _follow(self, channel: Channel, seen: str) -> None:
        while True:
            if seen != channel.turn:
                told, seen = channel.since(seen, self._packed), channel.turn
                await self._sent(told)  # what comes meanwhile is told at one blow
            elif channel.over:
                if not channel.lost:
                    await self._send(event("end", ""))
                return
            elif not await channel.newer(seen, BEAT):
                await self._send(":\n\n")

    async def _send(self, text: str) -> None:
        await self._sent(piece(text.encode()) if self._packed else text.encode())

    async def _sent(self, data: bytes) -> None:
        self.write(data)
        await self.flush()

    def _prepare_answer(self) -> None:
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")  # a proxy passes each event on as it comes
        self.set_header("Vary", "Accept-Encoding, Cookie")
        if self._packed:
            self.set_header("Content-Encoding", "gzip")


def _query(arguments: Mapping[str, list[bytes]]) -> dict[str, str]:
    """The last value of each name."""
    return {name: values[-1].decode("utf-8", "replace") for name, values in arguments.items()}
