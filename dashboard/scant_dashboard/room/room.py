"""State of a room: its phones, its questions and their votes. In memory only, for a single thread.

A room belongs to the presenter who opened it. It ends on request, some time after the presenter's
page has closed, or after long inactivity; its state is then discarded.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from scant.errors import BadInput, NotAllowed, NotFound
from scant_dashboard.limits.client import Busy
from scant_dashboard.room.question import Question, Vote
from scant_dashboard.room.wall import PRESENTER, Wall
from scant_dashboard.translate import ENGLISH, tr

LETTERS = "ACDEFGHJKMNPQRTUVWXY34679"  # unambiguous letters and digits
LENGTH = 5  # letters of a code: 10 million combinations
ROOMS = 50  # maximum per server
PER_PRESENTER = 3
PHONES = 400  # maximum per room
PHONES_PER_ADDRESS = 150  # a lecture hall behind one router
STREAMS = 2  # maximum open connections per phone
BALLOTS = 30  # maximum questions of a room; older ones are discarded
IDLE = 2 * 3600.0  # seconds without activity
SWEEP = 15.0  # seconds between checks for expired rooms
GRACE = 60.0  # seconds for a presenter's page to return, e.g. after a lost connection
PHONE_PACE = (5, 1.0)  # votes of a phone: burst, and rate per second
ADDRESS_PACE = (300, 30.0)
MISS_PACE = (30, 0.1)  # invalid codes per address

Clock = Callable[[], float]


class TokenBucket:
    """Rate limiter that allows a burst, and then `pace` actions per second."""

    def __init__(self, burst: int, pace: float) -> None:
        self._burst, self._pace, self._left, self._last = burst, pace, float(burst), 0.0

    def take(self, now: float) -> None:
        """Count an action.

        Raises:
            Busy: It comes too early.
        """
        self._left = min(self._burst, self._left + (now - self._last) * self._pace)
        self._last = now
        if self._left < 1:
            wait = int((1 - self._left) / self._pace) + 1
            raise Busy(tr("That was too fast; try again in {n} s.", n=wait), seconds=wait)
        self._left -= 1


@dataclass
class Ballot:
    """A current or former question, with the latest answer of each phone."""

    number: int
    question: Question
    revealed: bool
    answer: str = ""
    votes: dict[str, Vote] = field(default_factory=dict)


class Room:
    """The room of one lesson.

    Attributes:
        code: Code by which phones find it.
        owner: The presenter.
        run: Run that the presenter shows; "" before there is one.
        page: Address of the lesson's page, relative to the server's first page; "" for none.
        present: The current question; None if there is none.
        leads: Whether phones and followers follow the presenter.
        step: The presenter's current figure, counted from 0; None before the first step.
        title: Heading of that figure.
        phones: Network address of each phone, by its token.
        wall: The wall, if the presenter has started one.
        language: Language of the presenter's page, and of phones.
        closed: Whether the lesson has ended.
    """

    def __init__(self, code: str, owner: str, clock: Clock = time.monotonic) -> None:
        self.code, self.owner, self._clock = code, owner, clock
        self.language = ENGLISH
        self.run = self.page = ""
        self.ballots: list[Ballot] = []
        self.present: Ballot | None = None
        self.leads, self.closed = True, False
        self.step: int | None = None
        self.title = ""
        self.phones: dict[str, str] = {}
        self.left: float | None = None  # time at which the presenter's page was closed
        self._touched = clock()
        self._n_questions = 0
        self._paces: dict[str, TokenBucket] = {}
        self._streams: Counter[str] = Counter()
        self._present: Counter[str] = Counter()  # open streams of each phone
        self._followers: dict[Callable[[], None], str | None] = {}  # token of a phone's stream
        self.counted: Callable[[], None] = lambda: None  # called when phones join or vote
        self.wall: Wall | None = None
        self.wall_changed: Callable[[], None] = lambda: None  # called when a run has news

    # --- the presenter ---

    def ask(
        self, question: Question | None, revealed: bool, standing: Collection[Question]
    ) -> None:
        """Set the current question, or none; known questions keep their votes.

        Args:
            question: The presenter's current question.
            revealed: Whether its answer is visible.
            standing: All open questions; others without a revealed answer are discarded.
        """
        present = None
        if question is not None:
            matching = [b for b in self.ballots if (b.question, b.revealed) == (question, revealed)]
            if not matching:
                self._n_questions += 1
                matching = [Ballot(self._n_questions, question, revealed)]
                self.ballots.append(matching[0])
            present = matching[-1]
        ballots = [b for b in self.ballots if b.revealed or b.question in standing][-BALLOTS:]
        if (present, ballots) != (self.present, self.ballots):
            self.present, self.ballots = present, ballots
            self._notify()

    def reveal(self, question: Question, answer: str) -> Ballot | None:
        """End the voting on an open question, and publish its answer once it is known."""
        for ballot in reversed(self.ballots):
            if ballot.question == question:
                if not ballot.revealed or ballot.answer != answer:
                    ballot.revealed, ballot.answer = True, answer
                    self._notify()
                return ballot
        return None

    def go(self, step: int | None, title: str) -> None:
        """Set the presenter's current figure."""
        if (step, title) != (self.step, self.title):
            self.step, self.title = step, title
            self._notify()

    def show(self, run: str, page: str) -> None:
        """Set the run that the presenter shows, and the address of a page with it."""
        if (run, page) != (self.run, self.page):
            self.run, self.page = run, page
            self._notify()

    def lead(self, leads: bool) -> None:
        """Set whether phones and followers follow the presenter."""
        if leads != self.leads:
            self.leads = leads
            self._notify()

    def presenter_left(self) -> None:
        """Record that the presenter's page has closed; it may return."""
        self.left = self._clock()

    def close(self) -> None:
        """End the lesson and discard its state."""
        self.closed, self.present = True, None
        self.ballots, self.phones = [], {}
        self._paces.clear()
        self.end_wall()
        self._notify()
        self.counted()

    def start_wall(self, wall: Wall) -> None:
        """Put up a wall in place of the previous one, whose runs are canceled."""
        self.end_wall()
        self.wall = wall
        wall.changed = self._on_wall_changed
        self._on_wall_changed(None)

    def end_wall(self) -> None:
        """Take the wall down, whose runs are canceled and forgotten."""
        wall, self.wall = self.wall, None
        if wall is not None:
            wall.close()

    def _on_wall_changed(self, token: str | None) -> None:
        self._notify(token)
        self.wall_changed()

    def over(self) -> bool:
        """Whether the lesson has ended or expired."""
        now = self._clock()
        gone = self.left is not None and now - self.left > GRACE
        if not self.closed and (gone or now - self._touched > IDLE):
            self.close()
        return self.closed

    # --- the phones ---

    def join(self, token: str, address: str) -> None:
        """Register a phone.

        Raises:
            Busy: The room is full, or there are too many phones from this network.
        """
        if token in self.phones:
            return
        if len(self.phones) >= PHONES:
            raise Busy(tr("This room has {n} phones, its limit.", n=PHONES), seconds=60)
        if sum(a == address for a in self.phones.values()) >= PHONES_PER_ADDRESS:
            message = tr("Your network has {n} phones in this room, the limit of one network.",
                         n=PHONES_PER_ADDRESS)  # fmt: skip
            raise Busy(message, seconds=60)
        self.phones[token] = address
        self.counted()

    def vote(self, token: str, address: str, number: object, raw: object) -> Vote:
        """Store a phone's answer, replacing its previous one.

        Raises:
            BadInput: It is no answer to this question.
            NotFound: There is no such question.
            NotAllowed: The question has been answered.
            Busy: Answers come too fast, or the room is full.
        """
        self.join(token, address)
        self._pace(token, address)
        ballots = self.ballots if type(number) is int else []  # `True == 1`
        ballot = next((b for b in ballots if b.number == number), None)
        if ballot is None:
            raise NotFound(tr("This question is closed."))
        if ballot.revealed:
            raise NotAllowed(tr("The answer has been revealed; guesses are closed."))
        ballot.votes[token] = vote = ballot.question.vote(raw)
        self._touched = self._clock()
        self.counted()
        return vote

    def join_wall(self, token: str, address: str) -> None:
        """Queue a run for a phone, which has one at most.

        Raises:
            NotFound: There is no wall.
            Busy: Requests come too fast, or the room, the wall or its queue is full.
        """
        self.join(token, address)
        self._pace(token, address)
        if self.wall is None:
            raise NotFound(tr("There is no wall at the moment; look at the screen."))
        self._touched = self._clock()
        self.wall.join(token)

    def _pace(self, token: str, address: str) -> None:
        now = self._clock()
        for who, pace in ((f"phone {token}", PHONE_PACE), (f"from {address}", ADDRESS_PACE)):
            self._paces.setdefault(who, TokenBucket(*pace)).take(now)

    def phone_state(self, token: str) -> dict[str, Any]:
        """Return the state for a phone: all questions, with its own answers."""
        return {
            **self.presenter_state(),
            "present": self.present.number if self.present else None,
            "page": self.page,
            "wall": self.wall.phone_state(token, self.is_present) if self.wall else None,
            "questions": [
                b.question.to_json()
                | {"number": b.number, "revealed": b.revealed, "answer": b.answer,
                   "mine": b.votes.get(token)}
                for b in self.ballots
            ],
        }  # fmt: skip

    def presenter_state(self) -> dict[str, Any]:
        """Return the presenter's position, for pages that follow the lesson."""
        return {"leads": self.leads, "step": self.step, "title": self.title}

    def picture(self, number: int) -> bytes:
        """Return the picture of a question; b"" if it has none."""
        return next((b.question.picture for b in self.ballots if b.number == number), b"")

    def is_present(self, token: str) -> bool:
        """Whether the page of a phone is open; the presenter's counts as open."""
        return token == PRESENTER or self._present[token] > 0

    def follow(
        self, address: str, changed: Callable[[], None], token: str | None = None
    ) -> Callable[[], None]:
        """Call `changed()` after every change, until the returned function is called.

        Args:
            address: Network address.
            changed: Function without arguments.
            token: The phone; None for a page that follows the lesson.

        Raises:
            Busy: There are too many connections already.
        """
        full = self._streams.total() >= STREAMS * PHONES
        if full or self._streams[address] >= STREAMS * PHONES_PER_ADDRESS:
            message = tr("Too many phones follow this room; try again in a minute.")
            raise Busy(message, seconds=60)
        self._streams[address] += 1
        self._followers[changed] = token
        if token is not None:
            self._present[token] += 1
        if self.wall is not None:  # the run of a phone that is back may be started
            self.wall.wake()

        def end() -> None:
            if changed not in self._followers:
                return  # it has ended before
            del self._followers[changed]
            self._streams -= Counter([address])
            if token is not None:
                self._present -= Counter([token])

        return end

    def _notify(self, token: str | None = None) -> None:
        """Call the followers, or only those of one phone."""
        self._touched = self._clock()
        for changed, owner in list(self._followers.items()):
            if token is None or owner == token:
                changed()


class Rooms:
    """The rooms of a server.

    Attributes:
        networked: Whether other machines can reach the server.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.networked = False
        self._clock = clock
        self._rooms: dict[str, Room] = {}
        self._misses: OrderedDict[str, TokenBucket] = OrderedDict()
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._rooms)

    def open(self, owner: str) -> Room:
        """Open a room.

        Raises:
            BadInput: The presenter, or the server, has too many rooms.
        """
        self.expire()
        if sum(room.owner == owner for room in self._rooms.values()) >= PER_PRESENTER:
            raise BadInput(tr("You have {n} rooms open; end one of them first.", n=PER_PRESENTER))
        if len(self._rooms) >= ROOMS:
            message = tr("This server has {n} rooms open, its limit; try again later.", n=ROOMS)
            raise BadInput(message)
        code = ""
        while not code or code in self._rooms:
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        self._rooms[code] = room = Room(code, owner, self._clock)
        return room

    def find(self, code: str) -> Room | None:
        """Return the room with this code, in letters of either case."""
        self.expire()
        return self._rooms.get(code.upper())

    def entered(self, code: str, address: str) -> Room:
        """Return the room with a code that was entered at this address.

        Raises:
            NotFound: There is no such room.
            Busy: Too many invalid codes came from this address.
        """
        room = self.find(code)
        if room is None:
            misses = self._misses.setdefault(address, TokenBucket(*MISS_PACE))
            self._misses.move_to_end(address)
            while len(self._misses) > 1000:
                self._misses.popitem(last=False)
            misses.take(self._clock())
            raise NotFound(tr("No lesson has this code; the screen shows the right one."))
        return room

    def start(self) -> None:
        """Start removing expired rooms, on the running event loop."""

        async def sweep() -> None:
            while True:
                await asyncio.sleep(SWEEP)
                self.expire()

        self._sweeper = asyncio.get_running_loop().create_task(sweep())

    def stop(self) -> None:
        """End all rooms."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for room in self._rooms.values():
            room.close()

    def expire(self) -> None:
        """Remove expired rooms."""
        self._rooms = {code: room for code, room in self._rooms.items() if not room.over()}
