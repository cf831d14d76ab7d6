"""Attempts of runs on workers: sent out in turn, listened to, and tried again when lost."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from scant.events import State
from scant.runs.dispatch.assignment import Assigner
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.listener import Listener, Reword
from scant.runs.dispatch.pool import WorkerPool
from scant.runs.dispatch.waiting import Places
from scant.runs.dispatch.warm import WarmModels
from scant.store import StoreTrouble

TICK_SECONDS = 1.0
PURGE_SECONDS = 3600.0
SPACE_SECONDS = 30.0  # between two looks whether the database has room to give back

log = logging.getLogger(__name__)


class Dispatcher:
    """The half of the run service that pages do not see.

    All of it runs on one event loop; the store is written by one thread of its own, in order and
    until it has taken what there is (`scant.runs.store_writer`), and watchers are told only of what
    is in the store. What workers say is taken in at once, whatever the store does. Whatever decides
    over a run has its turn with it (`scant.runs.dispatch.turns`).

    Args:
        care: The runs in this server's care.
        reword: Has the say on what runs say, before it is put down.
        device: "auto", "cpu" or "cuda": where workers train.
        upload_days: After how many days uploads are deleted.

    Attributes:
        pool: The workers that are up.
        warm: Where models are warm.
    """

    def __init__(self, care: Lifecycle, reword: Reword, device: str, upload_days: float) -> None:
        self.warm = WarmModels()
        self._care = care
        self._listener = Listener(care, self.warm, reword)
        self.pool = WorkerPool(care, self._listener)
        self._assigner = Assigner(care, self.pool, device)
        self._places = Places(care, self.pool)
        self._upload_days = upload_days
        self._purged = -PURGE_SECONDS

    async def start(self) -> None:
        """Bring the workers up. Raises as `Workers.connect` does."""
        await self._care.journal.writer.do(self._care.journal.store.import_shipped)
        await self.pool.start()
        for work in (
            self._listener.listen(),
            self.pool.watch(),
            self._pump(),
            self._give_back(),
        ):
            self._care.background.spawn(work)
        self._care.wake.set()

    async def close(self, patience: float = 3.0) -> None:
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        care = self._care
        care.background.closing = True
        for live in care.assigned():
            if live.wish is None:
                live.wish = "pause"
                await care.send_wish(live)
        deadline = time.monotonic() + patience
        while care.assigned() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        care.journal.writer.give_up()  # what is not stored is trained again from the checkpoint
        await care.background.cancel()
        for live in care.assigned():
            if live.state not in (State.PAUSING, State.STOPPING):
                try:
                    await care.interrupt(live)
                except StoreTrouble as error:
                    log.error("the interruption of run %s was not stored: %s", live.id, error)
        await care.client.close()
        await care.journal.writer.close(patience)

    async def _pump(self) -> None:
        wake = self._care.wake
        while not self._care.background.closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), TICK_SECONDS)
            wake.clear()
            try:
                self._assigner.assign()
                await self._places.announce()
                await self._purge()
            except Exception:
                log.exception("unexpected error in the run service")
                await asyncio.sleep(TICK_SECONDS)

    async def _purge(self) -> None:
        """Delete uploads whose days are over, once an hour."""
        if time.monotonic() - self._purged > PURGE_SECONDS:
            self._purged = time.monotonic()
            store = self._care.journal.store
            await self._care.journal.writer.do(store.purge_uploads, self._upload_days)

    async def _give_back(self) -> None:
        """Return disk space to the system, a little at a time, until the server closes."""
        more, journal = False, self._care.journal
        while not self._care.background.closing:
            await asyncio.sleep(TICK_SECONDS if more else SPACE_SECONDS)
            with suppress(StoreTrouble):
                more = await journal.writer.promptly(journal.store.give_back)
