"""Delays between password attempts, which double with every failure.

Attempts that come too early are rejected without checking the password, so that guessing costs the
server nothing; no connection is kept waiting.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from scant.runs.addresses import network

CAPACITY = 20_000  # counts in memory, some 5 MB
FORGOTTEN_SECONDS = 3600.0  # without an attempt, after which failures expire


@dataclass(frozen=True)
class Rule:
    """After `free` failures the next attempt waits 1 s, then 2, 4 ... up to `longest` seconds."""

    free: int
    longest: float

    def wait(self, failures: int) -> float:
        """Return the seconds to wait after the last of so many failures."""
        over = failures - self.free
        return 0.0 if over <= 0 else min(2.0 ** min(over - 1, 30), self.longest)


# One person who mistypes; many users behind one address; many addresses against one name. The last
# delay is short, because it also affects the legitimate user.
PAIR = Rule(3, 900.0)
ADDRESS = Rule(20, 900.0)
NAME = Rule(20, 60.0)


@dataclass
class _Count:
    failures: int = 0
    last: float = 0.0


class Throttle:
    """Counts failed logins by name, by address, and by both. For a single thread.

    Args:
        capacity: Maximum number of counts; the least recently used ones are dropped.
        clock: Monotonic clock in seconds.
    """

    def __init__(
        self, capacity: int = CAPACITY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity, self._clock = capacity, clock
        self._counts: OrderedDict[tuple[str, ...], _Count] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def begin(self, name: str, address: str) -> int:
        """Return whether a password may be tried now.

        An attempt counts as failed until `succeeded`, so that simultaneous attempts count.

        Returns:
            Seconds to wait before the next attempt; 0 if this one may proceed.
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
        """Remove the count of this attempt and of this name's failures from this address.

        Failures of the address remain, or an attacker with an account could clear them at will.
        """
        self.undo(name, address)
        pair, *_ = _rules(name, address)
        self._counts.pop(pair, None)

    def undo(self, name: str, address: str) -> None:
        """Remove the count of an attempt that was not made."""
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
    """Return the rules for an attempt, by key of its counts."""
    subscriber, name = network(address)[:80], name[:80]
    return {
        ("pair", name, subscriber): PAIR,
        ("address", subscriber): ADDRESS,
        ("name", name): NAME,
    }
