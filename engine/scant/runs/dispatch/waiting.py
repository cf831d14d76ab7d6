"""Messages to waiting runs: their places in the queue, and estimated waiting times."""

from __future__ import annotations

import time

from scant.events import Event, Finished, Queued
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.pool import WorkerPool
from scant.runs.dispatch.queue import waits


class Places:
    """Tells each waiting run its place and wait, where they have changed."""

    def __init__(self, care: Lifecycle, pool: WorkerPool) -> None:
        self._care = care
        self._pool = pool
        self._typical: dict[str, float | None] = {}  # seconds of a run, by study
        care.journal.subscribe(self._forget)

    async def announce(self) -> None:
        """Tell them."""
        care, journal = self._care, self._care.journal
        order = care.queue.order()
        for study in {care.live[run].study for run in order} - self._typical.keys():
            typical = await journal.writer.do(journal.store.typical_seconds, study)
            self._typical[study] = typical
        busy = [live.id for live in care.assigned()]
        estimates = waits(order, busy, sum(self._pool.slots.values()), self._seconds_left)
        for place, (run, wait) in enumerate(zip(order, estimates), start=1):
            queued = Queued(place, None if wait is None else float(round(wait)))
            live = care.live.get(run)
            if live is not None and live.announced != queued:
                live.announced = queued
                journal.publish(run, [queued])

    def _seconds_left(self, run: str) -> float | None:
        """Of a run: until its last step at its pace, or else what runs of its study take.

        None where it has taken longer than that already: nobody knows how long it still takes.
        """
        live = self._care.live.get(run)
        if live is None:
            return None
        now, typical = time.monotonic(), self._typical.get(live.study)
        if not live.assigned:
            return typical
        ends = live.ends if live.ends is not None else live.since + (typical or 0.0)
        return ends - now if ends > now else None

    def _forget(self, run: str, events: list[Event]) -> None:
        """A run that has ended is counted when its study is next asked for."""
        live = self._care.live.get(run)
        if live is not None and any(isinstance(e, Finished) for e in events):
            self._typical.pop(live.study, None)
