"""What a room knows: its phones, its questions and their votes. In memory only, for one thread.

A room belongs to the presenter who opened it. It ends when he says so, a while after his page has
gone, or when nobody has done anything in it for long; then nothing of it is left.
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

LETTERS = "ACDEFGHJKMNPQRTUVWXY34679"  # none that looks like another
LENGTH = 5  # letters of a code: one in 10 million
ROOMS = 50  # of a server
PER_PRESENTER = 3
PHONES = 400  # of a room
PHONES_PER_ADDRESS = 150  # a lecture hall behind one router
STREAMS = 2  # open connections of a room, for each phone that it may have
BALLOTS = 30  # questions of a room; of more, the oldest go
IDLE = 2 * 3600.0  # seconds without any act
SWEEP = 15.0  # seconds between two looks for rooms that are over
GRACE = 60.0  # seconds for a presenter's page to come back, as after a lost connection
PHONE_PACE = (5, 1.0)  # votes of a phone at once, and a second after that
ADDRESS_PACE = (300, 30.0)
MISS_PACE = (30, 0.1)  # codes without a room, by address

Clock = Callable[[], float]


class Allowance:
    """So many acts at once, and so many a second after that."""

    def __init__(self, burst: int, pace: float) -> None:
        self._burst, self._pace, self._left, self._last = burst, pace, float(burst), 0.0

    def take(self, now: float) -> None:
        """Count an act.

        Raises:
            Busy: It comes too early.
        """
        self._left = min(self._burst, self._left + (now - self._last) * self._pace)
        self._last = now
        if self._left < 1:
            wait = int((1 - self._left) / self._pace) + 1
            raise Busy(f"That was too fast; try again in {wait} s.", seconds=wait)
        self._left -= 1


@dataclass
class Ballot:
    """A question that stands or stood, and the last answer of every phone."""

    number: int
    question: Question
    revealed: bool
    answer: str = ""
    votes: dict[str, Vote] = field(default_factory=dict)


class Room:
    """One lesson's room.

    Attributes:
        code: By which phones find it.
        owner: The presenter.
        page: The address of the lesson's page, from the server's first page; "" for none.
        present: The question that the presenter shows now; None while he shows none.
        leads: Whether phones and followers go along with the presenter.
        step: The figure that he shows, counted from 0; None before he has gone to any.
        title: Its heading.
        phones: The network address of every phone, by its token.
        closed: Whether the lesson has ended.
    """

    def __init__(self, code: str, owner: str, clock: Clock = time.monotonic) -> None:
        self.code, self.owner, self._clock = code, owner, clock
        self.page = ""
        self.ballots: list[Ballot] = []
        self.present: Ballot | None = None
        self.leads, self.closed = True, False
        self.step: int | None = None
        self.title = ""
        self.phones: dict[str, str] = {}
        self.left: float | None = None  # since when the presenter's page is gone
        self._touched = clock()
        self._asked = 0
        self._paces: dict[str, Allowance] = {}
        self._streams: Counter[str] = Counter()
        self._followers: set[Callable[[], None]] = set()
        self.counted: Callable[[], None] = lambda: None  # called when phones come or vote

    # --- the presenter ---

    def ask(
        self, question: Question | None, revealed: bool, standing: Collection[Question]
    ) -> None:
        """Show a question, or none; it keeps the votes that it has.

        Args:
            question: What the presenter shows now.
            revealed: Whether its answer may be seen.
            standing: All questions that stand; others without an answer are forgotten.
        """
        present = None
        if question is not None:
            alike = [b for b in self.ballots if (b.question, b.revealed) == (question, revealed)]
            if not alike:
                self._asked += 1
                alike = [Ballot(self._asked, question, revealed)]
                self.ballots.append(alike[0])
            present = alike[-1]
        kept = [b for b in self.ballots if b.revealed or b.question in standing][-BALLOTS:]
        if (present, kept) != (self.present, self.ballots) or len(kept) != len(self.ballots):
            self.present, self.ballots = present, kept
            self._tell()

    def reveal(self, question: Question, answer: str) -> Ballot | None:
        """End the voting on a question that stands, and say the answer once it is known."""
        for ballot in reversed(self.ballots):
            if ballot.question == question:
                if not ballot.revealed or ballot.answer != answer:
                    ballot.revealed, ballot.answer = True, answer
                    self._tell()
                return ballot
        return None

    def go(self, step: int | None, title: str) -> None:
        """The presenter is at this figure."""
        if (step, title) != (self.step, self.title):
            self.step, self.title = step, title
            self._tell()

    def lead(self, leads: bool) -> None:
        """Take phones and followers along, or let them go."""
        if leads != self.leads:
            self.leads = leads
            self._tell()

    def presenter_left(self) -> None:
        """The presenter's page has gone; it may come back."""
        self.left = self._clock()

    def close(self) -> None:
        """End the lesson and forget it."""
        self.closed, self.present = True, None
        self.ballots, self.phones = [], {}
        self._paces.clear()
        self._tell()
        self.counted()

    def over(self) -> bool:
        """Whether it has ended, by itself or by its presenter."""
        now = self._clock()
        gone = self.left is not None and now - self.left > GRACE
        if not self.closed and (gone or now - self._touched > IDLE):
            self.close()
        return self.closed

    # --- the phones ---

    def join(self, token: str, address: str) -> None:
        """Count a phone.

        Raises:
            Busy: The room, or this network's share of it, is full.
        """
        if token in self.phones:
            return
        if len(self.phones) >= PHONES:
            raise Busy(f"This room has {PHONES} phones, which is its limit.", seconds=60)
        if sum(a == address for a in self.phones.values()) >= PHONES_PER_ADDRESS:
            raise Busy(
                f"Your network has {PHONES_PER_ADDRESS} phones in this room, which is the limit.",
                seconds=60,
            )
        self.phones[token] = address
        self.counted()

    def vote(self, token: str, address: str, number: object, raw: object) -> Vote:
        """Take a phone's answer, in place of the one that it gave before.

        Raises:
            BadInput: It is no answer to this question.
            NotFound: There is no such question.
            NotAllowed: The question has been answered.
            Busy: Answers come too fast, or the room is full.
        """
        self.join(token, address)
        now = self._clock()
        for who, pace in ((f"phone {token}", PHONE_PACE), (f"from {address}", ADDRESS_PACE)):
            self._paces.setdefault(who, Allowance(*pace)).take(now)
        asked = self.ballots if type(number) is int else []  # `True == 1`
        ballot = next((b for b in asked if b.number == number), None)
        if ballot is None:
            raise NotFound("This question is not asked any more.")
        if ballot.revealed:
            raise NotAllowed("The answer has been revealed; guesses are not taken any more.")
        ballot.votes[token] = vote = ballot.question.vote(raw)
        self._touched = now
        self.counted()
        return vote

    def seen_by(self, token: str) -> dict[str, Any]:
        """What a phone is shown: the questions that stand and stood, and its own answers."""
        return {
            **self.followed(),
            "present": self.present.number if self.present else None,
            "page": self.page,
            "questions": [
                b.question.written()
                | {"number": b.number, "revealed": b.revealed, "answer": b.answer,
                   "mine": b.votes.get(token)}
                for b in self.ballots
            ],
        }  # fmt: skip

    def followed(self) -> dict[str, Any]:
        """Where the presenter is, for those who follow the lesson's page."""
        return {"leads": self.leads, "step": self.step, "title": self.title}

    def picture(self, number: int) -> bytes:
        """The picture of a question; b"" where it has none."""
        return next((b.question.picture for b in self.ballots if b.number == number), b"")

    def follow(self, address: str, heard: Callable[[], None]) -> Callable[[], None]:
        """Have `heard()` called when there is news, until the function returned is called.

        Raises:
            Busy: Too many follow already.
        """
        full = self._streams.total() >= STREAMS * PHONES
        if full or self._streams[address] >= STREAMS * PHONES_PER_ADDRESS:
            raise Busy("Too many phones follow this room; try again in a minute.", seconds=60)
        self._streams[address] += 1
        self._followers.add(heard)

        def end() -> None:
            self._followers.discard(heard)
            self._streams -= Counter([address])

        return end

    def _tell(self) -> None:
        self._touched = self._clock()
        for heard in list(self._followers):
            heard()


class Rooms:
    """The rooms of a server.

    Attributes:
        beyond: Whether other machines reach the server.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.beyond = False
        self._clock = clock
        self._rooms: dict[str, Room] = {}
        self._misses: OrderedDict[str, Allowance] = OrderedDict()
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._rooms)

    def open(self, owner: str) -> Room:
        """A new room.

        Raises:
            BadInput: The presenter, or the server, has too many.
        """
        self.expire()
        if sum(room.owner == owner for room in self._rooms.values()) >= PER_PRESENTER:
            raise BadInput(f"You have {PER_PRESENTER} rooms open; end one of them first.")
        if len(self._rooms) >= ROOMS:
            raise BadInput(f"This server has {ROOMS} rooms open, its limit; try again later.")
        code = ""
        while not code or code in self._rooms:
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        self._rooms[code] = room = Room(code, owner, self._clock)
        return room

    def find(self, code: str) -> Room | None:
        """The room of a code, in letters of either case."""
        self.expire()
        return self._rooms.get(code.upper())

    def entered(self, code: str, address: str) -> Room:
        """The room of a code that somebody at this address gave.

        Raises:
            NotFound: There is none.
            Busy: Too many codes without a room came from there.
        """
        room = self.find(code)
        if room is None:
            misses = self._misses.setdefault(address, Allowance(*MISS_PACE))
            self._misses.move_to_end(address)
            while len(self._misses) > 1000:
                self._misses.popitem(last=False)
            misses.take(self._clock())
            raise NotFound("No lesson has this code; the screen shows the right one.")
        return room

    def start(self) -> None:
        """Look for rooms that are over now and then, on the running event loop."""

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
        """Forget the rooms that are over."""
        self._rooms = {code: room for code, room in self._rooms.items() if not room.over()}
