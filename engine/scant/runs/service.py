"""The run service of a server process, as pages use it."""

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
    """How the service stands: workers up, runs in hand, runs waiting."""

    workers: int
    running: int
    queued: int


class RunService:
    """Submits, watches and steers runs, on the event loop of the server.

    Args:
        store: Where runs are put down; None: the default store.
        workers: How many local workers; None: one a GPU, else by cores.
        scheduler: The address of an existing Dask scheduler; None: SCANT_SCHEDULER, else local.
        limit_per_owner: How many runs an owner may have queued or running at once.
        limit_per_address: How many runs a network address may have so, whoever they belong to.
        hours_per_run: How long a run may hold a worker; 0 for no limit.
        key: What the codes of presenters and addresses are made with; "": there is no presenter.
        device: "auto", "cpu" or "cuda": where workers train.
        upload_days: After how many days uploads are deleted.
        client: What runs are sent to; None: Dask's workers, as `workers` and `scheduler` say.

    Attributes:
        store: Where runs are put down.
        care: The runs in this server's care.
        dispatcher: Sends them to workers, and hears these.
        policy: What runs may have.
        steering: Acts on runs, whoever wishes them.
        leases: Which runs are in this server's care.
        questions: What is asked of fitted models.
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
        self.care = Lifecycle(self._journal, client, Background())
        self.policy = LimitPolicy(self.care, limits)
        self.dispatcher = Dispatcher(self.care, self.policy.reworded, device, upload_days)
        self.steering = Steering(self.care)
        self.leases = LeaseManager(self.care, self.steering.acts)
        self.questions = Questions(self.care, self.dispatcher)
        self._key = key
        self._starting: asyncio.Task[None] | None = None

    @property
    def limits(self) -> Limits:
        """What this server allows."""
        return self.policy.limits

    def begin(self) -> None:
        """Begin to start, on the running event loop; `start` waits for the rest of it."""
        self._starting = asyncio.get_running_loop().create_task(self._start())

    async def start(self) -> None:
        """Bring the workers up, and take up the runs that an earlier server left.

        Raises:
            BadInput: Nothing answers at the given scheduler's address.
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
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
            self._starting = None
        await self.policy.close()
        await self.dispatcher.close(patience)
        await self.leases.sign_out()

    def owns(self, run: str) -> bool:
        """Whether what the run says is published here; else another server may be training it."""
        return run in self.care.live

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
            study: A name from `scant.studies.STUDIES`.
            values: Settings by name; the others keep their defaults.
            data: "demo", the name of a data set that the study offers, or "upload:<id>": whoever
                has the link of a run on an upload has its id and may train on it, too.
            owner: Who asks: whose turn it is and whose list it joins.
            address: The network address that they come from; "" is not limited.
            presenter: The code of who presents the lesson that it is started from, as `presenter`
                gave it; they may steer the run. One that was made up is nobody's.

        Returns:
            The run's id, by which anyone may watch it.

        Raises:
            BadInput: A setting or data name that cannot be, too many runs at once, or a fit that
                would take more hours or memory than there are.
            NotAllowed: There is no owner.
            NotFound: No such study, or the upload is gone.
            Unavailable: The disk has no room for what a run writes.
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
        code, presented = address_code(address, self._key), presenter_named(presenter)
        await self._journal.writer.promptly(
            self.policy.check_counts, owner, code
        )  # costs less than what follows
        await self.policy.check_cost(spec, settings, data)
        await promptly(self.store.check_disk)
        about = (owner, code, presented, study, settings.values(), data)
        run = await self.leases.enter(self.policy.admit, *about)
        self.care.enter(ActiveRun(run, owner, study, data, settings.values(), address=code))
        return run

    def presenter(self, visitor: str) -> str:
        """The code by which a lesson's link names a visitor as its presenter; "" of nobody."""
        return presenter_code(visitor, self._key)

    def may_steer(self, record: RunRecord, visitor: str) -> bool:
        """Whether a visitor may pause, resume and stop a run. Reads the store."""
        return may_steer(record, self.store.origin(record.id)[1], visitor, self._key)

    def prefetch_demo(self, study: str) -> None:
        """Have a study's demonstration made where that takes seconds: who trains waits less.

        Once a server, and in the background; where no worker is up, it is left to the run.
        """
        self.questions.prefetch_demo(study)

    async def pause(self, run: str, visitor: str) -> None:
        """Ask a run for a checkpoint and a rest; a queued run just rests.

        Args:
            run: The run. (One that is over stays as it is.)
            visitor: Who asks: its owner, or the presenter of its lesson.

        Raises:
            NotFound: There is no such run.
            NotAllowed: It is for somebody else to steer.
        """
        await self.care.turns.act(run, partial(self._steer, run, visitor, "pause"))

    async def resume(self, run: str, visitor: str) -> None:
        """Let a paused run go on from its checkpoint.

        Raises:
            NotFound, NotAllowed: As `pause` does.
            BadInput: Its owner or their address has too many runs queued or running.
        """
        await self.care.turns.act(run, partial(self._steer, run, visitor, "resume"))

    async def stop(self, run: str, visitor: str) -> None:
        """End a run; its best parameters so far become its result. Raises as `pause` does."""
        await self.care.turns.act(run, partial(self._steer, run, visitor, "stop"))

    async def predict(self, run: str, table: pd.DataFrame) -> pd.DataFrame:
        """Predictions of a finished run's model: the table's rows in order, columns added.

        Raises:
            NotFound: There is no such run, or it has left no model.
            BadInput: The table lacks what the model needs; the sentence says what.
            Unavailable: No worker is up, nor has one come up for a while.
        """
        answer: pd.DataFrame = await self.questions.ask(run, {"predict": table})
        return answer

    async def predict_file(self, run: str, name: str, content: bytes) -> FilePrediction:
        """A file predicted by a finished run's model. Raises as `predict` does.

        Args:
            run: The run.
            name: Of the file; its ending names the format, in which the answer comes, too.
            content: Its bytes.
        """
        answer: FilePrediction = await self.questions.ask(run, {"file": (name, content)})
        return answer

    async def predictions(self, run: str) -> bytes:
        """The whole table of a run, predicted by its model: a ZIP. Raises as `predict` does."""

        def given() -> tuple[str, bytes | None]:
            data = self.store.run(run).data
            upload = data.removeprefix("upload:")
            return data, self.store.upload_parquet(upload) if upload != data else None

        data, table = await asyncio.to_thread(given)
        answer: bytes = await self.questions.ask(run, {"own": data, "table": table})
        return answer

    async def explore(
        self, run: str, question: str, query: Mapping[str, Any] | None = None
    ) -> dict[str, np.ndarray]:
        """Answer one of the catalog's `explore` questions from a finished run's model.

        Raises:
            NotFound, BadInput, Unavailable: As `predict` does.
        """
        request = {"explore": question, "asked": dict(query or {})}
        answer: dict[str, np.ndarray] = await self.questions.ask(run, request)
        return answer

    def subscribe(self, callback: Watcher) -> Callable[[], None]:
        """Have `callback(run, events)` called on the loop with whatever any run says.

        Events come after they are in the store, in their order; checkpoints and models stay out.

        Returns:
            A function that ends the subscription.
        """
        return self._journal.subscribe(callback)

    def place(self, run: str) -> int | None:
        """A queued run's place, 1 being next; None if it is not waiting."""
        order = self.care.queue.order()
        return order.index(run) + 1 if run in order else None

    def healthy(self) -> bool:
        """Whether a run submitted now would be trained."""
        return self.care.client.connected and bool(self.dispatcher.pool.slots)

    def storing(self) -> str:
        """Why nothing can be stored at the moment, in a sentence; "" while all is well."""
        return self._journal.trouble()

    def status(self) -> Status:
        """Workers up, runs in hand, runs waiting."""
        slots, care = self.dispatcher.pool.slots, self.care
        return Status(len(slots), len(care.assigned()), len(care.queue))

    async def _steer(self, run: str, visitor: str, act: str) -> None:
        """Do what a visitor wishes of a run, if they may."""
        promptly = self._journal.writer.promptly
        record = await promptly(self.store.run, run)
        _, presenter = await promptly(self.store.origin, run)
        check_may_steer(record, presenter, visitor, self._key, act)
        if act != "resume" or record.state is not State.PAUSED or self.owns(run):
            await self.steering.acts[act](run)
        elif await promptly(self.policy.readmit, record):
            await self.care.resume(record)
