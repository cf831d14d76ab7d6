"""Interface of the run service for the pages of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput, NotFound
from scant.events import State
from scant.runs.access import (
    address_code,
    check_may_steer,
    may_steer,
    presenter_code,
    presenter_named,
)
from scant.runs.background import Background
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.dispatcher import Dispatcher
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.journal import Journal, Watcher
from scant.runs.leases import LeaseManager
from scant.runs.limited import LimitPolicy
from scant.runs.limits import HOURS, Limits
from scant.runs.questions import Questions
from scant.runs.steering import Steering
from scant.runs.workers.client import WorkerClient
from scant.runs.workers.protocol import Workers
from scant.store import UPLOAD_DAYS, RunRecord, Store
from scant.studies import entry
from scant.studies.predicted_columns import FilePrediction


@dataclass(frozen=True)
class Status:
    """Numbers of workers, running runs and queued runs."""

    workers: int
    running: int
    queued: int


class RunService:
    """Service that submits, monitors and controls runs, on the event loop of the server.

    Args:
        store: Store of runs; None for the default store.
        workers: Number of local workers; None for one per GPU, else by number of cores.
        scheduler: Address of a Dask scheduler; None for SCANT_SCHEDULER, else local workers.
        limit_per_owner: Maximum number of queued or running runs of a visitor.
        limit_per_address: Maximum number of queued or running runs from a network address.
        hours_per_run: Maximum worker time of a run in hours; 0 for no limit.
        key: Secret key for the codes of presenters and addresses; "" to disable presenters.
        device: Device for training: "auto", "cpu" or "cuda".
        upload_days: Number of days after which uploads are deleted.
        client: Client of the workers; None for Dask with `workers` and `scheduler`.

    Attributes:
        store: Store of runs.
        lifecycle: Runs of this server and their states.
        dispatcher: Dispatcher of runs to workers.
        policy: Limits on runs.
        steering: Actions on runs.
        leases: Assignment of runs to servers.
        questions: Queries to fitted models.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        workers: int | None = None,
        scheduler: str | None = None,
        limit_per_owner: int = 2,
        limit_per_address: int = 8,
        hours_per_run: float = HOURS,
        key: str = "",
        device: str = "auto",
        upload_days: float = UPLOAD_DAYS,
        client: Workers | None = None,
    ) -> None:
        limits = Limits(limit_per_owner, limit_per_address, hours_per_run)
        self.store = store or Store.open()
        self._journal = Journal(self.store)
        client = client or WorkerClient(scheduler, workers)
        self.lifecycle = Lifecycle(self._journal, client, Background())
        self.policy = LimitPolicy(self.lifecycle, limits)
        self.dispatcher = Dispatcher(self.lifecycle, self.policy.reworded, device, upload_days)
        self.steering = Steering(self.lifecycle)
        self.leases = LeaseManager(self.lifecycle, self.steering.acts)
        self.questions = Questions(self.lifecycle, self.dispatcher)
        self._key = key
        self._joining = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None

    @property
    def limits(self) -> Limits:
        """Limits of this server."""
        return self.policy.limits

    def begin(self) -> None:
        """Start in the background on the running event loop; `start` waits for completion."""
        self._starting = asyncio.get_running_loop().create_task(self._start())

    async def start(self) -> None:
        """Start the workers and continue the runs of an earlier server.

        Raises:
            BadInput: The scheduler does not answer.
        """
        if self._starting is None:
            self.begin()
        assert self._starting is not None
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        await self.leases.sign_in()
        await self.dispatcher.start()
        await self.policy.start()
        await self.leases.start()

    async def close(self, patience: float = 3.0) -> None:
        """Save checkpoints of running runs for the next start, and close the workers."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
            self._starting = None
        await self.policy.close()
        await self.dispatcher.close(patience)
        await self.leases.sign_out()

    def owns(self, run: str) -> bool:
        """Return True if the events of a run are published here, and not by another server."""
        return run in self.lifecycle.live

    async def submit(
        self,
        study: str,
        values: Mapping[str, Any],
        data: str,
        owner: str,
        *,
        address: str = "",
        presenter: str = "",
    ) -> str:
        """Queue a new run.

        Args:
            study: Name in `scant.studies.STUDIES`.
            values: Settings by name; others have their defaults.
            data: "demo", the name of a data set of the study, or "upload:<id>". Anyone with the
                link of a run on an upload knows its id and may use it.
            owner: Visitor who owns the run.
            address: Network address of the visitor; "" for no limit.
            presenter: Code of the presenter of the lesson, from `presenter`, who may control the
                run. An invented code has no effect.

        Returns:
            Id of the run, with which anyone may view it.

        Raises:
            BadInput: A setting or data name is invalid, there are too many runs, or the fit would
                exceed the time or memory limits.
            NotAllowed: There is no owner.
            NotFound: The study does not exist, or the upload was deleted.
            Unavailable: There is not enough disk space.
        """
        promptly, spec = self._journal.writer.promptly, entry(study)
        settings = spec.parse(data, values)
        names = [source.name for source in spec.sources]
        if data.startswith("upload:"):
            upload = await self._journal.writer.promptly(
                self.store.upload, data.removeprefix("upload:")
            )
            if upload.deleted is not None:
                raise NotFound(f"The table {upload.name!r} was deleted; upload it again to use it.")
        elif data not in names:
            raise BadInput(f"Study {study!r} has no data {data!r}; it has {', '.join(names)}.")
        code, presenter_id = address_code(address, self._key), presenter_named(presenter)
        await self._journal.writer.promptly(
            self.policy.check_counts, owner, code
        )  # costs less than what follows
        await self.policy.check_cost(spec, settings, data)
        await promptly(self.store.check_disk)
        about = (owner, code, presenter_id, study, settings.values(), data)
        run = await self.leases.enter(self.policy.admit, *about)
        self.lifecycle.enter(ActiveRun(run, owner, study, data, settings.values(), address=code))
        return run

    async def join(
        self,
        study: str,
        values: Mapping[str, Any],
        data: str,
        owner: str,
        *,
        address: str = "",
        presenter: str = "",
    ) -> str:
        """Queue a new run, or return that of another visitor with the same settings and data.

        A run is shared if no worker is free for a new one: a class that trains the same model at
        the same time watches one run, and nobody waits or is refused. Arguments and exceptions are
        those of `submit`.
        """
        settings = entry(study).parse(data, values).values()
        async with self._joining:  # of simultaneous requests only the first one queues a run
            return self._same(study, data, settings) or await self.submit(
                study, values, data, owner, address=address, presenter=presenter
            )

    def _same(self, study: str, data: str, settings: Mapping[str, Any]) -> str | None:
        """Return the id of an equal run in progress, if no worker is free for another."""
        free = self.dispatcher.pool.free() - len(self.lifecycle.queue)
        personal = data.startswith("upload:") or settings.get("expert") == "you"
        if free > 0 or personal:
            return None
        matches = (
            live.id
            for live in self.lifecycle.live.values()
            if live.wish is None and not live.over
            and (live.study, live.data, live.settings) == (study, data, settings)
        )  # fmt: skip
        return next(matches, None)

    def presenter(self, visitor: str) -> str:
        """Return the presenter code of a visitor for links to lessons; "" without a visitor."""
        return presenter_code(visitor, self._key)

    def may_steer(self, record: RunRecord, visitor: str) -> bool:
        """Return True if a visitor may pause, resume and stop a run; reads the store."""
        return may_steer(record, self.store.origin(record.id)[1], visitor, self._key)

    def prefetch_demo(self, study: str) -> None:
        """Generate slow example data of a study in the background, once per server.

        Without a worker, this is left to the run.
        """
        self.questions.prefetch_demo(study)

    async def pause(self, run: str, visitor: str) -> None:
        """Pause a run at a checkpoint, or a queued run at once; no effect on a finished run.

        Args:
            run: Id of the run.
            visitor: Owner of the run or presenter of its lesson.

        Raises:
            NotFound: There is no such run.
            NotAllowed: The visitor may not control the run.
        """
        await self.lifecycle.turns.act(run, partial(self._steer, run, visitor, "pause"))

    async def resume(self, run: str, visitor: str) -> None:
        """Resume a paused run from its checkpoint.

        Raises:
            NotFound, NotAllowed: Errors of `pause`.
            BadInput: The owner or the network address has too many runs.
        """
        await self.lifecycle.turns.act(run, partial(self._steer, run, visitor, "resume"))

    async def stop(self, run: str, visitor: str) -> None:
        """Stop a run with its best parameters so far as the result. Raises as `pause` does."""
        await self.lifecycle.turns.act(run, partial(self._steer, run, visitor, "stop"))

    async def discard(self, run: str) -> None:
        """End a run at once, without a result, and delete it; no effect if there is none."""
        async with self.lifecycle.turns.of(run):
            if run in self.lifecycle.live:
                await self.lifecycle.drop(self.lifecycle.live[run])
            await self._journal.writer.do(self.store.delete_run, run)

    async def predict(self, run: str, table: pd.DataFrame) -> pd.DataFrame:
        """Predict a table with the model of a finished run; rows stay in order, columns are added.

        Raises:
            NotFound: There is no such run, or it has no model.
            BadInput: The table lacks columns of the model, which are named.
            Unavailable: No worker is available.
        """
        answer: pd.DataFrame = await self.questions.ask(run, {"predict": table})
        return answer

    async def predict_file(self, run: str, name: str, content: bytes) -> FilePrediction:
        """Predict a file with the model of a finished run. Raises as `predict` does.

        Args:
            run: Id of the run.
            name: File name, whose extension is the format of file and result.
            content: Content of the file.
        """
        answer: FilePrediction = await self.questions.ask(run, {"file": (name, content)})
        return answer

    async def predictions(self, run: str) -> bytes:
        """Predict the table of a run as a ZIP archive. Raises as `predict` does."""

        def read() -> tuple[str, bytes | None]:
            data = self.store.run(run).data
            upload = data.removeprefix("upload:")
            return data, self.store.upload_parquet(upload) if upload != data else None

        data, table = await asyncio.to_thread(read)
        answer: bytes = await self.questions.ask(run, {"own": data, "table": table})
        return answer

    async def explore(
        self, run: str, question: str, query: Mapping[str, Any] | None = None
    ) -> dict[str, np.ndarray]:
        """Answer an `explore` question of the catalog with the model of a finished run.

        Raises:
            NotFound, BadInput, Unavailable: Errors of `predict`.
        """
        request = {"explore": question, "asked": dict(query or {})}
        answer: dict[str, np.ndarray] = await self.questions.ask(run, request)
        return answer

    def subscribe(self, callback: Watcher) -> Callable[[], None]:
        """Call `callback(run, events)` on the event loop for the events of all runs.

        Events are stored before, and come in order, without checkpoints and models.

        Returns:
            Function that ends the subscription.
        """
        return self._journal.subscribe(callback)

    def place(self, run: str) -> int | None:
        """Return the position of a run in the queue, from 1; None if it is not queued."""
        order = self.lifecycle.queue.order()
        return order.index(run) + 1 if run in order else None

    def healthy(self) -> bool:
        """Return True if a submitted run would be trained."""
        return self.lifecycle.client.connected and bool(self.dispatcher.pool.slots)

    def storing(self) -> str:
        """Return a sentence on why nothing can be stored at the moment; "" if all is well."""
        return self._journal.trouble()

    def status(self) -> Status:
        """Return the numbers of workers, running runs and queued runs."""
        slots, lifecycle = self.dispatcher.pool.slots, self.lifecycle
        return Status(len(slots), len(lifecycle.assigned()), len(lifecycle.queue))

    async def _steer(self, run: str, visitor: str, act: str) -> None:
        """Apply an action of a visitor to a run if it is allowed."""
        promptly = self._journal.writer.promptly
        record = await promptly(self.store.run, run)
        _, presenter = await promptly(self.store.origin, run)
        check_may_steer(record, presenter, visitor, self._key, act)
        if act != "resume" or record.state is not State.PAUSED or self.owns(run):
            await self.steering.acts[act](run)
        elif await promptly(self.policy.readmit, record):
            await self.lifecycle.resume(record)
