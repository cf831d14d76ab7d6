"""The fair queue: owners take turns, each owner's runs in the order in which they came."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence


class FairQueue:
    """Runs waiting for a worker. A run that goes on (after a loss, to conclude) goes first."""

    def __init__(self) -> None:
        self._first: deque[str] = deque()
        self._owners: OrderedDict[str, deque[str]] = OrderedDict()

    def __contains__(self, run: str) -> bool:
        return run in self._first or any(run in q for q in self._owners.values())

    def __len__(self) -> int:
        return len(self._first) + sum(len(q) for q in self._owners.values())

    def put(self, run: str, owner: str, *, first: bool = False) -> None:
        """Let a run wait; `first`: before all others."""
        if first:
            self._first.append(run)
        else:
            self._owners.setdefault(owner, deque()).append(run)

    def take(self) -> str:
        """The next run; its owner's other runs now wait behind every other owner's next."""
        if self._first:
            return self._first.popleft()
        owner, waiting = next(iter(self._owners.items()))
        run = waiting.popleft()
        del self._owners[owner]
        if waiting:
            self._owners[owner] = waiting
        return run

    def remove(self, run: str) -> bool:
        """Take a run out of turn; False if it was not waiting."""
        for waiting in (self._first, *self._owners.values()):
            if run in waiting:
                waiting.remove(run)
                self._owners = OrderedDict((o, q) for o, q in self._owners.items() if q)
                return True
        return False

    def order(self) -> list[str]:
        """The waiting runs in the order in which they would be taken now."""
        turns = [list(q) for q in self._owners.values()]
        longest = max((len(q) for q in turns), default=0)
        return [*self._first, *(q[i] for i in range(longest) for q in turns if i < len(q))]


def waits(
    order: Sequence[str],
    busy: Sequence[str],
    slots: int,
    seconds: Callable[[str], float | None],
) -> list[float | None]:
    """How long each waiting run will wait, as far as that is known.

    Args:
        order: The waiting runs, in the order in which they will be taken.
        busy: The runs that hold a slot.
        slots: How many runs can be in hand at once.
        seconds: How much longer a run will take, None if unknown; then it is unknown, too, for
            how long the runs behind it must wait.
    """
    left = [seconds(run) for run in busy]
    if slots < 1 or any(s is None for s in left):
        return [None] * len(order)
    free = sorted([s for s in left if s is not None] + [0.0] * (slots - len(busy)))
    estimates: list[float | None] = []
    for run in order:
        at = heapq.heappop(free)
        estimates.append(at)
        takes = seconds(run)
        if takes is None:
            break
        heapq.heappush(free, at + takes)
    return estimates + [None] * (len(order) - len(estimates))
