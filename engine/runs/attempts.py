"""Attempts of runs on workers: sent out in turn, listened to, and tried again when lost."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from engine.catalog import entry
from engine.datasets.sources import fetched_path
from engine.errors import BadInput, NotFound
from engine.events import (
    Changed,
    Event,
    Finished,
    Fitted,
    Note,
    Queued,
    Started,
    State,
    decode,
)
from engine.runs.desk import Desk, Ended, Message
from engine.runs.live import Live
from engine.runs.queue import FairQueue, waits
from engine.store import UPLOAD_DAYS, Store

TICK_SECONDS = 1.0
SILENCE_SECONDS = 10.0  # a worker beats every two; one that is silent this long is given up
GONE_SECONDS = 10.0  # so long without any worker, and new ones are brought up
WISH_SECONDS = 3.0  # so long unheeded, and a wish is told again: it may be lost on its way
LOSSES = 3  # so many lost workers a run survives
PURGE_SECONDS = 3600.0
REMEMBERED = 256  # runs of which we remember where they are warm

T = TypeVar("T")
log = logging.getLogger(__name__)


class Attempts:
    """The half of the run service that pages do not see.

    All of it runs on one event loop; the store is written by one thread of its own, and watchers
    are told only of what is in the store.
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
        self._desk = Desk(scheduler, workers)
        self._queue = FairQueue()
        self._live: dict[str, Live] = {}
        self._slots: dict[str, int] = {}
        self._warm: OrderedDict[str, str] = OrderedDict()
        self._typical: dict[str, float | None] = {}
        self._watchers: list[Callable[[str, list[Event]], None]] = []
        self._writer = ThreadPoolExecutor(1, "store")
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._asides: set[asyncio.Task[None]] = set()
        self._closing = False
        self._ticked = self._seen = time.monotonic()

    async def start(self) -> None:
        """Bring the workers up. Raises as `Desk.connect` does."""
        await self._off(self.store.import_shipped)
        await self._desk.connect()
        self._slots = await self._desk.slots()
        self._seen = time.monotonic()
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._pump())]
        self._wake.set()

    async def close(self, patience: float = 3.0) -> None:
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        self._closing = True
        for live in self._in_hand():
            if live.wish is None:
                live.wish = "pause"
                await self._send_wish(live)
        deadline = time.monotonic() + patience
        while self._in_hand() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        tasks = [*self._tasks, *self._asides]
        for task in tasks:
            task.cancel()
        if tasks:  # not for ever: `wait_for` may swallow a cancellation
            await asyncio.wait(tasks, timeout=1.0)
        for live in self._in_hand():
            if live.state not in (State.PAUSING, State.STOPPING):
                await self._interrupt(live)
        await self._desk.close()
        self._writer.shutdown()

    # What happens in the store's thread, and what watchers hear of it

    async def _off(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call the store in its thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, lambda: call(*args, **named))

    async def _say(self, run: str, events: Sequence[Event], data_hash: str = "") -> None:
        """Put events down, then tell the watchers."""
        said = await self._off(self.store.write, run, events, data_hash)
        self._publish(run, said)

    def _publish(self, run: str, events: list[Event]) -> None:
        for watcher in list(self._watchers) if events else ():
            try:
                watcher(run, events)
            except Exception:
                log.exception("a watcher failed")

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done that nobody waits for."""
        task = asyncio.create_task(work)
        self._asides.add(task)  # a task that nobody holds may vanish
        task.add_done_callback(self._asides.discard)

    async def _set_state(self, live: Live, state: State, reason: str = "") -> None:
        live.state = state
        await self._say(live.id, [Changed(state, reason)])

    # Wishes

    async def _wish(self, live: Live, wish: str | None, state: State) -> None:
        live.wish = wish
        asking = asyncio.create_task(self._send_wish(live))
        await self._set_state(live, state)
        await asking

    async def _send_wish(self, live: Live) -> None:
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
                await self._watch()
                await self._dispatch()
                await self._announce()
                await self._purge()
            except Exception:
                log.exception("the run service stumbled")
                await asyncio.sleep(TICK_SECONDS)

    async def _dispatch(self) -> None:
        while not self._closing and len(self._queue) and self._free() > 0:
            live = self._live[self._queue.take()]
            live.in_hand, live.started, live.worker, live.told = True, False, None, None
            live.since = time.monotonic()
            if live.wish != "stop":
                await self._set_state(live, State.STARTING)
            try:
                await self._begin(live)
            except (BadInput, NotFound) as error:
                await self._finish(live, State.FAILED, str(error))

    async def _begin(self, live: Live) -> None:
        live.attempt, checkpoint = await self._off(self.store.begin_attempt, live.id)
        table = await self._off(self._table, live)
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

    def _table(self, live: Live) -> bytes | None:
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

    def _in_hand(self) -> list[Live]:
        return [live for live in self._live.values() if live.in_hand]

    def _free(self) -> int:
        return sum(self._slots.values()) - len(self._in_hand())

    async def _purge(self) -> None:
        if time.monotonic() - self._purged > PURGE_SECONDS:
            self._purged = time.monotonic()
            await self._off(self.store.purge_uploads, self._upload_days)

    async def _announce(self) -> None:
        """Tell each waiting run its place and wait, where they have changed."""
        order = self._queue.order()
        for study in {self._live[run].study for run in order} - self._typical.keys():
            self._typical[study] = await self._off(self.store.typical_seconds, study)
        busy = [live.id for live in self._in_hand()]
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
        spent = time.monotonic() - live.since if live.in_hand else 0.0
        return max(typical - spent, 1.0)

    # Listening

    async def _listen(self) -> None:
        while True:
            word = await self._desk.inbox.get()
            try:
                await self._receive(word)
            except Exception:
                log.exception("a message of run %s was lost", word.run)

    async def _receive(self, word: Message | Ended) -> None:
        live = self._live.get(word.run)
        if live is None:
            return  # an attempt given up, or a run of another server on the same cluster
        if not live.in_hand or live.attempt != word.attempt:
            if isinstance(word, Message):
                self._aside(self._desk.tell(word.worker, word.run, word.attempt, "abandon"))
            return
        if isinstance(word, Ended):
            await self._lose(live, word.error or "its task ended without a word")
            return
        if live.worker not in (None, word.worker):
            # When a worker dies, a cluster that is not ours gives its task to another, which begins
            # where the first began: not where it was.
            self._aside(self._desk.tell(word.worker, word.run, word.attempt, "abandon"))
            await self._lose(live, "Dask had given its task to another")
            return
        live.heard = time.monotonic()
        if live.worker is None:
            live.worker = word.worker
            if live.wish is not None:
                await self._send_wish(live)
        elif live.wish is not None and live.heard - live.wished > WISH_SECONDS:
            self._aside(self._send_wish(live))
        events = decode(word.events)
        if events:
            await self._hear(live, events, word.data_hash)

    async def _hear(self, live: Live, events: list[Event], data_hash: str) -> None:
        last = events[-1]
        ended = isinstance(last, Finished)
        rests = isinstance(last, Finished) and last.state is State.PAUSED
        goes_on = rests and (live.wish != "pause" or live.state is not State.PAUSING)
        if goes_on:
            events = events[:-1]
        if any(isinstance(e, Started) for e in events):
            live.started = True
            if live.state is State.STARTING:
                live.state = State.RUNNING
                events = [*events, Changed(State.RUNNING)] if not ended else events
        if any(isinstance(e, Fitted) for e in events) and live.worker:
            self._remember(live.id, live.worker)
        await self._say(live.id, events, data_hash)
        if goes_on and self._closing:
            await self._interrupt(live)
            return
        if ended:
            self._let_go(live)
        if goes_on:
            await self._go_on(live, "")
        elif ended:
            del self._live[live.id]
            self._typical.pop(live.study, None)

    def _let_go(self, live: Live) -> None:
        """The attempt is over, whatever becomes of the run."""
        self._desk.forget(live.id, live.attempt)
        live.in_hand = False
        live.worker = None
        self._wake.set()

    async def _finish(self, live: Live, state: State, reason: str) -> None:
        """End a run without a worker's word."""
        self._let_go(live)
        self._live.pop(live.id, None)
        await self._say(live.id, [Finished(state, reason)])

    # Going on

    async def _watch(self) -> None:
        """Give up workers that are gone or silent; bring new ones up where none is left."""
        now = time.monotonic()
        slept = now - self._ticked > 3 * TICK_SECONDS + 2
        self._ticked = now
        self._slots = await self._desk.slots()
        if self._slots:
            self._seen = now
        for live in self._in_hand():
            if slept:
                live.heard = now  # it was us who did not listen
            elif live.worker is not None and now - live.heard > SILENCE_SECONDS:
                self._aside(self._desk.renew(live.worker, live.id, live.attempt))
                await self._lose(live, f"it was silent for {SILENCE_SECONDS:g} s")
        if now - self._seen > GONE_SECONDS and (self._desk.local or not self._desk.connected):
            log.warning("no worker is left; bringing up new ones")
            self._seen = now
            for live in self._in_hand():
                await self._lose(live, "no worker was left")
            await self._desk.connect()

    async def _lose(self, live: Live, why: str) -> None:
        """An attempt's worker is lost: go on from the last checkpoint, or give the run up."""
        log.warning("run %s lost its worker: %s", live.id, why)
        self._let_go(live)
        live.losses += 1
        await self._off(self.store.update_run, live.id, losses=live.losses)
        if live.losses > LOSSES:
            reason = f"The run was given up: its worker was lost {live.losses} times ({why})."
            await self._finish(live, State.FAILED, reason)
        elif live.wish == "pause":
            await self._finish(live, State.PAUSED, "Paused at its last checkpoint.")
        else:
            await self._go_on(live, f"The worker was lost (loss {live.losses} of {LOSSES} allowed)")

    async def _go_on(self, live: Live, why: str, *, first: bool = True) -> None:
        """Queue a run (before all others), to go on from its checkpoint or to conclude from it."""
        checkpoint = await self._off(self.store.checkpoint, live.id)
        step = checkpoint.step if checkpoint else 0
        if live.wish == "stop" and step == 0:
            reason = "Stopped before its first checkpoint, so there is no model."
            if live.attempt == 0:
                reason = "Stopped while it was queued; it never started."
            await self._finish(live, State.STOPPED, reason)
        else:
            note = f"{why}; going on from step {step}." if why else ""
            await self._requeue(live, note, first=first)

    async def _requeue(self, live: Live, note: str, *, first: bool) -> None:
        await self._off(self.store.claim, live.id, self.server)
        self._live[live.id] = live
        live.wish = "stop" if live.wish == "stop" else None
        live.state = State.STOPPING if live.wish == "stop" else State.QUEUED
        events: list[Event] = [Note(note)] if note else []
        await self._say(live.id, [*events, Changed(live.state)])
        self._queue.put(live.id, live.owner, live.address, first=first)
        self._wake.set()

    async def _interrupt(self, live: Live) -> None:
        """The server shuts down: the run waits in the store for the next start."""
        checkpoint = await self._off(self.store.checkpoint, live.id)
        step = checkpoint.step if checkpoint else 0
        note = Note(f"The server was shut down; the run goes on from step {step} with the next.")
        await self._say(live.id, [note, Changed(State.QUEUED)])
        self._let_go(live)  # last, for `close` waits until no run is in hand

    def _remember(self, run: str, address: str) -> None:
        """Remember where a run's model is warm."""
        self._warm[run] = address
        self._warm.move_to_end(run)
        while len(self._warm) > REMEMBERED:
            self._warm.popitem(last=False)
