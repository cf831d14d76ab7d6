"""The runs in this server's care, and how each goes from one state to the next."""

from __future__ import annotations

import asyncio
import logging
import time

from scant.events import Changed, Event, Finished, Note, State
from scant.runs.background import Background
from scant.runs.backlog import Backlog
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.queue import FairQueue
from scant.runs.dispatch.turns import Turns
from scant.runs.journal import Journal
from scant.runs.memory import out_of_memory
from scant.runs.workers.protocol import Workers
from scant.store import RunRecord

LOSSES = 3  # so many lost workers a run survives
NEAR = 0.8  # of a worker's memory: one that held as much when it was lost had run out of it

log = logging.getLogger(__name__)


class Lifecycle:
    """Decides what becomes of a run. Callers hold its turn (`turns`).

    Attributes:
        journal: Where all that is decided is put down.
        client: The workers.
        background: Tasks of this server.
        turns: Locks of the runs.
        live: The runs in this server's care: queued, or on a worker.
        queue: Those that wait.
        wake: Set when a run may be sent out: one waits, or a worker is free.
    """

    def __init__(self, journal: Journal, client: Workers, background: Background) -> None:
        self.journal = journal
        self.client = client
        self.background = background
        self.turns = Turns(journal.writer, background)
        self.live: dict[str, ActiveRun] = {}
        self.queue = FairQueue()
        self.wake = asyncio.Event()
        self._store, self._writer = journal.store, journal.writer

    def assigned(self) -> list[ActiveRun]:
        """Runs that hold a worker, or are on their way to one."""
        return [live for live in self.live.values() if live.assigned]

    def enter(self, live: ActiveRun) -> None:
        """Queue a new run, which is in the store."""
        self.live[live.id] = live
        self.queue.put(live.id, live.owner, live.address)
        self.journal.publish(live.id, [Changed(State.QUEUED)])
        self.wake.set()

    async def set_state(self, live: ActiveRun, state: State) -> None:
        """Put a state down, then have it."""
        await self.journal.say(live.id, [Changed(state)])
        live.state = state

    # On a worker

    async def wish(self, live: ActiveRun, wish: str | None, state: State) -> None:
        """Have the worker pause or stop the run, or (None) go on with it."""
        live.wish = wish
        asking = asyncio.create_task(self.send_wish(live))
        await self.set_state(live, state)
        await asking

    async def send_wish(self, live: ActiveRun) -> None:
        """Tell the worker what is wished of the run."""
        live.wished = time.monotonic()
        if live.worker is not None:  # else it is sent when the worker has said where it is
            await self.client.tell(live.worker, live.id, live.attempt, live.wish)

    def let_go(self, live: ActiveRun) -> None:
        """The attempt is over, whatever becomes of the run."""
        self.client.forget(live.id, live.attempt)
        live.assigned = live.over = False
        live.loss, live.backlog = "", Backlog()
        live.worker = None
        self.wake.set()

    async def finish(self, live: ActiveRun, state: State, reason: str) -> None:
        """End a run without a worker's word."""
        await self.journal.say(live.id, [Finished(state, reason)])
        self.let_go(live)
        self.live.pop(live.id, None)

    async def release(self, live: ActiveRun) -> None:
        """Let go of a run that another server has in its care by now."""
        log.warning("run %s was acquired by another server", live.id)
        self.queue.remove(live.id)
        worker, attempt = live.worker, live.attempt
        if live.assigned:
            self.let_go(live)
        if worker is not None:
            await self.client.tell(worker, live.id, attempt, "abandon")
        if self.live.get(live.id) is live:
            del self.live[live.id]

    async def interrupt(self, live: ActiveRun) -> None:
        """The server shuts down: the run waits in the store for the next start."""
        step = await self._checkpointed(live)
        note = Note(f"The server was shut down; the run goes on from step {step} with the next.")
        await self.journal.say(live.id, [note, Changed(State.QUEUED)])
        self.let_go(live)  # last, for a server that closes waits until no run is in hand

    # Going on

    async def go_on(self, live: ActiveRun, why: str, *, first: bool = True) -> None:
        """Queue a run (before all others), to go on from its checkpoint or to conclude from it."""
        await self._take_in(live)
        step = await self._checkpointed(live)
        if live.wish == "stop" and step == 0:
            reason = "Stopped before its first checkpoint, so there is no model."
            if live.attempt == 0:
                reason = "Stopped while it was queued; it never started."
            await self.finish(live, State.STOPPED, reason)
        else:
            note = f"{why}; going on from step {step}." if why else ""
            await self.requeue(live, note, first=first)

    async def go_on_after_loss(self, live: ActiveRun) -> None:
        """Go on from the last checkpoint, or give the run up.

        A run whose worker was killed for its memory would kill the next one, too.
        """
        if live.memory and live.resident >= NEAR * live.memory:
            log.warning("run %s lost its worker for memory: %s", live.id, live.loss)
            await self.finish(live, State.FAILED, out_of_memory(live.memory))
            return
        why, losses = live.loss, live.losses + 1
        await self._writer.do(self._store.update_run, live.id, losses=losses)
        live.losses = losses
        if losses > LOSSES:
            reason = f"The run was given up: its worker was lost {losses} times ({why})."
            await self.finish(live, State.FAILED, reason)
        elif live.wish == "pause":
            await self.finish(live, State.PAUSED, "Paused at its last checkpoint.")
        else:
            self.let_go(live)
            await self.go_on(live, f"The worker was lost (loss {losses} of {LOSSES} allowed)")

    async def resume(self, record: RunRecord) -> None:
        """Queue a paused run before all others, unless it never had its turn."""
        await self.requeue(ActiveRun.of(record), first=record.attempt > 0)

    async def requeue(self, live: ActiveRun, note: str = "", *, first: bool = False) -> None:
        """Let a run wait for a worker."""
        if self.live.get(live.id, live) is not live:
            return  # somebody else has it go on
        if not live.address:
            live.address, _ = await self._writer.do(self._store.origin, live.id)
        await self._take_in(live)
        live.wish = "stop" if live.wish == "stop" else None
        state = State.STOPPING if live.wish == "stop" else State.QUEUED
        events: list[Event] = [Note(note)] if note else []
        await self.journal.say(live.id, [*events, Changed(state)])
        live.state = state
        self.queue.put(live.id, live.owner, live.address, first=first)
        self.wake.set()

    async def _take_in(self, live: ActiveRun) -> None:
        """Take a run into our care that was at rest."""
        if live.id not in self.live:
            self.live[live.id] = live  # first, or it would be taken for one that nobody has
            await self._writer.do(self._store.claim, live.id, self.journal.server)

    async def _checkpointed(self, live: ActiveRun) -> int:
        """The step of the last checkpoint; 0 where there is none."""
        checkpoint = await self._writer.do(self._store.checkpoint, live.id)
        return checkpoint.step if checkpoint else 0
