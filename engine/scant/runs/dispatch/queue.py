"""The fair queue: addresses and owners take turns, an owner's runs in the order they came."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

Addresses = OrderedDict[str, OrderedDict[str, deque[str]]]  # runs by owner, by address


class FairQueue:
    """Runs waiting for a worker. A run that goes on (after a loss, to conclude) goes first.

    Network addresses take turns, and within an address its owners: who comes with many cookies
    waits as long as who comes with one.
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
        """Let a run wait; `first`: before all others."""
        if first:
            self._first.append(run)
        else:
            owners = self._addresses.setdefault(address, OrderedDict())
            owners.setdefault(owner, deque()).append(run)

    def take(self) -> str:
        """The next run; others of its address and owner now wait behind everybody else's next."""
        return self._first.popleft() if self._first else _take(self._addresses)

    def remove(self, run: str) -> bool:
        """Take a run out of turn; False if it was not waiting."""
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
        """The waiting runs in the order in which they would be taken now."""
        rest: Addresses = OrderedDict(
            (address, OrderedDict((owner, deque(q)) for owner, q in owners.items()))
            for address, owners in self._addresses.items()
        )
        order = [*self._first]
        while rest:
            order.append(_take(rest))
        return order


def _take(addresses: Addresses) -> str:
    """The next run of these; its address and its owner go behind the others."""
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
