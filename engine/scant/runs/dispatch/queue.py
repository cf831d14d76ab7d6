"""Fair queue of runs: round-robin over addresses and owners, first in first out for an owner."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

Addresses = OrderedDict[str, OrderedDict[str, deque[str]]]  # runs by owner, by address


class FairQueue:
    """Queue of runs, with continued runs first.

    Network addresses take turns, and owners take turns within an address, so additional cookies
    give no advantage.
    """

    def __init__(self) -> None:
        self._first: deque[str] = deque()
        self._addresses: Addresses = OrderedDict()

    def __contains__(self, run: str) -> bool:
        return run in self.order()

    def __len__(self) -> int:
        waiting = (q for owners in self._addresses.values() for q in owners.values())
        return len(self._first) + sum(map(len, waiting))

    def put(self, run: str, owner: str, address: str = "", *, first: bool = False) -> None:
        """Add a run, before all others if `first`."""
        if first:
            self._first.append(run)
        else:
            owners = self._addresses.setdefault(address, OrderedDict())
            owners.setdefault(owner, deque()).append(run)

    def take(self) -> str:
        """Remove and return the next run; its address and owner move to the end."""
        return self._first.popleft() if self._first else _take(self._addresses)

    def remove(self, run: str) -> bool:
        """Remove a run; False if it is not in the queue."""
        if run in self._first:
            self._first.remove(run)
            return True
        for address, owners in self._addresses.items():
            for owner, waiting in owners.items():
                if run in waiting:
                    waiting.remove(run)
                    if not waiting:
                        del owners[owner]
                    if not owners:
                        del self._addresses[address]
                    return True
        return False

    def order(self) -> list[str]:
        """Return the runs in the order in which they would be taken."""
        rest: Addresses = OrderedDict(
            (address, OrderedDict((owner, deque(q)) for owner, q in owners.items()))
            for address, owners in self._addresses.items()
        )
        order = [*self._first]
        while rest:
            order.append(_take(rest))
        return order


def _take(addresses: Addresses) -> str:
    """Remove and return the next run; its address and owner move to the end."""
    address, owners = addresses.popitem(last=False)
    owner, waiting = owners.popitem(last=False)
    run = waiting.popleft()
    if waiting:
        owners[owner] = waiting
    if owners:
        addresses[address] = owners
    return run


def waits(
    order: Sequence[str],
    busy: Sequence[str],
    slots: int,
    seconds: Callable[[str], float | None],
) -> list[float | None]:
    """Estimate the waiting time of each queued run in seconds, None if unknown.

    Args:
        order: Queued runs in order.
        busy: Runs on workers.
        slots: Number of runs that workers can take.
        seconds: Function that returns the remaining time of a run, None if unknown; the waiting
            times of later runs are then unknown, too.
    """
    remaining = [seconds(run) for run in busy]
    if slots < 1 or any(s is None for s in remaining):
        return [None] * len(order)
    free = sorted([s for s in remaining if s is not None] + [0.0] * (slots - len(busy)))
    estimates: list[float | None] = []
    for run in order:
        start = heapq.heappop(free)
        estimates.append(start)
        duration = seconds(run)
        if duration is None:
            break
        heapq.heappush(free, start + duration)
    return estimates + [None] * (len(order) - len(estimates))
