"""The run service of a server process, as pages use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scant.errors import BadInput, NotFound, Unavailable
from scant.events import Changed, Event, Finished, State
from scant.runs.access import (
    address_code,
    check_may_steer,
    may_steer,
    presenter_code,
    presenter_named,
)
from scant.runs.active_run import ActiveRun
from scant.runs.dispatcher import Dispatcher
from scant.runs.leases import LeaseManager
from scant.runs.limited import LimitPolicy
from scant.runs.limits import HOURS, Limits
from scant.runs.turns import in_turn
from scant.runs.worker import NOT_CACHED
from scant.store import UPLOAD_DAYS, RunRecord, Store, StoreTrouble
from scant.studies import entry

Watcher = Callable[[str, list[Event]], None]
PATIENCE = 15.0  # seconds that a question waits for a worker: a lost one is replaced in five


@dataclass(frozen=True)
class Status:
    """How the service stands: workers up, runs in hand, runs waiting."""

    workers: int
    running: int
    queued: int


class RunService(Dispatcher):
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
    ) -> None:
        super().__init__(store or Store.open(), scheduler, workers, device, upload_days)
        limits = Limits(limit_per_owner, limit_per_address, hours_per_run)
        self._policy = LimitPolicy(self, limits)
        acts = {"pause": self._pause, "resume": self._resume, "stop": self._stop}
        self._leases = LeaseManager(self, acts)
        self._key = key
        self._prefetched: set[str] = set()

    @property
    def limits(self) -> Limits:
        """What this server allows."""
        return self._policy.limits

    async def start(self) -> None:
        """Bring the workers up, and take up the runs that an earlier server left.

        Raises:
            BadInput: Nothing answers at the given scheduler's address.
        """
        await self._leases.sign_in()
        await super().start()
        await self._policy.start()
        await self._leases.start()

    async def close(self, patience: float = 3.0) -> None:
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        await self._policy.close()
        await super().close(patience)
        await self._leases.sign_out()

    def owns(self, run: str) -> bool:
        """Whether what the run says is published here; else another server may be training it."""
        return run in self._live

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
        found = entry(study)
        settings = found.settings.parse(values)
        names = [source.name for source in found.sources]
        if data.startswith("upload:"):
            upload = await self._promptly(self.store.upload, data.removeprefix("upload:"))
            if upload.deleted is not None:
                raise NotFound(f"The table {upload.name!r} was deleted; upload it again to use it.")
        elif data not in names:
            raise BadInput(f"Study {study!r} has no data {data!r}; it has {', '.join(names)}.")
        code, presented = address_code(address, self._key), presenter_named(presenter)
        await self._promptly(self._policy.check_counts, owner, code)  # costs less than what follows
        await self._policy.check_cost(found, settings, data)
        await self._promptly(self.store.check_disk)
        about = (owner, code, presented, study, settings.values(), data)
        run = await self._leases.enter(self._policy.admit, *about)
        live = ActiveRun(run, owner, study, data, settings.values(), address=code)
        self._live[run] = live
        self._queue.put(run, owner, code)
        self._publish(run, [Changed(State.QUEUED)])
        self._wake.set()
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
        if study in self._prefetched or not entry(study).sources[0].kept:
            return
        self._prefetched.add(study)
        self._spawn(self._prefetch_demo(study))

    @in_turn
    async def pause(self, run: str, visitor: str) -> None:
        """Ask a run for a checkpoint and a rest; a queued run just rests.

        Args:
            run: The run. (One that is over stays as it is.)
            visitor: Who asks: its owner, or the presenter of its lesson.

        Raises:
            NotFound: There is no such run.
            NotAllowed: It is for somebody else to steer.
        """
        await self._check_may(run, visitor, "pause")
        await self._pause(run)

    @in_turn
    async def resume(self, run: str, visitor: str) -> None:
        """Let a paused run go on from its checkpoint.

        Raises:
            NotFound, NotAllowed: As `pause` does.
            BadInput: Its owner or their address has too many runs queued or running.
        """
        record = await self._check_may(run, visitor, "resume")
        if record.state is not State.PAUSED or run in self._live:
            await self._resume(run)
        elif await self._promptly(self._policy.readmit, record):
            await self._requeue(ActiveRun.of(record), "", first=False)

    @in_turn
    async def stop(self, run: str, visitor: str) -> None:
        """End a run; its best parameters so far become its result. Raises as `pause` does."""
        await self._check_may(run, visitor, "stop")
        await self._stop(run)

    async def predict(self, run: str, table: pd.DataFrame) -> pd.DataFrame:
        """Predictions of a finished run's model: the table's rows in order, columns added.

        Raises:
            NotFound: There is no such run, or it has left no model.
            BadInput: The table lacks what the model needs; the sentence says what.
            Unavailable: No worker is up, nor has one come up for a while.
        """
        answer: pd.DataFrame = await self._ask(run, {"predict": table})
        return answer

    async def explore(
        self, run: str, question: str, asked: Mapping[str, Any] | None = None
    ) -> dict[str, np.ndarray]:
        """Answer one of the catalog's `explore` questions from a finished run's model.

        Raises:
            NotFound, BadInput, Unavailable: As `predict` does.
        """
        request = {"explore": question, "asked": dict(asked or {})}
        answer: dict[str, np.ndarray] = await self._ask(run, request)
        return answer

    def subscribe(self, callback: Watcher) -> Callable[[], None]:
        """Have `callback(run, events)` called on the loop with whatever any run says.

        Events come after they are in the store, in their order; checkpoints and models stay out.

        Returns:
            A function that ends the subscription.
        """
        self._watchers.append(callback)

        def unsubscribe() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return unsubscribe

    def place(self, run: str) -> int | None:
        """A queued run's place, 1 being next; None if it is not waiting."""
        order = self._queue.order()
        return order.index(run) + 1 if run in order else None

    def healthy(self) -> bool:
        """Whether a run submitted now would be trained."""
        return self._desk.connected and bool(self._slots)

    def status(self) -> Status:
        """Workers up, runs in hand, runs waiting."""
        return Status(len(self._slots), len(self._assigned()), len(self._queue))

    async def _check_may(self, run: str, visitor: str, act: str) -> RunRecord:
        """A run that the visitor may steer. Raises as `pause` does."""
        record = await self._promptly(self.store.run, run)
        _, presenter = await self._promptly(self.store.origin, run)
        check_may_steer(record, presenter, visitor, self._key, act)
        return record

    # What is wished by whoever may: from here, from another server or by an operator

    async def _pause(self, run: str) -> None:
        live, record = await self._find(run)
        if live is None:
            await self._leases.pass_on(record, "pause")
        elif live.state in (State.STOPPING, State.PAUSING):
            return
        elif self._queue.remove(run):
            await self._finish(live, State.PAUSED, "Paused while it was queued.")
        else:
            await self._wish(live, "pause", State.PAUSING)

    async def _resume(self, run: str) -> None:
        live, record = await self._find(run)
        if live is None and record.state is State.PAUSED:
            await self._requeue(ActiveRun.of(record), "", first=False)
        elif live is None:
            await self._leases.pass_on(record, "resume")
        elif live.state is State.PAUSING:
            await self._wish(live, None, State.RUNNING if live.started else State.STARTING)

    async def _stop(self, run: str) -> None:
        live, record = await self._find(run)
        if live is None:
            if record.state is not State.PAUSED:
                await self._leases.pass_on(record, "stop")
                return
            live = ActiveRun.of(record)
        elif not self._queue.remove(run):
            await self._wish(live, "stop", State.STOPPING)
            return
        live.wish = "stop"
        await self._go_on(live, "", first=False)  # in its turn: many could be stopped at once

    async def _find(self, run: str) -> tuple[ActiveRun | None, RunRecord]:
        """A run and its row; None where it rests, is over or is in another server's care.

        Raises:
            NotFound: There is no such run.
        """
        record = await self._promptly(self.store.run, run)
        return self._live.get(run), record

    async def _prefetch_demo(self, study: str) -> None:
        try:
            await self._desk.prefetch_demo(self._choose(""), study)
        except Unavailable:
            self._prefetched.discard(study)

    async def _ask(self, run: str, request: dict[str, Any]) -> Any:
        record = await asyncio.to_thread(self.store.run, run)
        request |= {"run": run, "study": record.study, "settings": dict(record.settings)}
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                return await self._answer(record, request)
            except StoreTrouble:
                raise  # it is not the worker that is wanting
            except Unavailable:
                if asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(0.2)

    async def _answer(self, record: RunRecord, request: dict[str, Any]) -> Any:
        run, address = record.id, self._choose(record.id)
        try:
            answer = (
                await self._desk.ask(address, request, None) if run in self._warm else NOT_CACHED
            )
            if isinstance(answer, str) and answer == NOT_CACHED:
                model = await asyncio.to_thread(self.store.model, run)
                if model is None:
                    raise NotFound(f"Run {run} is {record.state} and has no fitted model to ask.")
                answer = await self._desk.ask(address, request, model)
        except StoreTrouble:
            raise
        except Unavailable:
            self._slots.pop(address, None)  # until it is seen again
            raise
        self._remember(run, address)
        return answer

    def _choose(self, run: str) -> str:
        """The worker that has the model warm, else the least busy one."""
        if self._warm.get(run) in self._slots:
            return self._warm[run]
        if not self._slots:
            raise Unavailable("No worker is up at the moment; try again in a few seconds.")
        busy = [live.worker for live in self._assigned()]
        return min(self._slots, key=busy.count)


async def finished(service: RunService, run: str) -> Finished:
    """Wait for a live run's end: its final (or paused) state, reason and report."""
    done: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()

    def watch(said_of: str, events: list[Event]) -> None:
        for event in events:
            if said_of == run and isinstance(event, Finished) and not done.done():
                done.set_result(event)

    unsubscribe = service.subscribe(watch)
    try:
        return await done
    finally:
        unsubscribe()
