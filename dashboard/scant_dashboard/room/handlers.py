"""Request handlers of a room: the phone's page, its event stream, pictures and votes.

They need no page session, login or visitor cookie. A phone is identified by a random token in a
cookie of this room, and its requests are not logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Callable
from functools import cache
from string import Template
from typing import Any

from tornado.iostream import StreamClosedError

from scant.errors import BadInput, NotAllowed, NotFound
from scant.runs.addresses import network
from scant_dashboard.auth.redirects import sent_by_own_page
from scant_dashboard.limits.client import Busy
from scant_dashboard.room.room import IDLE, Room, Rooms
from scant_dashboard.server import prefix
from scant_dashboard.server.answers import Answer, plain_page
from scant_dashboard.server.headers import Policy
from scant_dashboard.template import assets
from scant_dashboard.translate import ENGLISH, for_scripts, speak_here, speaking, tr

CODE = "([A-Za-z0-9]{1,12})"
BODY_LIMIT = 512  # bytes of a vote
BEAT = 15.0  # seconds without changes after which a stream sends a keep-alive comment
GATHERED = 0.1  # seconds for which changes are collected
STATUS: dict[type[Exception], int] = {BadInput: 400, NotAllowed: 409, NotFound: 404}


class RoomAnswer(Answer):
    """Base class of a room's handlers."""

    def initialize(self, rooms: Rooms, policy: Policy) -> None:
        """Store the server's rooms and its content security policy."""
        self.rooms, self.policy = rooms, policy

    def prepare(self) -> None:
        """Forbid caching, and answer in the language of the room."""
        self.set_header("Cache-Control", "no-store")
        room = self.rooms.find(self.path_args[0])
        speak_here(room.language if room is not None else ENGLISH)

    @property
    def address(self) -> str:
        """The phone's network address, for the limits."""
        return network(self.request.remote_ip or "")

    def token(self, code: str) -> str:
        """Return the phone's token.

        Raises:
            BadInput: The request has none.
        """
        token = self.get_cookie(_cookie(code), "") or ""
        if not re.fullmatch(r"[\w-]{22}", token):
            raise BadInput(
                tr("This page needs a cookie, so that each phone counts once; allow it.")
            )
        return token

    def refuse(self, error: Exception) -> None:
        """Send the error as a sentence."""
        if isinstance(error, Busy):
            self.set_status(error.status)
            self.set_header("Retry-After", str(error.seconds))
        else:
            self.set_status(STATUS[type(error)])
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(str(error))


REFUSALS = (BadInput, NotAllowed, NotFound, Busy)


class Phone(RoomAnswer):
    """The page of a phone, which loads only a script and a style sheet."""

    def get(self, code: str) -> None:
        """Send the page, with a token for new phones."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        try:
            room = self.rooms.entered(code, self.address)
        except (NotFound, Busy) as error:
            self.set_status(error.status if isinstance(error, Busy) else 404)
            self.finish(
                plain_page(tr("There is no such room"), str(error), prefix.of(self.request))
            )
            return
        try:
            self.token(room.code)
        except BadInput:
            self.set_cookie(
                _cookie(room.code), secrets.token_urlsafe(16), path=None,  # type: ignore[arg-type]
                max_age=int(IDLE), httponly=True, samesite="Lax",
                secure=self.request.protocol == "https",
            )  # fmt: skip
        self.set_header("Content-Security-Policy", self.policy.static())
        self.finish(_page(room.language))


class News(RoomAnswer):
    """Event stream for a phone, or for a page that follows the lesson."""

    def head(self, code: str) -> None:
        """Send the headers only, because the stream would not end."""
        self.set_header("Content-Type", "text/event-stream")

    async def get(self, code: str) -> None:
        """Send the current state and all changes until the room ends."""
        news = asyncio.Event()
        self._wake = news.set
        try:
            room = self.rooms.entered(code, self.address)
            state: Callable[[], dict[str, Any]] = room.presenter_state
            if "follow" not in self.request.query_arguments:
                token = self.token(room.code)
                room.join(token, self.address)
                state = lambda: room.phone_state(token)  # noqa: E731
                end = room.follow(self.address, news.set, token)
            else:
                end = room.follow(self.address, news.set)
        except REFUSALS as error:
            self.refuse(error)
            return
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("X-Accel-Buffering", "no")
        try:
            await self._stream(room, state, news)
        except StreamClosedError:
            pass
        finally:
            end()

    def on_connection_close(self) -> None:
        """Wake the stream, so that it notices the closed connection at once."""
        self._wake()

    async def _stream(
        self, room: Room, state: Callable[[], dict[str, Any]], news: asyncio.Event
    ) -> None:
        sent = ""
        while not room.over():
            fresh = json.dumps(state())
            self.write(": \n\n" if fresh == sent else f"data: {fresh}\n\n")
            await self.flush()
            sent = fresh
            try:
                await asyncio.wait_for(news.wait(), BEAT)
            except TimeoutError:
                continue
            await asyncio.sleep(GATHERED)
            news.clear()
        self.write("event: over\ndata: \n\n")


class Sent(RoomAnswer):
    """Base class of handlers of what a phone's page sends."""

    def from_elsewhere(self) -> bool:
        """Refuse what the page of another site has sent."""
        if sent_by_own_page(self.request, self.application.websocket_origins):  # type: ignore[attr-defined]
            return False
        self.set_status(403)
        self.finish(tr("This was sent by a page of another site."))
        return True


class Runs(Sent):
    """Starts runs on the wall."""

    def post(self, code: str) -> None:
        """Queue the phone's run; a second request has no effect."""
        if self.from_elsewhere():
            return
        try:
            room = self.rooms.entered(code, self.address)
            room.join_wall(self.token(room.code), self.address)
        except REFUSALS as error:
            self.refuse(error)
            return
        self.set_status(204)


class Votes(Sent):
    """Receives votes."""

    def post(self, code: str) -> None:
        """Store a vote, sent as JSON with the question's `number` and the answer `value`."""
        if self.from_elsewhere():
            return
        if len(self.request.body) > BODY_LIMIT:
            self.set_status(413)
            self.finish(tr("An answer has at most {n} bytes.", n=BODY_LIMIT))
            return
        try:
            room = self.rooms.entered(code, self.address)
            number, value = self._read()
            vote = room.vote(self.token(room.code), self.address, number, value)
        except REFUSALS as error:
            self.refuse(error)
            return
        self.write({"mine": vote})

    def _read(self) -> tuple[object, object]:
        """Parse a vote. Raises BadInput if it is invalid."""
        try:
            if not self.request.headers.get("Content-Type", "").startswith("application/json"):
                raise ValueError
            body = json.loads(self.request.body)
            return body["number"], body["value"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BadInput(tr("Send an answer as JSON with a number and a value.")) from None


class Picture(RoomAnswer):
    """The picture of a question."""

    def get(self, code: str, number: str) -> None:
        """Send the picture."""
        try:
            picture = self.rooms.entered(code, self.address).picture(int(number))
            if not picture:
                raise NotFound(tr("This question has no picture."))
        except REFUSALS as error:
            self.refuse(error)
            return
        self.set_header("Content-Type", "image/jpeg")
        self.finish(picture)


def room_rules(rooms: Rooms, policy: Policy) -> list[tuple[str, type[Answer], dict[str, Any]]]:
    """Return the addresses with their handlers and arguments."""
    logging.getLogger("tornado.access").addFilter(_may_log)
    given = {"rooms": rooms, "policy": policy}
    return [
        (f"/room/{CODE}", Phone, given),
        (f"/room/{CODE}/news", News, given),
        (f"/room/{CODE}/votes", Votes, given),
        (f"/room/{CODE}/runs", Runs, given),
        (rf"/room/{CODE}/pictures/(\d{{1,6}})", Picture, given),
    ]


def _may_log(record: logging.LogRecord) -> bool:
    """Whether a response may be logged: not with the address of a phone."""
    return "/room/" not in record.getMessage()


def _cookie(code: str) -> str:
    return f"scant_room_{code.upper()}"


@cache
def _page(language: str) -> str:
    """Return the page of a phone in the language of its room."""
    file = assets() / "html" / "phone.html"
    with speaking(language):
        return Template(file.read_text(encoding="utf-8")).substitute(
            language=language,
            sentences=for_scripts(language),
            title=tr("Ask the room"),
            wait=tr("One moment…"),
            send=tr("Send"),
            yours=tr("Your run"),
            start=tr("Start my run"),
            questions=tr("Questions of this lesson"),
            earlier=tr("Earlier"),
            later=tr("Later"),
            privacy=tr(
                "No name is asked for. Guesses and runs are forgotten when the lesson ends."
            ),
            figures=tr("Open the figures here"),
            script=tr("This page needs JavaScript."),
        )
