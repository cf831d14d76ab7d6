"""Attempts of runs on workers: sent out in turn, listened to, and tried again when lost."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from scant.data_sources.open import fetched_path
from scant.errors import BadInput, NotFound
from scant.events import Changed, Event, Finished, Fitted, Note, Queued, Started, State, decode
from scant.runs.active_run import ActiveRun
from scant.runs.backlog import Backlog, make_room
from scant.runs.keeping import put_down
from scant.runs.memory import out_of_memory
from scant.runs.queue import FairQueue, waits
from scant.runs.store_writer import StoreWriter
from scant.runs.worker_client import Ended, Message, WorkerClient
from scant.store import UPLOAD_DAYS, Store, StoreTrouble, TakenOver
from scant.studies import entry

TICK_SECONDS = 1.0
SILENCE_SECONDS = 10.0  # a worker beats every two; one that is silent this long is given up
GONE_SECONDS = 10.0  # so long without any worker, and new ones are brought up
WISH_SECONDS = 3.0  # so long unheeded, and a wish is told again: it may be lost on its way
LOSSES = 3  # so many lost workers a run survives
PURGE_SECONDS = 3600.0
NEAR = 0.8  # of a worker's memory: one that held as much when it was lost had run out of it
REMEMBERED = 256  # runs with a known warm worker

T = TypeVar("T")
Reword = Callable[[ActiveRun, Sequence[Event]], Awaitable[list[Event]]]
log = logging.getLogger(__name__)


async def unchanged(_live: ActiveRun, events: Sequence[Event]) -> list[Event]:
    """What a run has said, as it said it."""
    return list(events)


class Dispatcher:
    """The half of the run service that pages do not see.

    All of it runs on one event loop; the store is written by one thread of its own, in order and
    until it has taken what there is (`scant.runs.store_writer`), and watchers are told only of
    what is
    in the store. What workers say is taken in at once, whatever the store does: it waits in the
    backlog of its run. Whatever decides over a run has its turn with it (`_turn`).
    """

    def __init__(
        self,
        store: Store,
        scheduler: str | None,
        workers: int | None,
        device: str,
        upload_days: float = UPLOAD_DAYS,
    ) -> None:
        self.store = store
        self.server = secrets.token_urlsafe(12)
        self._device = device
        self._upload_days = upload_days
        self._purged = -PURGE_SECONDS
        self._desk = WorkerClient(scheduler, workers)
        self._queue = FairQueue()
        self._live: dict[str, ActiveRun] = {}
        self._slots: dict[str, int] = {}
        self._warm: OrderedDict[str, str] = OrderedDict()
        self._typical: dict[str, float | None] = {}
        self._watchers: list[Callable[[str, list[Event]], None]] = []
        self._writer = StoreWriter()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._spawned: set[asyncio.Task[None]] = set()
        self._closing = False
        self.reword: Reword = unchanged  # has the say on what runs say, before it is put down
        self._ticked = self._seen = time.monotonic()

    async def start(self) -> None:
        """Bring the workers up. Raises as `WorkerClient.connect` does."""
        await self._in_store_thread(self.store.import_shipped)
        await self._desk.connect()
        self._slots = await self._desk.slots()
        self._seen = time.monotonic()
        works = (self._listen(), self._watch_on(), self._pump())
        self._tasks = [asyncio.create_task(work) for work in works]
        self._wake.set()

    async def close(self, patience: float = 3.0) -> None:
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        self._closing = True
        for live in self._assigned():
            if live.wish is None:
                live.wish = "pause"
                await self._send_wish(live)
        deadline = time.monotonic() + patience
        while self._assigned() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self._writer.give_up()  # what is not stored by now is trained again from the checkpoint
        tasks = [*self._tasks, *self._spawned]
        for task in tasks:
            task.cancel()
        if tasks:  # not for ever: `wait_for` may swallow a cancellation
            await asyncio.wait(tasks, timeout=1.0)
        for live in self._assigned():
            if live.state not in (State.PAUSING, State.STOPPING):
                try:
                    await self._interrupt(live)
                except StoreTrouble as error:
                    log.error("that run %s was interrupted is not stored: %s", live.id, error)
        await self._desk.close()
        await self._writer.close(patience)

    # What happens in the store's thread, and what watchers hear of it

    async def _in_store_thread(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call the store in its thread, in turn, until the database takes it."""
        return await self._writer.do(call, *args, **named)

    async def _promptly(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call the store in its thread, once, for a visitor who waits. Raises StoreTrouble."""
        return await self._writer.promptly(call, *args, **named)

    async def _say(self, run: str, events: Sequence[Event], data_hash: str = "") -> None:
        """Put events down, then tell the watchers. Raises TakenOver."""
        said = await self._in_store_thread(
            put_down, self.store, run, events, data_hash, self.server
        )
        self._publish(run, said)

    def storing(self) -> str:
        """Why nothing can be stored at the moment, in a sentence; "" while all is well."""
        why = self._writer.trouble
        return f"The server cannot store anything at the moment, for {why}." if why else ""

    def _turn(self, run: str) -> asyncio.Lock:
        """To be held by whoever decides over a run, until what was decided is put down."""
        lock = self._turns.get(run)
        if lock is None:
            lock = self._turns[run] = asyncio.Lock()
        return lock

    def _publish(self, run: str, events: list[Event]) -> None:
        for watcher in list(self._watchers) if events else ():
            try:
                watcher(run, events)
            except Exception:
                log.exception("a watcher failed")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done that nobody waits for."""
        task = asyncio.create_task(work)
        self._spawned.add(task)  # a task that nobody holds may vanish
        task.add_done_callback(self._end_aside)

    def _end_aside(self, task: asyncio.Task[None]) -> None:
        self._spawned.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreTrouble | TakenOver):  # the server closes; another one cares
            log.info("what was to be done aside is not: %s", error)
        elif error is not None:
            log.error("what was to be done aside failed", exc_info=error)

    async def _set_state(self, live: ActiveRun, state: State, reason: str = "") -> None:
        await self._say(live.id, [Changed(state, reason)])
        live.state = state

    # Wishes

    async def _wish(self, live: ActiveRun, wish: str | None, state: State) -> None:
        live.wish = wish
        asking = asyncio.create_task(self._send_wish(live))
        await self._set_state(live, state)
        await asking

    async def _send_wish(self, live: ActiveRun) -> None:
        live.wished = time.monotonic()
        if live.worker is not None:  # else it is sent when the worker has said where it is
            await self._desk.tell(live.worker, live.id, live.attempt, live.wish)

    # Sending out

    async def _pump(self) -> None:
        while not self._closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), TICK_SECONDS)
            self._wake.clear()
            try:
                self._dispatch()
                await self._announce()
                await self._purge()
            except Exception:
                log.exception("the run service stumbled")
                await asyncio.sleep(TICK_SECONDS)

    def _dispatch(self) -> None:
        while not self._closing and len(self._queue) and self._free() > 0:
            if self._writer.trouble:
                return  # a run that cannot be put down as starting waits in the queue
            live = self._live[self._queue.take()]
            live.assigned, live.started, live.worker, live.told = True, False, None, None
            live.over, live.loss, live.backlog = False, "", Backlog()
            live.since = time.monotonic()
            self._spawn(self._start(live))

    async def _start(self, live: ActiveRun) -> None:
        async with self._turn(live.id):
            if self._live.get(live.id) is not live or not live.assigned:
                return
            try:
                if live.wish == "pause":  # since it left the queue
                    await self._rest_unbegun(live)
                    return
                if live.wish != "stop":
                    await self._set_state(live, State.STARTING)
                await self._begin(live)
            except TakenOver:
                await self._release(live)
            except (BadInput, NotFound) as error:
                await self._finish(live, State.FAILED, str(error))
            except StoreTrouble:
                log.info("run %s is not begun, the server being closed", live.id)
            except Exception:
                log.exception("run %s could not be begun", live.id)
                await self._finish(live, State.FAILED, "The run could not be sent to a worker.")

    async def _rest_unbegun(self, live: ActiveRun) -> None:
        if live.state is State.PAUSING:
            await self._finish(live, State.PAUSED, "Paused while it was queued.")
        else:  # nobody but the server that closes wished it
            await self._interrupt(live)

    async def _begin(self, live: ActiveRun) -> None:
        begin = self.store.begin_attempt
        live.attempt, checkpoint, damage = await self._in_store_thread(begin, live.id, self.server)
        if damage:
            await self._say(live.id, [Note(damage)])
        table = await self._in_store_thread(self._table, live)
        job = {
            "run": live.id,
            "attempt": live.attempt,
            "study": live.study,
            "settings": live.settings,
            "data": live.data,
            "device": self._device,
            "wish": live.wish,
        }
        self._desk.begin(job, table, checkpoint.blob if checkpoint else None)
        live.resident, live.heeded = 0, False  # after the last word of the attempt before

    def _table(self, live: ActiveRun) -> bytes | None:
        """Data that the worker cannot make itself, as Parquet; it may be on another machine."""
        if live.data.startswith("upload:"):
            return self.store.upload_parquet(live.data.removeprefix("upload:"))
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

    def _assigned(self) -> list[ActiveRun]:
        return [live for live in self._live.values() if live.assigned]

    def _free(self) -> int:
        return sum(self._slots.values()) - len(self._assigned())

    async def _purge(self) -> None:
        if time.monotonic() - self._purged > PURGE_SECONDS:
            self._purged = time.monotonic()
            await self._in_store_thread(self.store.purge_uploads, self._upload_days)

    async def _announce(self) -> None:
        """Tell each waiting run its place and wait, where they have changed."""
        order = self._queue.order()
        for study in {self._live[run].study for run in order} - self._typical.keys():
            self._typical[study] = await self._in_store_thread(self.store.typical_seconds, study)
        busy = [live.id for live in self._assigned()]
        estimates = waits(order, busy, sum(self._slots.values()), self._seconds_left)
        for place, (run, wait) in enumerate(zip(order, estimates), start=1):
            told = Queued(place, None if wait is None else float(round(wait)))
            live = self._live.get(run)
            if live is not None and live.told != told:
                live.told = told
                self._publish(run, [told])

    def _seconds_left(self, run: str) -> float | None:
        live = self._live.get(run)
        typical = self._typical.get(live.study) if live else None
        if live is None or typical is None:
            return None
        spent = time.monotonic() - live.since if live.assigned else 0.0
        return max(typical - spent, 1.0)

    # Listening

    async def _listen(self) -> None:
        while True:
            word = await self._desk.inbox.get()
            try:
                self._receive(word)
            except Exception:
                log.exception("a message of run %s was lost", word.run)

    def _receive(self, word: Message | Ended) -> None:
        """Take in what was said; nothing here waits for the store."""
        live = self._live.get(word.run)
        if isinstance(word, Message) and live is not None and live.attempt == word.attempt:
            live.resident, live.memory, live.heeded = word.resident, word.memory, word.heeded
        if live is None:
            return  # an attempt given up, or a run of another server on the same cluster
        if not live.assigned or live.attempt != word.attempt or live.over:
            if isinstance(word, Message):
                self._abandon(word)
            return
        if isinstance(word, Ended):
            self._lose(live, word.error or "its task ended without a word")
            return
        if live.worker not in (None, word.worker):
            # When a worker dies, a cluster that is not ours gives its task to another, which begins
            # where the first began: not where it was.
            self._abandon(word)
            self._lose(live, "Dask had given its task to another")
            return
        live.heard = time.monotonic()
        if live.worker is None:
            live.worker = word.worker
            if live.wish is not None:
                self._spawn(self._send_wish(live))
        elif live.wish is not None and live.heard - live.wished > WISH_SECONDS:
            self._spawn(self._send_wish(live))
        events = decode(word.events)
        if events:
            live.over = isinstance(events[-1], Finished)
            live.backlog.add(events, word.data_hash)
            make_room([other.backlog for other in self._live.values()])
            self._drain(live)

    def _abandon(self, word: Message) -> None:
        self._spawn(self._desk.tell(word.worker, word.run, word.attempt, "abandon"))

    def _drain(self, live: ActiveRun) -> None:
        """Have put down what waits of a run, in order."""
        if not live.draining:
            live.draining = True
            self._spawn(self._put_down(live))

    async def _put_down(self, live: ActiveRun) -> None:
        async with self._turn(live.id):
            try:
                while self._live.get(live.id) is live and live.assigned:
                    if live.backlog:
                        await self._hear(live, live.backlog.take(), live.backlog.data_hash)
                    elif live.loss:
                        await self._go_on_after_loss(live)
                    else:
                        break
            except TakenOver:
                await self._release(live)
            except StoreTrouble:
                log.info("what run %s said last is not stored, the server being closed", live.id)
            except Exception:
                log.exception("what run %s said could not be put down", live.id)
            finally:
                live.draining = False

    async def _hear(self, live: ActiveRun, events: list[Event], data_hash: str) -> None:
        events = await self.reword(live, events)
        last = events[-1]
        ended = isinstance(last, Finished)
        rests = isinstance(last, Finished) and last.state is State.PAUSED
        goes_on = rests and (live.wish != "pause" or live.state is not State.PAUSING)
        if goes_on:
            events = events[:-1]
        started = any(isinstance(e, Started) for e in events)
        running = started and live.state is State.STARTING
        if running:  # in its place: the end of a short run may have come with its beginning
            after = 1 + max(i for i, event in enumerate(events) if isinstance(event, Started))
            events = [*events[:after], Changed(State.RUNNING), *events[after:]]
        await self._say(live.id, events, data_hash)
        live.started = live.started or started
        if running:
            live.state = State.RUNNING
        if any(isinstance(e, Fitted) for e in events) and live.worker:
            self._remember(live.id, live.worker)
        if goes_on and self._closing:
            await self._interrupt(live)
            return
        if ended:
            self._let_go(live)
        if goes_on:
            await self._go_on(live, "")
        elif ended:
            self._live.pop(live.id, None)
            self._typical.pop(live.study, None)

    def _let_go(self, live: ActiveRun) -> None:
        """The attempt is over, whatever becomes of the run."""
        self._desk.forget(live.id, live.attempt)
        live.assigned = live.over = False
        live.loss, live.backlog = "", Backlog()
        live.worker = None
        self._wake.set()

    async def _finish(self, live: ActiveRun, state: State, reason: str) -> None:
        """End a run without a worker's word."""
        await self._say(live.id, [Finished(state, reason)])
        self._let_go(live)
        self._live.pop(live.id, None)

    # Going on

    async def _watch_on(self) -> None:
        """Watch the workers, which must not wait for the store."""
        while not self._closing:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._watch()
            except Exception:
                log.exception("the workers could not be watched")

    async def _watch(self) -> None:
        """Give up workers that are gone or silent; bring new ones up where none is left."""
        now = time.monotonic()
        slept = now - self._ticked > 3 * TICK_SECONDS + 2
        self._ticked = now
        self._slots = await self._desk.slots()
        if self._slots:
            self._seen = now
            self._wake.set()
        for live in self._assigned():
            if live.over:
                continue  # it has said its last, or is given up already
            if slept:
                live.heard = now  # it was us who did not listen
            elif live.worker is not None and now - live.heard > SILENCE_SECONDS:
                self._spawn(self._desk.renew(live.worker, live.id, live.attempt))
                self._lose(live, f"it was silent for {SILENCE_SECONDS:g} s")
        if now - self._seen > GONE_SECONDS and (self._desk.local or not self._desk.connected):
            log.warning("no worker is left; bringing up new ones")
            self._seen = now
            for live in self._assigned():
                self._lose(live, "no worker was left")
            await self._desk.connect()

    def _lose(self, live: ActiveRun, why: str) -> None:
        """An attempt's worker is lost; what it said before is put down first."""
        if live.over:
            return
        log.warning("run %s lost its worker: %s", live.id, why)
        live.over, live.loss = True, why
        self._drain(live)

    async def _go_on_after_loss(self, live: ActiveRun) -> None:
        """Go on from the last checkpoint, or give the run up.

        A run whose worker was killed for its memory would kill the next one, too.
        """
        if live.memory and live.resident >= NEAR * live.memory:
            log.warning("run %s lost its worker for memory: %s", live.id, live.loss)
            await self._finish(live, State.FAILED, out_of_memory(live.memory))
            return
        why, losses = live.loss, live.losses + 1
        await self._in_store_thread(self.store.update_run, live.id, losses=losses)
        live.losses = losses
        if losses > LOSSES:
            reason = f"The run was given up: its worker was lost {losses} times ({why})."
            await self._finish(live, State.FAILED, reason)
        elif live.wish == "pause":
            await self._finish(live, State.PAUSED, "Paused at its last checkpoint.")
        else:
            self._let_go(live)
            await self._go_on(live, f"The worker was lost (loss {losses} of {LOSSES} allowed)")

    async def _go_on(self, live: ActiveRun, why: str, *, first: bool = True) -> None:
        """Queue a run (before all others), to go on from its checkpoint or to conclude from it."""
        await self._take_in(live)
        checkpoint = await self._in_store_thread(self.store.checkpoint, live.id)
        step = checkpoint.step if checkpoint else 0
        if live.wish == "stop" and step == 0:
            reason = "Stopped before its first checkpoint, so there is no model."
            if live.attempt == 0:
                reason = "Stopped while it was queued; it never started."
            await self._finish(live, State.STOPPED, reason)
        else:
            note = f"{why}; going on from step {step}." if why else ""
            await self._requeue(live, note, first=first)

    async def _take_in(self, live: ActiveRun) -> None:
        """Take a run into our care that was at rest."""
        if live.id not in self._live:
            self._live[live.id] = live  # first, or it would be taken for one that nobody has
            await self._in_store_thread(self.store.claim, live.id, self.server)

    async def _requeue(self, live: ActiveRun, note: str, *, first: bool) -> None:
        if self._live.get(live.id, live) is not live:
            return  # somebody else has it go on
        if not live.address:
            live.address, _ = await self._in_store_thread(self.store.origin, live.id)
        await self._take_in(live)
        live.wish = "stop" if live.wish == "stop" else None
        state = State.STOPPING if live.wish == "stop" else State.QUEUED
        events: list[Event] = [Note(note)] if note else []
        await self._say(live.id, [*events, Changed(state)])
        live.state = state
        self._queue.put(live.id, live.owner, live.address, first=first)
        self._wake.set()

    async def _interrupt(self, live: ActiveRun) -> None:
        """The server shuts down: the run waits in the store for the next start."""
        checkpoint = await self._in_store_thread(self.store.checkpoint, live.id)
        step = checkpoint.step if checkpoint else 0
        note = Note(f"The server was shut down; the run goes on from step {step} with the next.")
        await self._say(live.id, [note, Changed(State.QUEUED)])
        self._let_go(live)  # last, for `close` waits until no run is in hand

    async def _release(self, live: ActiveRun) -> None:
        """Let go of a run that another server has in its care by now."""
        log.warning("run %s was taken over by another server", live.id)
        self._queue.remove(live.id)
        worker, attempt = live.worker, live.attempt
        if live.assigned:
            self._let_go(live)
        if worker is not None:
            await self._desk.tell(worker, live.id, attempt, "abandon")
        if self._live.get(live.id) is live:
            del self._live[live.id]

    def _remember(self, run: str, address: str) -> None:
        """Remember where a run's model is warm."""
        self._warm[run] = address
        self._warm.move_to_end(run)
        while len(self._warm) > REMEMBERED:
            self._warm.popitem(last=False)
