"""The gate before page builds: one at a time, clients in fair turns, the event loop free between.

To build a page takes a second of the event loop, in which the server answers nobody. Twenty builds
in a row would stop it for half a minute, so after each the loop is free for a while, and whoever
waits is served in turn: first by address, then by visitor. A client with many requests delays the
next client by the build that is under way, and no more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

from scant_dashboard.limits.client import Busy, Client

PER_VISITOR = 4  # waiting requests of one cookie
PER_ADDRESS = 64  # of one address: a workshop of thirty behind one router gets in
OVERALL = 256
REST = 0.25  # of a build's time, which the loop is free after it
SHORTEST, LONGEST = 0.02, 0.5  # seconds of that rest


class Withdrawn(Exception):
    """The client went away while its request waited."""


class Turn:
    """A request's place at the gate; `async with` waits for its turn and ends it."""

    def __init__(self, gate: PageGate, client: Client) -> None:
        self.client = client
        self._gate = gate
        self._come: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Turn:
        """Wait.

        Raises:
            Busy: Too many requests wait already.
            Withdrawn: `withdraw` was called meanwhile.
        """
        self._come = asyncio.get_running_loop().create_future()
        self._gate._join(self)
        try:
            await self._come
        except BaseException:
            self._gate._leave(self)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._gate._leave(self)

    def end(self) -> None:
        """End a turn that has come before its work is done; the next one need not wait for it."""
        self._gate._leave(self)

    def withdraw(self) -> None:
        """Give up waiting, because the client has gone; a turn that has come is not affected."""
        if self._come is not None and not self._come.done():
            self._come.set_exception(Withdrawn())


class PageGate:
    """Lets requests through one at a time. Used on one event loop.

    Args:
        per_visitor: Requests that may wait with the same visitor cookie.
        per_address: Requests that may wait from the same address.
        overall: Requests that may wait at all.
        shortest: Seconds that the loop is free after a turn, at least.
    """

    def __init__(
        self,
        per_visitor: int = PER_VISITOR,
        per_address: int = PER_ADDRESS,
        overall: int = OVERALL,
        shortest: float = SHORTEST,
    ) -> None:
        self._bounds = per_visitor, per_address, overall
        self._shortest = shortest
        # Addresses in the order of their turns, of each its visitors in the order of theirs. The
        # client whose turn it is stays in its place, and goes to the end when its turn ends.
        self._lines: dict[str, dict[str, deque[Turn]]] = {}
        self._current: Turn | None = None
        self._began = self._free_at = 0.0  # the loop's time
        self._timer: asyncio.TimerHandle | None = None

    def turn(self, address: str, visitor: str = "") -> Turn:
        """A place for a request; it joins the line when it is entered."""
        return Turn(self, Client(address, visitor))

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return sum(len(line) for visitors in self._lines.values() for line in visitors.values())

    def _join(self, turn: Turn) -> None:
        address, visitor = turn.client.address, turn.client.visitor
        per_visitor, per_address, overall = self._bounds
        visitors = self._lines.get(address, {})
        # Requests without a cookie are as many visitors as there are browsers, or only one.
        if visitor and len(visitors.get(visitor, ())) >= per_visitor:
            raise Busy("You are opening many pages at once; the next one opens in a few seconds.")
        if sum(map(len, visitors.values())) >= per_address:
            raise Busy(
                "Many pages are being opened from your network; this one opens in a few seconds."
            )
        if self.waiting >= overall:
            raise Busy(
                "Many people are opening pages here; this one opens in a few seconds.", status=503
            )
        self._lines.setdefault(address, {}).setdefault(visitor, deque()).append(turn)
        self._schedule()

    def _leave(self, turn: Turn) -> None:
        """End a turn, or take a request that waits out of the line."""
        address, visitor = turn.client.address, turn.client.visitor
        if turn is self._current:
            loop = asyncio.get_running_loop()
            rest = REST * (loop.time() - self._began)
            self._free_at = loop.time() + min(max(rest, self._shortest), LONGEST)
            self._current = None
            self._lines[address][visitor] = self._lines[address].pop(visitor)
            self._lines[address] = self._lines.pop(address)
        elif turn in self._lines.get(address, {}).get(visitor, ()):
            self._lines[address][visitor].remove(turn)
        self._tidy(address, visitor)
        self._schedule()

    def _tidy(self, address: str, visitor: str) -> None:
        """Drop empty lines, save those of the client whose turn it is."""
        if self._current is not None and self._current.client == Client(address, visitor):
            return
        visitors = self._lines.get(address, {})
        if not visitors.get(visitor, True):
            del visitors[visitor]
        if not self._lines.get(address, True):
            del self._lines[address]

    def _schedule(self) -> None:
        if self._current is None and self._timer is None and self._lines:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._free_at), self._let_in)

    def _let_in(self) -> None:
        """Begin the next turn."""
        self._timer = None
        if not self._lines:
            return
        visitors = next(iter(self._lines.values()))
        turn = next(iter(visitors.values())).popleft()
        self._current = turn
        self._began = asyncio.get_running_loop().time()
        assert turn._come is not None
        if turn._come.done():  # withdrawn a moment ago; its task ends the turn
            return
        turn._come.set_result(None)
