"""The presenter's side of a room: connects the page's questions to the phones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from scant.errors import BadInput
from scant.studies import Entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.lesson import Lesson
from scant_dashboard.plots.votes import VotesPlot
from scant_dashboard.plots.wall import TITLE
from scant_dashboard.room.address import NOT_REACHED, phone_address, qr_code
from scant_dashboard.room.card import RoomCard
from scant_dashboard.room.room import Room, Rooms
from scant_dashboard.study_page.collected import Collected
from scant_dashboard.study_page.mirror import Mirror
from scant_dashboard.study_page.wall_controller import WallController
from scant_dashboard.template import text
from scant_dashboard.translate import tr

TOGETHER = 150  # ms for which changes from phones are collected
LISTED = [
    "first",
    "question",
    "turn",
    "revealed",
    "answer",
    "seen",
]  # parameters that the room follows


class RoomPage(Protocol):
    """The page, as far as a room uses it."""

    entry: Entry
    visit: SessionContext
    lesson: Lesson
    run: RunState | None

    @property
    def guessing(self) -> bool:
        """Whether the link enables guessing."""

    @property
    def present(self) -> bool:
        """Whether present mode is on."""

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Steps of present mode: (title of a figure, text)."""

    def link(self, **query: Any) -> str:
        """Return the page's address, changed by `query`."""

    def say(self, sentence: str, kind: str = "info") -> None:
        """Show one sentence on the page."""

    def open(self, run: str) -> None:
        """Open a run."""

    def turn(self, *acts: Callable[[], None]) -> None:
        """Call these on the session's document."""


class RoomController:
    """Opens a room in present mode and keeps it current, or follows the room of a link.

    Attributes:
        questions: All questions of the page, in order of creation.
        room: The open room; None if there is none.
        card: The room's card in the run bar; None unless the page presents or follows.
        wall: The controller of the room's wall; None unless the page presents.
    """

    def __init__(self, page: RoomPage) -> None:
        self._page = page
        self.questions: list[GuessFirst] = []
        self.room: Room | None = None
        self._current: GuessFirst | None = None
        self._stepped = False
        self._on_news = Collected(page.turn, page.visit.doc, TOGETHER, self._show_news)
        visit, code = page.visit, page.visit.query.get("room", "")
        linked = self._rooms.find(code) if code else None
        presents = linked is not None and page.present and linked.owner == visit.owner != ""
        self.card: RoomCard | None = None
        if page.present or linked is not None:
            self.card = RoomCard(follows="" if presents or linked is None else linked.code)
            self.card.param.watch(lambda _: self._on_button(), "pressed")
            self.card.param.watch(lambda _: self._on_step(), "step")
            self.card.param.watch(lambda _: self._on_lead(), "leads")
            self.card.param.watch(lambda _: self._address(), "here")
        self.wall: WallController | None = None
        if page.present and self.card is not None:
            self.wall = WallController(page, self.card)
        self._mirror: Mirror | None = None
        if linked is not None and presents:
            self._take(linked)
        elif linked is not None and self.card is not None:
            self._mirror = Mirror(page, self.card, linked)
        if visit.doc is not None and page.present:
            visit.doc.on_session_destroyed(self._on_page_closed)

    @property
    def code(self) -> str | None:
        """Code of the open room, for the page's address; None if there is none."""
        return self.room.code if self.room is not None else None

    def guess_first(self, **params: Any) -> GuessFirst:
        """Create a question of the page, which may be put to the room."""
        made = GuessFirst(first=self._page.guessing or self.room is not None, **params)
        self.questions.append(made)
        made.param.watch(lambda *events: self._changed(made, events), LISTED)
        self._show_counts()
        return made

    @property
    def _rooms(self) -> Rooms:
        return self._page.visit.site.rooms

    # --- actions of the presenter ---

    def _on_button(self) -> None:
        """Open a room, or end the open one."""
        if self.room is not None:
            self.room.close()
            return
        page = self._page
        try:
            room = self._rooms.open(page.visit.owner)
        except BadInput as error:
            page.say(str(error), "warning")
            return
        self._take(room)
        if page.run is not None:
            self.opened(page.run.id)
        for question in self.questions:
            question.first = True
        self._on_step()

    def opened(self, run: str) -> None:
        """Tell the room which run the presenter shows; a follower that opens another one leaves."""
        page = self._page
        if self.room is not None:
            query = {**page.lesson.query(), "guess": 1, "step": None, "room": self.room.code}
            link = urlsplit(page.link(**query)).query
            self.room.show(run, f"{page.entry.name}?{link}")
        elif self._mirror is not None:
            self._mirror.opened(run)

    def _take(self, room: Room) -> None:
        """Present in this room."""
        assert self.card is not None
        self.room, room.left = room, None
        room.counted, room.language = self._on_news, self._page.visit.language
        self.card.param.update(code=room.code, leads=room.leads)
        self._address()
        if self.wall is not None:
            self.wall.take(room)
        self.sync()

    def _address(self) -> None:
        """Set the address for phones, derived from the presenter's."""
        card = self.card
        if card is None or self.room is None or not card.here:
            return
        address, reached = phone_address(card.here, self.room.code, self._rooms.networked)
        card.param.update(
            address=address, qr=qr_code(address), warning="" if reached else tr(NOT_REACHED)
        )

    def _on_step(self) -> None:
        if self.room is None or self.card is None:
            return
        self._stepped = True
        steps, step = [*self._page.steps, (TITLE, "")], self.card.step
        valid = 0 <= step < len(steps)
        self.room.go(step if valid else None, steps[step][0] if valid else "")
        self.sync()

    def _on_lead(self) -> None:
        if self.room is not None and self.card is not None:
            self.room.lead(self.card.leads)

    def _on_page_closed(self, _: Any) -> None:
        """Tell the room that the page was closed; the room ends unless it returns."""
        if self.room is not None and self.room.counted == self._on_news:
            self.room.presenter_left()

    def _changed(self, question: GuessFirst, events: Sequence[Any]) -> None:
        if question.seen and any(event.name == "seen" for event in events):
            self._current, self._stepped = question, False
        self.sync()

    def sync(self) -> None:
        """Send the current question to the room, and show guesses on revealed ones."""
        room = self.room
        if room is None:
            return
        asking = [q for q in self.questions if q.first and q.question]
        for question in asking:
            if question.revealed:
                ballot = room.reveal(question.room_question, question.answer)
                if ballot is not None and question.answer and not question.below.objects:
                    self._draw(question, list(ballot.votes.values()))
        now = self._current
        # A question stays current while its figure is in view, and until the next step.
        if now is None or now not in asking or (self._stepped and not now.seen):
            self._current = now = next((q for q in asking if q.seen), None)
        room.ask(
            now.room_question if now else None,
            bool(now and now.revealed),
            [q.room_question for q in asking],
        )
        self._show_counts()

    def _draw(self, question: GuessFirst, votes: Sequence[Any]) -> None:
        """Show the room's guesses below a revealed question."""
        truth = tuple(question.truth) if isinstance(question.truth, list) else question.truth
        plot = VotesPlot(question.room_question, votes, truth, question.band)
        question.guesses = [list(v) if isinstance(v, tuple) else v for v in votes]
        question.below.objects = [plot.panel, text(f"<p class='reading'>{plot.alt}</p>")]

    # --- actions of phones ---

    def _show_news(self) -> None:
        """Update the page after phones have joined or voted, or the room has ended."""
        if self.room is not None and self.room.closed:
            self._end()
        else:
            self._show_counts()

    def _end(self) -> None:
        self.room = self._current = None
        if self.wall is not None:
            self.wall.end()
        if self.card is not None:
            self.card.param.update(code="", phones=0, votes=0, asked=False, qr="", address="")
        for question in self.questions:
            question.param.update(room="", phones=0, votes=0)

    def _show_counts(self) -> None:
        """Show the number of answers, in the bar and next to the question."""
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
