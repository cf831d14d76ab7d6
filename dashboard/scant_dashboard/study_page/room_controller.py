"""The presenter's side of a room: what a page's questions are, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import panel as pn
from bokeh.document import Document

from scant.errors import BadInput
from scant.studies import Entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.lesson import Lesson
from scant_dashboard.plots.votes import VotesPlot
from scant_dashboard.room.address import NOT_REACHED, phone_address, qr_code
from scant_dashboard.room.card import RoomCard
from scant_dashboard.room.room import Room, Rooms
from scant_dashboard.template import text

TOGETHER = 150  # ms in which news from phones come to the screen as one
LISTED = ["first", "question", "turn", "revealed", "answer", "seen"]  # what a room is told of


class RoomPage(Protocol):
    """What a room needs of the page."""

    entry: Entry
    visit: SessionContext
    lesson: Lesson

    @property
    def guessing(self) -> bool:
        """Whether the link asks for guesses before answers."""

    @property
    def present(self) -> bool:
        """Whether the page is projected."""

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The figures that the keys step through, by their headings."""

    def link(self, **query: Any) -> str:
        """The page's address, changed by `query`."""

    def say(self, sentence: str, kind: str = "info") -> None:
        """Say one sentence on the page."""

    def turn(self, *acts: Callable[[], None]) -> None:
        """Call these on the session's document."""


class RoomController:
    """Opens a room from present mode, and keeps it up to date; or follows the room of a link.

    Attributes:
        questions: All of the page, in the order in which they were made.
        room: The room that is open; None while there is none.
        card: What stands in the run bar; None where nobody presents or follows.
    """

    def __init__(self, page: RoomPage) -> None:
        self._page = page
        self.questions: list[GuessFirst] = []
        self.room: Room | None = None
        self._current: GuessFirst | None = None
        self._stepped = self._waiting = False
        visit, code = page.visit, page.visit.query.get("room", "")
        found = self._rooms.find(code) if code else None
        mine = found is not None and page.present and found.owner == visit.owner != ""
        self.card: RoomCard | None = None
        if page.present or found is not None:
            self.card = RoomCard(follows="" if mine or found is None else found.code)
            self.card.param.watch(lambda _: self._pressed(), "pressed")
            self.card.param.watch(lambda _: self._stepped_to(), "step")
            self.card.param.watch(lambda _: self._leads(), "leads")
            self.card.param.watch(lambda _: self._address(), "here")
        if found is not None and mine:
            self._take(found)
        if visit.doc is not None and page.present:
            visit.doc.on_session_destroyed(self._gone)

    @property
    def code(self) -> str | None:
        """The room's code, for the page's own address; None while there is no room."""
        return self.room.code if self.room is not None else None

    def guess_first(self, **params: Any) -> GuessFirst:
        """A question of the page, which a room may be asked."""
        made = GuessFirst(first=self._page.guessing or self.room is not None, **params)
        self.questions.append(made)
        made.param.watch(lambda *events: self._changed(made, events), LISTED)
        self._tell_counts()
        return made

    @property
    def _rooms(self) -> Rooms:
        return self._page.visit.site.rooms

    # --- what the presenter does ---

    def _pressed(self) -> None:
        """Open a room, or end the one that is open."""
        if self.room is not None:
            self.room.close()
            return
        page = self._page
        try:
            room = self._rooms.open(page.visit.owner)
        except BadInput as error:
            page.say(str(error), "warning")
            return
        link = page.link(**{**page.lesson.query(), "guess": 1, "step": None, "room": room.code})
        room.page = f"{page.entry.name}?{urlsplit(link).query}"
        self._take(room)
        for question in self.questions:
            question.first = True
        self._stepped_to()

    def _take(self, room: Room) -> None:
        """Present in this room from now on."""
        assert self.card is not None
        self.room, room.left = room, None
        room.counted = self._news
        self.card.param.update(code=room.code, leads=room.leads)
        self._address()
        self.sync()

    def _address(self) -> None:
        """Write the address that phones go to, from the presenter's own."""
        card = self.card
        if card is None or self.room is None or not card.here:
            return
        address, reached = phone_address(card.here, self.room.code, self._rooms.beyond)
        card.param.update(
            address=address, qr=qr_code(address), warning="" if reached else NOT_REACHED
        )

    def _stepped_to(self) -> None:
        if self.room is None or self.card is None:
            return
        self._stepped = True
        steps, step = self._page.steps, self.card.step
        known = 0 <= step < len(steps)
        self.room.go(step if known else None, steps[step][0] if known else "")
        self.sync()

    def _leads(self) -> None:
        if self.room is not None and self.card is not None:
            self.room.lead(self.card.leads)

    def _gone(self, _: Any) -> None:
        """The page has gone: the room ends, unless it comes back."""
        if self.room is not None and self.room.counted == self._news:
            self.room.presenter_left()

    def _changed(self, question: GuessFirst, events: Sequence[Any]) -> None:
        if question.seen and any(event.name == "seen" for event in events):
            self._current, self._stepped = question, False
        self.sync()

    def sync(self) -> None:
        """Tell the room what is asked, and show what it has answered."""
        room = self.room
        if room is None:
            return
        asking = [q for q in self.questions if q.first and q.question]
        for question in asking:
            if question.revealed:
                ballot = room.reveal(question.asked, question.answer)
                if ballot is not None and question.answer and not question.below.objects:
                    self._draw(question, list(ballot.votes.values()))
        now = self._current
        # What is asked stays so while its figure is looked at; the next step ends it.
        if now is None or now not in asking or (self._stepped and not now.seen):
            self._current = now = next((q for q in asking if q.seen), None)
        room.ask(now.asked if now else None, bool(now and now.revealed), [q.asked for q in asking])
        self._tell_counts()

    def _draw(self, question: GuessFirst, votes: Sequence[Any]) -> None:
        """Show the room's guesses below a question that is answered."""
        truth = tuple(question.truth) if isinstance(question.truth, list) else question.truth
        plot = VotesPlot(question.asked, votes, truth, question.band)
        question.guesses = [list(v) if isinstance(v, tuple) else v for v in votes]
        question.below.objects = [plot.panel, text(f"<p class='reading'>{plot.alt}</p>")]

    # --- what phones do ---

    def _news(self) -> None:
        """Phones have come or voted: show it soon, many at once. Called on no document."""
        if self._waiting:
            return
        self._waiting = True

        def show() -> None:
            self._waiting = False
            if self.room is not None and self.room.closed:
                self._end()
            else:
                self._tell_counts()

        doc: Document = self._page.visit.doc

        def later() -> None:
            with pn.io.hold(doc):
                show()

        def soon() -> None:
            doc.add_timeout_callback(later, TOGETHER)

        self._page.turn(soon)

    def _end(self) -> None:
        self.room = self._current = None
        if self.card is not None:
            self.card.param.update(code="", phones=0, votes=0, asked=False, qr="", address="")
        for question in self.questions:
            question.param.update(room="", phones=0, votes=0)

    def _tell_counts(self) -> None:
        """Say how many have answered, in the bar and beside the question."""
        room, card = self.room, self.card
        if room is None or card is None:
            return
        phones, ballot = len(room.phones), room.present
        votes = len(ballot.votes) if ballot is not None else 0
        card.param.update(phones=phones, votes=votes, asked=ballot is not None)
        for question in self.questions:
            current = question is self._current
            question.param.update(
                room=room.code, phones=phones, votes=votes if current else question.votes
            )
