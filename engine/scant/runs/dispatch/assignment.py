"""Queued runs sent to free workers, each with its data and its last checkpoint."""

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
    """Begins attempts.

    Args:
        care: The runs, and the queue of those that wait.
        pool: The workers.
        device: "auto", "cpu" or "cuda": where workers train.
    """

    def __init__(self, care: Lifecycle, pool: WorkerPool, device: str) -> None:
        self._care = care
        self._pool = pool
        self._device = device

    def assign(self) -> None:
        """Take runs out of the queue for as long as a worker is free."""
        care = self._care
        while not care.background.closing and len(care.queue) and self._pool.free() > 0:
            if care.journal.writer.trouble:
                return  # a run that cannot be put down as starting waits in the queue
            live = care.live[care.queue.take()]
            live.assigned, live.started, live.worker, live.announced = True, False, None, None
            live.over, live.loss, live.backlog = False, "", Backlog()
            live.steps, live.ends = 0, None
            live.since = time.monotonic()
            care.background.spawn(self._start(live))

    async def _start(self, live: ActiveRun) -> None:
        care = self._care
        async with care.turns.of(live.id):
            if care.live.get(live.id) is not live or not live.assigned:
                return
            try:
                if live.wish == "pause":  # since it left the queue
                    await self._rest_unbegun(live)
                    return
                if live.wish != "stop":
                    await care.set_state(live, State.STARTING)
                await self._begin(live)
            except TakenOver:
                await care.release(live)
            except (BadInput, NotFound) as error:
                await care.finish(live, State.FAILED, str(error))
            except StoreTrouble:
                log.info("run %s is not started: the server is closing", live.id)
            except Exception:
                log.exception("run %s could not be started", live.id)
                await care.finish(live, State.FAILED, "The run could not be sent to a worker.")

    async def _rest_unbegun(self, live: ActiveRun) -> None:
        if live.state is State.PAUSING:
            await self._care.finish(live, State.PAUSED, "Paused while it was queued.")
        else:  # nobody but the server that closes wished it
            await self._care.interrupt(live)

    async def _begin(self, live: ActiveRun) -> None:
        journal = self._care.journal
        live.attempt, checkpoint, damage = await journal.writer.do(
            journal.store.begin_attempt, live.id, journal.server
        )
        if checkpoint is not None and of_other_version(checkpoint.blob):
            state = State.FAILED if live.wish == "stop" else State.PAUSED  # as it was: none is lost
            await self._care.finish(live, state, OTHER_VERSION)
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
        self._care.client.begin(job, table, checkpoint.blob if checkpoint else None)
        live.resident, live.heeded = 0, False  # after the last word of the attempt before


def _table(store: Store, live: ActiveRun) -> bytes | None:
    """Data that the worker cannot make itself, as Parquet; it may be on another machine."""
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
