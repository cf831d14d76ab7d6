"""Request handlers for a followed run's page and for its stream of changes."""

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
from scant_dashboard.followers.wanted import PageKey
from scant_dashboard.frame.site import Site
from scant_dashboard.limits.client import Busy, Client
from scant_dashboard.server.answers import Answer
from scant_dashboard.static_page.handler import LIVE, OVER
from scant_dashboard.static_page.still import StaticPageMixin

BEAT = 15.0  # seconds without changes after which a stream sends a keep-alive comment
AGAIN = 2_000  # ms until a browser reconnects a broken stream
ALONE = "Press a control to open a page of your own, or reload this one."
GONE = "This run cannot be followed any more; it may have been deleted."


class FollowFirst(StaticPageMixin):
    """Page-handler mixin that serves a shared page, without a session, to read-only visitors."""

    followers: Followers

    @authenticated
    async def get(self: Any, *args: Any, **kwargs: Any) -> None:
        """Send the shared page of the run, or the live page initially covered by it."""
        channel = await self._followed()
        if channel is None:
            await super().get(*args, **kwargs)  # type: ignore[misc]
            return
        dark = self.dark
        page = channel.page(dark, self.user)
        if LIVE in self.request.arguments:
            self.set_overlay(page)
            for given in (self.request.arguments, self.request.query_arguments):
                given.pop(LIVE, None)  # so that the recorded run's page does not cover it, too
            await super().get(*args, **kwargs)  # type: ignore[misc]
            return
        self.send_static(page, lambda: channel.packed_page(dark))

    async def _followed(self: Any) -> Channel | None:
        """Return the page's channel; None for visitors who may control the run."""
        query = _query(self.request.arguments)
        if query.get(LIVE, OVER) != OVER:
            return None
        key = PageKey.of(self.page, query)
        record = key and self.followers.record(key)
        if not record or not self.english:
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
        channel: Channel | None = await self.followers.channel(key, record)
        return channel


class Stream(AuthRequestHandler, Answer):
    """The changes of a page as server-sent events, until its run is over."""

    destroyed = False  # the interface of sessions, so that `LiveSessions` counts streams, too

    def initialize(self, site: Site, followers: Followers | None) -> None:
        """Store the site and the followed pages of the server."""
        self.site, self.followers, self._packed = site, followers, False
        self._streaming: asyncio.Task[None] | None = None

    @property
    def ws_connection(self) -> Any:
        """The connection, under the name used by websockets: `LoginSessions` closes both kinds."""
        return self.request.connection

    async def prepare(self) -> None:
        """Refuse visitors without a login if the server requires one."""
        await super().prepare()
        login = login_of(self.request)
        if self.current_user is None:
            self.send_error(403)
        elif login is not None and self.site.logins is not None:
            self.site.logins.attach(login, self)

    async def get(self) -> None:
        """Send the parts that changed since the turn shown by the browser."""
        self._packed = "gzip" in self.request.headers.get("Accept-Encoding", "")
        self._prepare_answer()
        self.write(GZIP_BEGINS if self._packed else b"")
        self._streaming = asyncio.get_running_loop().create_task(self._stream())
        with suppress(asyncio.CancelledError, StreamClosedError):
            await self._streaming
        self.destroyed = True

    def head(self) -> None:
        """Send the headers of the stream."""
        self._prepare_answer()

    def on_connection_close(self) -> None:
        """Close the stream when the browser disconnects."""
        self.close()

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """End the stream."""
        self.destroyed = True
        if self._streaming is not None:
            self._streaming.cancel()

    async def _stream(self) -> None:
        await self._send(f"retry: {AGAIN}\n\n")
        followers, query = self.followers, _query(self.request.arguments)
        key = PageKey.of(query.get("study", ""), query)
        record = followers.record(key) if followers and key else None
        if followers is None or key is None or record is None:
            await self._send(event("refused", GONE))
            return
        client = Client.of(self.request, self.site.key)
        try:
            followers.limits.check(client)
        except Busy as busy:
            await self._send(event("refused", f"{busy} {ALONE}"))
            return
        followers.limits.add(self, client)
        channel = await followers.channel(key, record)
        if channel is None:
            await self._send(event("refused", ALONE))
            return
        with followers.follows(channel, self):
            await self._follow(
                channel, self.request.headers.get("Last-Event-ID") or query.get("at", "")
            )

    async def _follow(self, channel: Channel, turn: str) -> None:
        while True:
            if turn != channel.turn:
                changes, turn = channel.since(turn, self._packed), channel.turn
                await self._sent(changes)  # changes during this await are sent together
            elif channel.over:
                if not channel.lost:
                    await self._send(event("end", ""))
                return
            elif not await channel.newer(turn, BEAT):
                await self._send(":\n\n")

    async def _send(self, text: str) -> None:
        await self._sent(piece(text.encode()) if self._packed else text.encode())

    async def _sent(self, data: bytes) -> None:
        self.write(data)
        await self.flush()

    def _prepare_answer(self) -> None:
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")  # proxies must not buffer events
        self.set_header("Vary", "Accept-Encoding, Cookie")
        if self._packed:
            self.set_header("Content-Encoding", "gzip")


def _query(arguments: Mapping[str, list[bytes]]) -> dict[str, str]:
    """Return the last value of each query parameter."""
    return {name: values[-1].decode("utf-8", "replace") for name, values in arguments.items()}
