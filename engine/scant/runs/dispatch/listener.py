"""Receiving of messages from workers, and storing of their events in order.

Events wait in the backlog of their run while the store is not available.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from scant.events import Changed, Event, Finished, Fitted, Progress, Started, State, decode
from scant.runs.backlog import make_room
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.dispatch.warm import WarmModels
from scant.runs.workers.protocol import Ended, Message
from scant.store import StoreTrouble, TakenOver

WISH_SECONDS = 3.0  # after which a request is repeated, since messages may be lost

Reword = Callable[[ActiveRun, Sequence[Event]], Awaitable[list[Event]]]

log = logging.getLogger(__name__)


class Listener:
    """Receiver of messages from workers.

    Args:
        lifecycle: Runs of this server.
        warm: Record of the workers with models in memory.
        reword: Function that may change events before they are stored.
    """

    def __init__(self, lifecycle: Lifecycle, warm: WarmModels, reword: Reword) -> None:
        self._lifecycle = lifecycle
        self._warm = warm
        self._reword = reword

    async def listen(self) -> None:
        """Receive messages until cancelled."""
        while True:  # without a variable that would keep the last message
            self._receive(await self._lifecycle.client.inbox.get())

    def lose(self, live: ActiveRun, reason: str) -> None:
        """Handle the loss of a worker, after its earlier events are stored."""
        if live.over:
            return
        log.warning("run %s lost its worker: %s", live.id, reason)
        live.over, live.loss = True, reason
        self._drain(live)

    def _receive(self, message: Message | Ended) -> None:
        try:
            self._handle(message)
        except Exception:
            log.exception("a message of run %s was lost", message.run)

    def _handle(self, message: Message | Ended) -> None:
        """Handle a message without waiting for the store."""
        live = self._lifecycle.live.get(message.run)
        if live is None:
            return  # an old attempt, or a run of another server on the cluster
        if isinstance(message, Message) and live.attempt == message.attempt:
            live.resident, live.memory, live.heeded = (
                message.resident,
                message.memory,
                message.heeded,
            )
        if not live.assigned or live.attempt != message.attempt or live.over:
            if isinstance(message, Message):
                self._abandon(message)
            return
        if isinstance(message, Ended):
            self.lose(live, message.error or "its task ended without a last message")
            return
        if live.worker not in (None, message.worker):
            # When a worker dies, a cluster that is not ours gives its task to another, which begins
            # where the first began: not where it was.
            self._abandon(message)
            self.lose(live, "Dask had assigned its task to another")
            return
        live.heard = time.monotonic()
        result = live.worker is None
        live.worker = message.worker
        if live.wish is not None and (result or live.heard - live.wished > WISH_SECONDS):
            self._lifecycle.background.spawn(self._lifecycle.send_wish(live))
        events = decode(message.events)
        if events:
            _estimate_end(live, events)
            live.over = isinstance(events[-1], Finished)
            live.backlog.add(events, message.data_hash)
            make_room([other.backlog for other in self._lifecycle.live.values()])
            self._drain(live)

    def _abandon(self, message: Message) -> None:
        request = self._lifecycle.client.tell(
            message.worker, message.run, message.attempt, "abandon"
        )
        self._lifecycle.background.spawn(request)

    def _drain(self, live: ActiveRun) -> None:
        """Store the backlog of a run in order, in the background."""
        if not live.draining:
            live.draining = True
            self._lifecycle.background.spawn(self._store_backlog(live))

    async def _store_backlog(self, live: ActiveRun) -> None:
        async with self._lifecycle.turns.of(live.id):
            try:
                while self._lifecycle.live.get(live.id) is live and live.assigned:
                    if live.backlog:
                        await self._store_events(live, live.backlog.take(), live.backlog.data_hash)
                    elif live.loss:
                        await self._lifecycle.go_on_after_loss(live)
                    else:
                        break
            except TakenOver:
                await self._lifecycle.release(live)
            except StoreTrouble:
                log.info("the last events of run %s are not stored: the server is closing", live.id)
            except Exception:
                log.exception("events of run %s could not be stored", live.id)
            finally:
                live.draining = False

    async def _store_events(self, live: ActiveRun, events: list[Event], data_hash: str) -> None:
        events = await self._reword(live, events)
        last = events[-1]
        ended = isinstance(last, Finished)
        rests = isinstance(last, Finished) and last.state is State.PAUSED
        goes_on = rests and (live.wish != "pause" or live.state is not State.PAUSING)
        if goes_on:
            events = events[:-1]
        started = any(isinstance(e, Started) for e in events)
        running = started and live.state is State.STARTING
        if running:  # after `Started`, since `Finished` may be in the same batch
            after = 1 + max(i for i, event in enumerate(events) if isinstance(event, Started))
            events = [*events[:after], Changed(State.RUNNING), *events[after:]]
        await self._lifecycle.journal.say(live.id, events, data_hash)
        live.started = live.started or started
        if running:
            live.state = State.RUNNING
        if any(isinstance(e, Fitted) for e in events) and live.worker:
            self._warm.remember(live.id, live.worker)
        if goes_on and self._lifecycle.background.closing:
            await self._lifecycle.interrupt(live)
            return
        if ended:
            self._lifecycle.let_go(live)
        if goes_on:
            await self._lifecycle.go_on(live, "")
        elif ended:
            self._lifecycle.live.pop(live.id, None)


def _estimate_end(live: ActiveRun, events: Sequence[Event]) -> None:
    """Estimate the end of training from the time per step so far."""
    for event in events:
        if isinstance(event, Started):
            live.steps, live.ends = event.total_steps, None
    last = next((e for e in reversed(events) if isinstance(e, Progress)), None)
    if last is not None and last.step and live.steps:
        remaining = last.seconds / last.step * (live.steps - last.step)
        live.ends = time.monotonic() + remaining
