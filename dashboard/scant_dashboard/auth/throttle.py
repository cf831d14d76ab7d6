"""How soon a password may be tried again: the wait doubles with every failure.

An attempt that comes too early is refused without looking at its password, so that guessing costs
the server nothing; nobody is held waiting on an open connection.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from scant.runs.addresses import network

CAPACITY = 20_000  # names and addresses remembered at once, some 5 MB
FORGOTTEN_SECONDS = 3600.0  # without an attempt, after which failures do not count any more


@dataclass(frozen=True)
class Rule:
    """After `free` failures the next attempt waits 1 s, then 2, 4 ... up to `longest` seconds."""

    free: int
    longest: float

    def wait(self, failures: int) -> float:
        """Seconds from the last of so many failures to the next attempt."""
        over = failures - self.free
        return 0.0 if over <= 0 else min(2.0 ** min(over - 1, 30), self.longest)


# One person who mistypes; many behind one address; many addresses against one name. The last is
# short, because its wait also keeps out the user whom the name belongs to.
PAIR = Rule(3, 900.0)
ADDRESS = Rule(20, 900.0)
NAME = Rule(20, 60.0)


@dataclass
class _Count:
    failures: int = 0
    last: float = 0.0


class Throttle:
    """Counts failed logins by name, by address, and by both. For one thread.

    Args:
        capacity: Counts kept; of more, those that nobody touched for longest are dropped.
        clock: Seconds that only grow.
    """

    def __init__(
        self, capacity: int = CAPACITY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity, self._clock = capacity, clock
        self._counts: OrderedDict[tuple[str, ...], _Count] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def begin(self, name: str, address: str) -> int:
        """Whether a password may be tried now.

        An attempt counts as failed until `succeeded`, lest many at once all find none before them.

        Returns:
            Seconds to wait before trying again; 0: this attempt may go on.
        """
        now, rules = self._clock(), _rules(name, address)
        waits = []
        for key, rule in rules.items():
            count = self._counts.get(key)
            if count is not None and now - count.last < FORGOTTEN_SECONDS:
                waits.append(count.last + rule.wait(count.failures) - now)
        wait = max(waits, default=0.0)
        if wait > 0:
            return math.ceil(wait)
        for key in rules:
            self._count(key, now)
        return 0

    def succeeded(self, name: str, address: str) -> None:
        """The attempt was right: it was no failure, and this name's failures from here are over.

        Those of the address stay, or an attacker with an account could clear them at will.
        """
        self.undo(name, address)
        pair, *_ = _rules(name, address)
        self._counts.pop(pair, None)

    def undo(self, name: str, address: str) -> None:
        """The attempt that `begin` counted was not made."""
        for key in _rules(name, address):
            count = self._counts.get(key)
            if count is not None:
                count.failures -= 1

    def _count(self, key: tuple[str, ...], now: float) -> None:
        count = self._counts.setdefault(key, _Count())
        if now - count.last >= FORGOTTEN_SECONDS:
            count.failures = 0
        count.failures += 1
        count.last = now
        self._counts.move_to_end(key)
        while len(self._counts) > self._capacity:
            self._counts.popitem(last=False)


def _rules(name: str, address: str) -> dict[tuple[str, ...], Rule]:
    """The counts that an attempt belongs to."""
    subscriber, name = network(address)[:80], name[:80]
    return {
        ("pair", name, subscriber): PAIR,
        ("address", subscriber): ADDRESS,
        ("name", name): NAME,
    }
