"""Queue of page builds: one at a time, in fair turns of clients, with pauses for the event loop.

Building a page takes a second of the event loop, during which the server cannot respond. Twenty
builds in a row would block it for half a minute; therefore the loop is free for a while after each,
and waiting requests take turns: first by address, then by visitor. A client with many requests
delays the next client by at most the current build.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

from scant_dashboard.limits.client import Busy, Client

PER_VISITOR = 4  # waiting requests per cookie
PER_ADDRESS = 64  # waiting requests per address: enough for thirty people behind one router
OVERALL = 256
REST = 0.25  # pause after a build, as a fraction of its time
SHORTEST, LONGEST = 0.02, 0.5  # limits of the pause in seconds


class Withdrawn(Exception):
    """The client disconnected while its request was waiting."""


class Turn:
    """A request's place in the queue; `async with` waits for its turn and ends it."""

    def __init__(self, gate: PageGate, client: Client) -> None:
        self.client = client
        self._gate = gate
        self._granted: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Turn:
        """Wait for the turn.

        Raises:
            Busy: Too many requests are waiting already.
            Withdrawn: `withdraw` was called meanwhile.
        """
        self._granted = asyncio.get_running_loop().create_future()
        self._gate._join(self)
        try:
            await self._granted
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
        """End a granted turn early, so that the next one need not wait."""
        self._gate._leave(self)

    def withdraw(self) -> None:
        """Stop waiting because the client disconnected; no effect on a granted turn."""
        if self._granted is not None and not self._granted.done():
            self._granted.set_exception(Withdrawn())


class PageGate:
    """Lets requests through one at a time. For a single event loop.

    Args:
        per_visitor: Maximum waiting requests with the same visitor cookie.
        per_address: Maximum waiting requests from the same address.
        overall: Maximum waiting requests in total.
        shortest: Minimum pause after a turn in seconds.
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
        # Addresses in the order of their turns, and the visitors of each in the order of theirs.
        # The current client moves to the end when its turn ends.
        self._lines: dict[str, dict[str, deque[Turn]]] = {}
        self._current: Turn | None = None
        self._began = self._free_at = 0.0  # the loop's time
        self._timer: asyncio.TimerHandle | None = None

    def turn(self, address: str, visitor: str = "") -> Turn:
        """Return a place for a request, which joins the queue when entered."""
        return Turn(self, Client(address, visitor))

    @property
    def waiting(self) -> int:
        """Number of waiting requests."""
        return sum(len(line) for visitors in self._lines.values() for line in visitors.values())

    def _join(self, turn: Turn) -> None:
        address, visitor = turn.client.address, turn.client.visitor
        per_visitor, per_address, overall = self._bounds
        visitors = self._lines.get(address, {})
        # Requests without a cookie may come from one or many browsers.
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
        """End a turn, or remove a waiting request."""
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
        self._prune(address, visitor)
        self._schedule()

    def _prune(self, address: str, visitor: str) -> None:
        """Remove empty queues, except those of the current client."""
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
            self._timer = loop.call_at(max(loop.time(), self._free_at), self._grant_next)

    def _grant_next(self) -> None:
        """Grant the next turn."""
        self._timer = None
        if not self._lines:
            return
        visitors = next(iter(self._lines.values()))
        turn = next(iter(visitors.values())).popleft()
        self._current = turn
        self._began = asyncio.get_running_loop().time()
        assert turn._granted is not None
        if turn._granted.done():  # just withdrawn; its task ends the turn
            return
        turn._granted.set_result(None)
