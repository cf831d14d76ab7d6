"""Publication of queue positions and estimated waiting times."""

from __future__ import annotations

import time

from scant.events import Event, Finished, Queued
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.pool import WorkerPool
from scant.runs.dispatch.queue import waits


class QueuePositions:
    """Publisher of changed queue positions and waiting times."""

    def __init__(self, lifecycle: Lifecycle, pool: WorkerPool) -> None:
        self._lifecycle = lifecycle
        self._pool = pool
        self._typical: dict[str, float | None] = {}  # typical seconds of a run by study
        lifecycle.journal.subscribe(self._forget)

    async def announce(self) -> None:
        """Publish the positions and waiting times that have changed."""
        lifecycle, journal = self._lifecycle, self._lifecycle.journal
        order = lifecycle.queue.order()
        for study in {lifecycle.live[run].study for run in order} - self._typical.keys():
            typical = await journal.writer.do(journal.store.typical_seconds, study)
            self._typical[study] = typical
        busy = [live.id for live in lifecycle.assigned()]
        estimates = waits(order, busy, sum(self._pool.slots.values()), self._seconds_left)
        for position, (run, wait) in enumerate(zip(order, estimates), start=1):
            queued = Queued(position, None if wait is None else float(round(wait)))
            live = lifecycle.live.get(run)
            if live is not None and live.announced != queued:
                live.announced = queued
                journal.publish(run, [queued])

    def _seconds_left(self, run: str) -> float | None:
        """Estimate the remaining seconds of a run from its steps, else from runs of its study.

        None if the run has already exceeded the estimate.
        """
        live = self._lifecycle.live.get(run)
        if live is None:
            return None
        now, typical = time.monotonic(), self._typical.get(live.study)
        if not live.assigned:
            return typical
        ends = live.ends if live.ends is not None else live.since + (typical or 0.0)
        return ends - now if ends > now else None

    def _forget(self, run: str, events: list[Event]) -> None:
        """Discard the typical time of a study after one of its runs has ended."""
        live = self._lifecycle.live.get(run)
        if live is not None and any(isinstance(e, Finished) for e in events):
            self._typical.pop(live.study, None)
