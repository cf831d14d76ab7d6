"""A page that shows the run of a room's presenter, until its visitor wants a copy of one's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from scant.errors import NotFound
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.limits.client import Busy
from scant_dashboard.live.run_state import RunState
from scant_dashboard.room.card import RoomCard
from scant_dashboard.room.room import Room


class MirrorPage(Protocol):
    """The page, as far as a mirror uses it."""

    visit: SessionContext
    run: RunState | None

    def open(self, run: str) -> None:
        """Open a run, whose settings fill the form."""

    def turn(self, *acts: Callable[[], None]) -> None:
        """Call these on the session's document."""


class Mirror:
    """Opens each run that the presenter opens, while the presenter leads.

    The browser follows the presenter's figure (`assets/room.js`). Both end with *My own copy*, with
    a run that the visitor opens or trains, and with the room.

    Args:
        page: The page.
        card: The room's card on the page.
        room: The room that it follows.
    """

    def __init__(self, page: MirrorPage, card: RoomCard, room: Room) -> None:
        self._page, self._card, self._room = page, card, room
        self._begun = False
        self._end: Callable[[], None] = lambda: None
        with suppress(Busy):  # there are too many pages; this one only steps along
            self._end = room.follow(page.visit.address, self._on_news)
        card.param.watch(self._on_follows, "follows")
        if page.visit.doc is not None:
            page.visit.doc.on_session_destroyed(lambda _: self._end())

    def opened(self, run: str) -> None:
        """End with a run other than the presenter's, unless it is that of an older link."""
        if not self._begun:
            self._begun = True
            self._on_news()
        elif self._card.follows and self._room.run and run != self._room.run:
            self._card.follows = ""

    def _on_follows(self, change: Any) -> None:
        if not change.new:
            self._end()

    def _on_news(self) -> None:
        """Schedule an update after the room has changed; called on no document."""
        run = self._page.run
        if self._room.run and (run is None or run.id != self._room.run):
            self._page.turn(self._open)

    def _open(self) -> None:
        room, run = self._room, self._page.run
        if self._card.follows and room.leads and room.run and (run is None or run.id != room.run):
            with suppress(NotFound):  # it was deleted
                self._page.open(room.run)
