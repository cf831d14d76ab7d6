"""Events that wait for the store, in order and in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scant.events import Checkpoint, Event, Finished, Fitted, Note, Progress, Snapshot

ROOM = 256 * 2**20  # bytes that what waits of all runs may take
PORTION = 2000  # events of one transaction at most
PORTION_BYTES = 32 * 2**20
_FLAT = 200  # bytes that an event without arrays takes, about


class Backlog:
    """The events of one attempt that wait to be put down."""

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
        """Append what was said; of waiting checkpoints only the two latest are of use."""
        self.data_hash = data_hash or self.data_hash
        self._events += events
        self.weight += _weigh(events)
        if any(isinstance(event, Checkpoint) for event in events):
            saved = [event for event in self._events if isinstance(event, Checkpoint)]
            self._drop(saved[:-2])

    def take(self) -> list[Event]:
        """Remove and return the oldest events, as many as one transaction should have."""
        count, weight = 0, 0
        for event in self._events[:PORTION]:
            weight += _weigh([event])
            if count and weight > PORTION_BYTES:
                break
            count += 1
        taken, self._events = self._events[:count], self._events[count:]
        self.weight -= _weigh(taken)
        return [*self._lost(), *taken]

    def thin(self) -> None:
        """Make room: of snapshots only the latest stays; where none is to spare, every other point
        of the curve goes. Everything else stays, for without it the run would not be whole.
        """
        shots = [event for event in self._events if isinstance(event, Snapshot)]
        if len(shots) > 1:
            self._snapshots_dropped += len(shots) - 1
            self._drop(shots[:-1])
            return
        steps = [event for event in self._events if isinstance(event, Progress)]
        spare = steps[::2]
        if spare:
            first = spare[0].step
            self._first_dropped = min(first, self._first_dropped) if self._steps_dropped else first
            self._last_dropped = spare[-1].step
            self._steps_dropped += len(spare)
            self._drop(spare)

    @property
    def thinnable(self) -> bool:
        """Whether `thin` would make any room."""
        shots = sum(isinstance(event, Snapshot) for event in self._events)
        return shots > 1 or any(isinstance(event, Progress) for event in self._events)

    def _drop(self, events: Iterable[Event]) -> None:
        gone = {id(event) for event in events}
        self._events = [event for event in self._events if id(event) not in gone]
        self.weight = _weigh(self._events)

    def _lost(self) -> list[Event]:
        """The note on what could not be kept."""
        lost = []
        if self._steps_dropped:
            between = f"between steps {self._first_dropped} and {self._last_dropped}"
            lost.append(f"{self._steps_dropped} points of the curve {between}")
        if self._snapshots_dropped:
            lost.append(f"{self._snapshots_dropped} snapshots")
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
    """Thin the largest of all backlogs until all of them have room."""
    while sum(backlog.weight for backlog in backlogs) > ROOM:
        spare = [backlog for backlog in backlogs if backlog.thinnable]
        if not spare:
            return
        max(spare, key=lambda backlog: backlog.weight).thin()


def _weigh(events: Iterable[Event]) -> int:
    total = 0
    for event in events:
        total += _FLAT
        if isinstance(event, Snapshot):
            total += sum(array.nbytes for array in event.arrays.values())
        elif isinstance(event, Checkpoint | Fitted):
            total += len(event.blob)
        elif isinstance(event, Finished):
            total += sum(array.nbytes for array in event.report.arrays.values())
    return total
