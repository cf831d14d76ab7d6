"""The end of a fit's time, which all of its phases share, and the clock that it goes by."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
Watch = Callable[[str, int, int, float | None], None]
END = object()
PATIENCE = 2.0  # seconds of the wall clock that a second of the budget takes at most


class Effort:
    """Clock of the work that a thread has done, in seconds of the machine of the estimates.

    Its time stands still while other programs have the processor, and is slower on a slower
    machine, so that a fit there takes longer and does not become worse. It goes at least at a
    `PATIENCE`th of the wall clock, by which no fit takes more than this multiple of its budget.

    Args:
        speed: Of this machine (`scant.hardware.speed`).
        wall: Returns seconds.
        work: Returns seconds of processor time of the calling thread.
    """

    def __init__(
        self,
        speed: float = 1.0,
        wall: Callable[[], float] = time.monotonic,
        work: Callable[[], float] = time.thread_time,
    ) -> None:
        self.speed, self.wall, self.work = speed, wall, work
        self._begun, self._done, self._thread = wall(), 0.0, threading.get_ident()
        self._last = work()

    def __call__(self) -> float:
        now, thread = self.work(), threading.get_ident()
        if thread == self._thread:
            self._done += self.speed * (now - self._last)
        self._last, self._thread = now, thread  # what one thread has done another goes on from
        return max(self._done, self._waited)

    @property
    def slowed(self) -> bool:
        """Whether the wall clock is what it goes by."""
        return self._waited > self._done

    @property
    def _waited(self) -> float:
        return (self.wall() - self._begun) / PATIENCE


class Deadline:
    """Time of a fit, all phases included: search, average, gaps, report, folds, rivals.

    The training loop makes one deadline for each fit. Every phase takes a share of the time left
    and asks `units` for its units of work (a fold, another model); a unit that is not expected to
    end in time is not begun. A deadline of infinite seconds skips nothing: such a fit does not
    depend on the speed of the machine.

    Args:
        seconds: Time until the deadline.
        clock: Returns seconds; of a fit with a time budget it is `Effort`.

    Example:
        deadline = Deadline(60.0)
        for fold in deadline.share(0.5).units(folds, "folds", minimum=1):
            score(fold)

    Attributes:
        skipped: Names of the units that this deadline and its shares left out.
        watch: Called before each unit with a name: (name, units done, all units, expected seconds
            of the others or None). Shares pass it on.
    """

    watch: Watch | None = None

    def __init__(
        self, seconds: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds, self.clock = seconds, clock
        self.begun = clock()
        self.skipped: list[str] = []

    @property
    def used(self) -> float:
        """Seconds since it was made."""
        return self.clock() - self.begun

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.seconds - self.used

    def share(self, part: float) -> Deadline:
        """Deadline of a phase that may take this part of the time left."""
        return self.within(part * self.left)

    def leaving(self, seconds: float) -> Deadline:
        """Deadline of a phase that leaves these seconds to a later one."""
        return self.within(self.left - seconds)

    def within(self, seconds: float) -> Deadline:
        """Deadline of a phase that may take so many of the seconds left; without an end it has
        none either."""
        made = Deadline(
            min(seconds, self.left) if math.isfinite(self.left) else self.left, self.clock
        )
        made.skipped, made.watch = self.skipped, self.watch
        return made

    def units(
        self,
        items: Iterable[T],
        name: str = "",
        minimum: int = 0,
        expected: float = 0.0,
        label: str = "",
    ) -> Iterator[T]:
        """Yield items until the next unit of work is not expected to end in time.

        A unit is expected to take as long as the one before it, the time for making the item
        included.

        Args:
            items: One for each unit of work; cheap to make if there is a `name`.
            name: Name of the units in `skipped`; "": none is noted.
            minimum: Number of units that are done in any case.
            expected: Seconds of the first unit.
            label: Description of the work for `watch`; "": `name`.
        """
        label = label or name
        if label:
            items = list(items)
        source, done, started = iter(items), 0, self.clock()
        while done < minimum or self.left > expected:
            begun = self.clock()
            if label and self.watch is not None and isinstance(items, list) and done < len(items):
                rest = (begun - started) / done * (len(items) - done) if done else None
                self.watch(label, done, len(items), rest)
            item = next(source, END)
            if item is END:
                return
            yield item  # type: ignore[misc]  # no END
            done, expected = done + 1, self.clock() - begun
        if name and name not in self.skipped and next(source, END) is not END:
            self.skipped.append(name)


NEVER = Deadline()  # where nobody has set an end
