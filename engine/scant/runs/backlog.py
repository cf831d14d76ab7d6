"""Queues of events to be stored, in order and with bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scant.events import Checkpoint, Event, Finished, Fitted, Note, Progress, Results, Snapshot

MAX_BYTES = 256 * 2**20  # total size of the queued events of all runs
MAX_EVENTS = 2000  # of one transaction
MAX_TRANSACTION_BYTES = 32 * 2**20
_EVENT_BYTES = 200  # approximate size of an event without arrays


class Backlog:
    """Events of one attempt that are not stored yet."""

    def __init__(self) -> None:
        self.data_hash = ""
        self.weight = 0  # in bytes
        self._events: list[Event] = []
        self._steps_dropped = 0
        self._first_dropped = self._last_dropped = 0
        self._snapshots_dropped = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, events: Sequence[Event], data_hash: str = "") -> None:
        """Append events; only the two latest checkpoints are kept."""
        self.data_hash = data_hash or self.data_hash
        self._events += events
        self.weight += _weigh(events)
        if any(isinstance(event, Checkpoint) for event in events):
            saved = [event for event in self._events if isinstance(event, Checkpoint)]
            self._drop(saved[:-2])

    def take(self) -> list[Event]:
        """Remove and return the oldest events for one transaction."""
        count, weight = 0, 0
        for event in self._events[:MAX_EVENTS]:
            weight += _weigh([event])
            if count and weight > MAX_TRANSACTION_BYTES:
                break
            count += 1
        oldest, self._events = self._events[:count], self._events[count:]
        self.weight -= _weigh(oldest)
        return [*self._lost(), *oldest]

    def thin(self) -> None:
        """Drop all snapshots but the latest; if there are none, drop every other progress event.

        Other events are never dropped, since the run would be incomplete.
        """
        shots = [event for event in self._events if isinstance(event, Snapshot)]
        if len(shots) > 1:
            self._snapshots_dropped += len(shots) - 1
            self._drop(shots[:-1])
            return
        steps = [event for event in self._events if isinstance(event, Progress)]
        dropped = steps[::2]
        if dropped:
            first = dropped[0].step
            self._first_dropped = min(first, self._first_dropped) if self._steps_dropped else first
            self._last_dropped = dropped[-1].step
            self._steps_dropped += len(dropped)
            self._drop(dropped)

    @property
    def thinnable(self) -> bool:
        """True if `thin` would drop events."""
        shots = sum(isinstance(event, Snapshot) for event in self._events)
        return shots > 1 or any(isinstance(event, Progress) for event in self._events)

    def _drop(self, events: Iterable[Event]) -> None:
        gone = {id(event) for event in events}
        self._events = [event for event in self._events if id(event) not in gone]
        self.weight = _weigh(self._events)

    def _lost(self) -> list[Event]:
        """Return a note on dropped events."""
        lost = []
        if self._steps_dropped:
            between = f"between steps {self._first_dropped} and {self._last_dropped}"
            steps = self._steps_dropped
            lost.append(f"{steps} point{'s' * (steps != 1)} of the curve {between}")
        if self._snapshots_dropped:
            shots = self._snapshots_dropped
            lost.append(f"{shots} snapshot{'s' * (shots != 1)}")
        self._steps_dropped = self._snapshots_dropped = 0
        if not lost:
            return []
        return [
            Note(
                f"The server could not reach its database for too long, and {' and '.join(lost)} "
                "could not be kept; the training itself is not affected."
            )
        ]


def make_room(backlogs: Sequence[Backlog]) -> None:
    """Thin the largest backlog until the total size is below the limit."""
    while sum(backlog.weight for backlog in backlogs) > MAX_BYTES:
        thinnable = [backlog for backlog in backlogs if backlog.thinnable]
        if not thinnable:
            return
        max(thinnable, key=lambda backlog: backlog.weight).thin()


def _weigh(events: Iterable[Event]) -> int:
    total = 0
    for event in events:
        total += _EVENT_BYTES
        if isinstance(event, Snapshot):
            total += sum(array.nbytes for array in event.arrays.values())
        elif isinstance(event, Checkpoint | Fitted):
            total += len(event.blob)
        elif isinstance(event, Finished | Results):
            total += sum(array.nbytes for array in event.report.arrays.values())
    return total
