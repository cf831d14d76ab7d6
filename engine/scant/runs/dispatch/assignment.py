"""Assignment of queued runs to free workers, with data and last checkpoint."""

from __future__ import annotations

import logging
import time

from scant.data_dir import fetched_path
from scant.errors import BadInput, NotFound
from scant.events import Note, State
from scant.runs.backlog import Backlog
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.pool import WorkerPool
from scant.store import Store, StoreTrouble, TakenOver
from scant.studies import entry
from scant.training.checkpoint_format import OTHER_VERSION, of_other_version

log = logging.getLogger(__name__)


class Assigner:
    """Starts attempts of runs.

    Args:
        lifecycle: Runs and their queue.
        pool: Workers.
        device: Device for training: "auto", "cpu" or "cuda".
    """

    def __init__(self, lifecycle: Lifecycle, pool: WorkerPool, device: str) -> None:
        self._lifecycle = lifecycle
        self._pool = pool
        self._device = device

    def assign(self) -> None:
        """Assign queued runs while workers are free."""
        lifecycle = self._lifecycle
        while not lifecycle.background.closing and len(lifecycle.queue) and self._pool.free() > 0:
            if lifecycle.journal.writer.trouble:
                return  # the state could not be stored: stay queued
            live = lifecycle.live[lifecycle.queue.take()]
            live.assigned, live.started, live.worker, live.announced = True, False, None, None
            live.over, live.loss, live.backlog = False, "", Backlog()
            live.steps, live.ends = 0, None
            live.since = time.monotonic()
            lifecycle.background.spawn(self._start(live))

    async def _start(self, live: ActiveRun) -> None:
        lifecycle = self._lifecycle
        async with lifecycle.turns.of(live.id):
            if lifecycle.live.get(live.id) is not live or not live.assigned:
                return
            try:
                if live.wish == "pause":  # requested after it left the queue
                    await self._rest_unbegun(live)
                    return
                if live.wish != "stop":
                    await lifecycle.set_state(live, State.STARTING)
                await self._begin(live)
            except TakenOver:
                await lifecycle.release(live)
            except (BadInput, NotFound) as error:
                await lifecycle.finish(live, State.FAILED, str(error))
            except StoreTrouble:
                log.info("run %s is not started: the server is closing", live.id)
            except Exception:
                log.exception("run %s could not be started", live.id)
                await lifecycle.finish(live, State.FAILED, "The run could not be sent to a worker.")

    async def _rest_unbegun(self, live: ActiveRun) -> None:
        if live.state is State.PAUSING:
            await self._lifecycle.finish(live, State.PAUSED, "Paused while it was queued.")
        else:  # requested by the closing server
            await self._lifecycle.interrupt(live)

    async def _begin(self, live: ActiveRun) -> None:
        journal = self._lifecycle.journal
        live.attempt, checkpoint, damage = await journal.writer.do(
            journal.store.begin_attempt, live.id, journal.server
        )
        if checkpoint is not None and of_other_version(checkpoint.blob):
            state = (
                State.FAILED if live.wish == "stop" else State.PAUSED
            )  # unchanged, nothing is lost
            await self._lifecycle.finish(live, state, OTHER_VERSION)
            return
        if damage:
            await journal.say(live.id, [Note(damage)])
        table = await journal.writer.do(_table, journal.store, live)
        job = {
            "run": live.id,
            "attempt": live.attempt,
            "study": live.study,
            "settings": live.settings,
            "data": live.data,
            "device": self._device,
            "wish": live.wish,
        }
        self._lifecycle.client.begin(job, table, checkpoint.blob if checkpoint else None)
        live.resident, live.heeded = 0, False  # after the last message of the previous attempt


def _table(store: Store, live: ActiveRun) -> bytes | None:
    """Return data that the worker cannot generate, as Parquet."""
    if live.data.startswith("upload:"):
        return store.upload_parquet(live.data.removeprefix("upload:"))
    source = next(s for s in entry(live.study).sources if s.name == live.data)
    if source.kind != "fetched":
        return None
    path = fetched_path(source.name)
    if not path.is_file():
        raise BadInput(
            f"The data set {source.name!r} is not on this machine; "
            f"fetch it with: scant data fetch {source.name}"
        )
    return path.read_bytes()
