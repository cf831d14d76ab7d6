"""Monitoring of workers, and replacement of lost or silent ones."""

from __future__ import annotations

import asyncio
import logging
import time

from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.listener import Listener

COUNT_SECONDS = 1.0  # between two counts of the workers
SILENCE_SECONDS = 10.0  # after which a worker is lost; heartbeats come every two seconds
# A computation that holds the GIL blocks heartbeats. A silent local worker that uses CPU time
# counts as alive up to this limit.
COMPUTING_SECONDS = 600.0
MIN_CPU_SECONDS = 0.05  # CPU time between checks of a worker that is computing
GONE_SECONDS = 10.0  # without any worker, after which new ones are started

log = logging.getLogger(__name__)


class WorkerPool:
    """Monitor of the workers.

    Attributes:
        slots: Number of runs that each worker can take by address, at the last check.
    """

    def __init__(self, lifecycle: Lifecycle, listener: Listener) -> None:
        self.slots: dict[str, int] = {}
        self._lifecycle = lifecycle
        self._listener = listener
        self._last_check = self._last_present = time.monotonic()

    def free(self) -> int:
        """Return the number of further runs that the workers can take."""
        return sum(self.slots.values()) - len(self._lifecycle.assigned())

    async def start(self) -> None:
        """Start the workers. Raises as `Workers.connect` does."""
        await self._lifecycle.client.connect()
        self.slots = await self._lifecycle.client.slots()
        self._last_present = time.monotonic()

    async def watch(self) -> None:
        """Check the workers until the server closes, without waiting for the store."""
        while not self._lifecycle.background.closing:
            await asyncio.sleep(COUNT_SECONDS)
            try:
                await self._count()
            except Exception:
                log.exception("the workers could not be watched")

    async def _count(self) -> None:
        """Handle lost and silent workers; start new ones if none is left."""
        lifecycle, now = self._lifecycle, time.monotonic()
        slept = now - self._last_check > 3 * COUNT_SECONDS + 2
        self._last_check = now
        self.slots = await lifecycle.client.slots()
        if self.slots:
            self._last_present = now
            lifecycle.wake.set()
        for live in lifecycle.assigned():
            if live.over:
                continue  # finished or lost already
            if slept:
                live.heard = now  # this machine was suspended
            elif live.worker is not None and await self._silent(live, live.worker, now):
                lifecycle.background.spawn(
                    lifecycle.client.renew(live.worker, live.id, live.attempt)
                )
                self._listener.lose(live, f"it was silent for {SILENCE_SECONDS:g} s")
        if now - self._last_present > GONE_SECONDS and (
            lifecycle.client.local or not lifecycle.client.connected
        ):
            log.warning("no worker is left; bringing up new ones")
            self._last_present = now
            for live in lifecycle.assigned():
                self._listener.lose(live, "no worker was left")
            await lifecycle.client.connect()

    async def _silent(self, live: ActiveRun, worker: str, now: float) -> bool:
        """Return True if a worker has sent no message and used no CPU time for too long."""
        used = await self._lifecycle.client.cpu_seconds(worker)
        if used is not None and abs(used - live.cpu) > MIN_CPU_SECONDS:
            live.cpu, live.computed = used, now
        if now - live.heard > COMPUTING_SECONDS:
            return True
        return now - max(live.heard, live.computed) > SILENCE_SECONDS
