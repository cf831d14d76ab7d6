"""The workers that are up: counted every second, and replaced where they are gone or silent."""

from __future__ import annotations

import asyncio
import logging
import time

from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.listener import Listener

COUNT_SECONDS = 1.0  # between two counts of the workers
SILENCE_SECONDS = 10.0  # a worker beats every two; one that is silent this long is given up
# A computation that holds Python's interpreter lets nothing else of its process speak. A local
# worker that uses its processor is no less alive for that, up to a limit.
COMPUTING_SECONDS = 600.0
LEAST_CPU = 0.05  # seconds of processor time that count as a sign of life
GONE_SECONDS = 10.0  # so long without any worker, and new ones are brought up

log = logging.getLogger(__name__)


class WorkerPool:
    """Watches the workers.

    Attributes:
        slots: How many runs each worker can take, by its address, when they were last counted.
    """

    def __init__(self, care: Lifecycle, listener: Listener) -> None:
        self.slots: dict[str, int] = {}
        self._care = care
        self._listener = listener
        self._counted = self._seen = time.monotonic()

    def free(self) -> int:
        """How many more runs the workers can take."""
        return sum(self.slots.values()) - len(self._care.assigned())

    async def start(self) -> None:
        """Bring the workers up. Raises as `Workers.connect` does."""
        await self._care.client.connect()
        self.slots = await self._care.client.slots()
        self._seen = time.monotonic()

    async def watch(self) -> None:
        """Watch on until the server closes. This must not wait for the store."""
        while not self._care.background.closing:
            await asyncio.sleep(COUNT_SECONDS)
            try:
                await self._count()
            except Exception:
                log.exception("the workers could not be watched")

    async def _count(self) -> None:
        """Give up workers that are gone or silent; bring new ones up where none is left."""
        care, now = self._care, time.monotonic()
        slept = now - self._counted > 3 * COUNT_SECONDS + 2
        self._counted = now
        self.slots = await care.client.slots()
        if self.slots:
            self._seen = now
            care.wake.set()
        for live in care.assigned():
            if live.over:
                continue  # it has said its last, or is given up already
            if slept:
                live.heard = now  # it was us who did not listen
            elif live.worker is not None and await self._silent(live, live.worker, now):
                care.background.spawn(care.client.renew(live.worker, live.id, live.attempt))
                self._listener.lose(live, f"it was silent for {SILENCE_SECONDS:g} s")
        if now - self._seen > GONE_SECONDS and (care.client.local or not care.client.connected):
            log.warning("no worker is left; bringing up new ones")
            self._seen = now
            for live in care.assigned():
                self._listener.lose(live, "no worker was left")
            await care.client.connect()

    async def _silent(self, live: ActiveRun, worker: str, now: float) -> bool:
        """Whether a worker has neither spoken nor computed for too long."""
        used = await self._care.client.cpu_seconds(worker)
        if used is not None and abs(used - live.cpu) > LEAST_CPU:
            live.cpu, live.computed = used, now
        if now - live.heard > COMPUTING_SECONDS:
            return True
        return now - max(live.heard, live.computed) > SILENCE_SECONDS
