"""Dispatch of attempts to workers, with messages and retries after losses."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from scant.events import State
from scant.hardware import return_freed_memory
from scant.runs.dispatch.assignment import Assigner
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.listener import Listener, Reword
from scant.runs.dispatch.pool import WorkerPool
from scant.runs.dispatch.waiting import QueuePositions
from scant.runs.dispatch.warm import WarmModels
from scant.store import StoreTrouble

TICK_SECONDS = 1.0
PURGE_SECONDS = 3600.0
SPACE_SECONDS = 30.0  # between two checks for free memory and free space in the database

log = logging.getLogger(__name__)


class Dispatcher:
    """Part of the run service that connects the queue, the workers and the store.

    Everything runs on one event loop. The store is written in order by a separate thread with
    retries (`scant.runs.store_writer`), and only stored events are published. Messages of workers
    are received at once, even if the store is not available. Changes of a run require its lock
    (`scant.runs.dispatch.turns`).

    Args:
        lifecycle: Runs of this server.
        reword: Function that may change events before they are stored.
        device: Device for training: "auto", "cpu" or "cuda".
        upload_days: Number of days after which uploads are deleted.

    Attributes:
        pool: Available workers.
        warm: Workers with models in memory.
    """

    def __init__(
        self, lifecycle: Lifecycle, reword: Reword, device: str, upload_days: float
    ) -> None:
        self.warm = WarmModels()
        self._lifecycle = lifecycle
        self._listener = Listener(lifecycle, self.warm, reword)
        self.pool = WorkerPool(lifecycle, self._listener)
        self._assigner = Assigner(lifecycle, self.pool, device)
        self._queue_positions = QueuePositions(lifecycle, self.pool)
        self._upload_days = upload_days
        self._purged = -PURGE_SECONDS

    async def start(self) -> None:
        """Start the workers. Raises as `Workers.connect` does."""
        await self._lifecycle.journal.writer.do(self._lifecycle.journal.store.import_shipped)
        await self.pool.start()
        for work in (
            self._listener.listen(),
            self.pool.watch(),
            self._pump(),
            self._give_back(),
        ):
            self._lifecycle.background.spawn(work)
        self._lifecycle.wake.set()

    async def close(self, patience: float = 3.0) -> None:
        """Save checkpoints of running runs for the next start, and close the workers."""
        lifecycle = self._lifecycle
        lifecycle.background.closing = True
        for live in lifecycle.assigned():
            if live.wish is None:
                live.wish = "pause"
                await lifecycle.send_wish(live)
        deadline = time.monotonic() + patience
        while lifecycle.assigned() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        lifecycle.journal.writer.give_up()  # events not stored are recomputed from the checkpoint
        await lifecycle.background.cancel()
        for live in lifecycle.assigned():
            if live.state not in (State.PAUSING, State.STOPPING):
                try:
                    await lifecycle.interrupt(live)
                except StoreTrouble as error:
                    log.error("the interruption of run %s was not stored: %s", live.id, error)
        await lifecycle.client.close()
        await lifecycle.journal.writer.close(patience)

    async def _pump(self) -> None:
        wake = self._lifecycle.wake
        while not self._lifecycle.background.closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), TICK_SECONDS)
            wake.clear()
            try:
                self._assigner.assign()
                await self._queue_positions.announce()
                await self._purge()
            except Exception:
                log.exception("unexpected error in the run service")
                await asyncio.sleep(TICK_SECONDS)

    async def _purge(self) -> None:
        """Delete expired uploads and left temporary runs, once an hour."""
        if time.monotonic() - self._purged > PURGE_SECONDS:
            self._purged = time.monotonic()
            store = self._lifecycle.journal.store
            await self._lifecycle.journal.writer.do(store.purge_uploads, self._upload_days)
            await self._lifecycle.journal.writer.do(store.delete_temporary_runs)

    async def _give_back(self) -> None:
        """Return unused memory, and disk space in small steps, until the server closes."""
        more, journal = False, self._lifecycle.journal
        while not self._lifecycle.background.closing:
            await asyncio.sleep(TICK_SECONDS if more else SPACE_SECONDS)
            await asyncio.to_thread(return_freed_memory)
            with suppress(StoreTrouble):
                more = await journal.writer.promptly(journal.store.give_back)
