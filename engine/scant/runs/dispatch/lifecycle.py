"""Runs of this server and the transitions between their states."""

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

LOSSES = 3  # maximum number of lost workers of a run
MEMORY_SHARE = 0.8  # memory use of a lost worker from which memory is the presumed cause

log = logging.getLogger(__name__)


class Lifecycle:
    """State machine of runs; callers hold the lock of the run (`turns`).

    Attributes:
        journal: Journal of events.
        client: Client of the workers.
        background: Background tasks of this server.
        turns: Locks of runs.
        live: Runs of this server by id, queued or on a worker.
        queue: Queued runs.
        wake: Event that is set when a run may be assigned.
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
        """Return the runs that are on a worker or being sent to one."""
        return [live for live in self.live.values() if live.assigned]

    def enter(self, live: ActiveRun) -> None:
        """Queue a new run that is already stored."""
        self.live[live.id] = live
        self.queue.put(live.id, live.owner, live.address)
        self.journal.publish(live.id, [Changed(State.QUEUED)])
        self.wake.set()

    async def set_state(self, live: ActiveRun, state: State) -> None:
        """Store the state of a run, then set it."""
        await self.journal.say(live.id, [Changed(state)])
        live.state = state

    # On a worker

    async def wish(self, live: ActiveRun, wish: str | None, state: State) -> None:
        """Request that the worker pauses or stops the run, or (None) continues it."""
        live.wish = wish
        asking = asyncio.create_task(self.send_wish(live))
        await self.set_state(live, state)
        await asking

    async def send_wish(self, live: ActiveRun) -> None:
        """Send the current request to the worker of the run."""
        live.wished = time.monotonic()
        if live.worker is not None:  # else it is sent after the first message of the worker
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
        """Drop a run that another server has taken over."""
        log.warning("run %s was acquired by another server", live.id)
        await self.drop(live)

    async def drop(self, live: ActiveRun) -> None:
        """Forget a run, and end its attempt without further events."""
        self.queue.remove(live.id)
        worker, attempt = live.worker, live.attempt
        if live.assigned:
            self.let_go(live)
        if worker is not None:
            await self.client.tell(worker, live.id, attempt, "abandon")
        if self.live.get(live.id) is live:
            del self.live[live.id]

    async def interrupt(self, live: ActiveRun) -> None:
        """Queue a run for the next start, since the server shuts down."""
        step = await self._checkpointed(live)
        note = Note(
            f"The server was shut down; the run goes on from step {step} when it starts again."
        )
        await self.journal.say(live.id, [note, Changed(State.QUEUED)])
        self.let_go(live)  # last, since a closing server waits for assigned runs

    # Continuation

    async def go_on(self, live: ActiveRun, why: str, *, first: bool = True) -> None:
        """Queue a run, by default first, to continue or conclude from its checkpoint."""
        await self._claim(live)
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
        """Continue from the last checkpoint after the loss of a worker, or fail the run.

        A run that exhausted the memory of its worker fails at once, since a retry would, too.
        """
        if live.memory and live.resident >= MEMORY_SHARE * live.memory:
            log.warning("run %s lost its worker for memory: %s", live.id, live.loss)
            await self.finish(live, State.FAILED, out_of_memory(live.memory))
            return
        why, losses = live.loss, live.losses + 1
        await self._writer.do(self._store.update_run, live.id, losses=losses)
        live.losses = losses
        if losses > LOSSES:
            reason = (
                f"The run was given up: its worker was lost {losses} times ({why}); train again, "
                "with fewer rows or a smaller model if that happens again."
            )
            await self.finish(live, State.FAILED, reason)
        elif live.wish == "pause":
            await self.finish(live, State.PAUSED, "Paused at its last checkpoint.")
        else:
            self.let_go(live)
            await self.go_on(live, f"The worker was lost (loss {losses} of {LOSSES} allowed)")

    async def resume(self, record: RunRecord) -> None:
        """Queue a paused run, in first position if it has been started before."""
        await self.requeue(ActiveRun.of(record), first=record.attempt > 0)

    async def requeue(self, live: ActiveRun, note: str = "", *, first: bool = False) -> None:
        """Add a run to the queue."""
        if self.live.get(live.id, live) is not live:
            return  # continued elsewhere
        if not live.address:
            live.address, _ = await self._writer.do(self._store.origin, live.id)
        await self._claim(live)
        live.wish = "stop" if live.wish == "stop" else None
        state = State.STOPPING if live.wish == "stop" else State.QUEUED
        events: list[Event] = [Note(note)] if note else []
        await self.journal.say(live.id, [*events, Changed(state)])
        live.state = state
        self.queue.put(live.id, live.owner, live.address, first=first)
        self.wake.set()

    async def _claim(self, live: ActiveRun) -> None:
        """Make a paused run live and claim it for this server."""
        if live.id not in self.live:
            self.live[live.id] = live  # first, so that it is not taken for an orphan
            await self._writer.do(self._store.claim, live.id, self.journal.server)

    async def _checkpointed(self, live: ActiveRun) -> int:
        """Return the step of the last checkpoint; 0 without one."""
        checkpoint = await self._writer.do(self._store.checkpoint, live.id)
        return checkpoint.step if checkpoint else 0
