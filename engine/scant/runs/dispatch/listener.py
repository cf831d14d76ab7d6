"""What workers say of their attempts: taken in at once, and put down in order.

It waits in the backlog of its run while the store does not take it.
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

WISH_SECONDS = 3.0  # so long unheeded, and a wish is told again: it may be lost on its way

Reword = Callable[[ActiveRun, Sequence[Event]], Awaitable[list[Event]]]

log = logging.getLogger(__name__)


class Listener:
    """Hears the workers.

    Args:
        care: The runs that may be spoken of.
        warm: Told of models that workers have fitted.
        reword: Has the say on what runs say, before it is put down.
    """

    def __init__(self, care: Lifecycle, warm: WarmModels, reword: Reword) -> None:
        self._care = care
        self._warm = warm
        self._reword = reword

    async def listen(self) -> None:
        """Take in whatever is said, for ever."""
        while True:
            word = await self._care.client.inbox.get()
            try:
                self._receive(word)
            except Exception:
                log.exception("a message of run %s was lost", word.run)

    def lose(self, live: ActiveRun, why: str) -> None:
        """An attempt's worker is lost; what it said before is put down first."""
        if live.over:
            return
        log.warning("run %s lost its worker: %s", live.id, why)
        live.over, live.loss = True, why
        self._drain(live)

    def _receive(self, word: Message | Ended) -> None:
        """Take in what was said; nothing here waits for the store."""
        live = self._care.live.get(word.run)
        if live is None:
            return  # an attempt given up, or a run of another server on the same cluster
        if isinstance(word, Message) and live.attempt == word.attempt:
            live.resident, live.memory, live.heeded = word.resident, word.memory, word.heeded
        if not live.assigned or live.attempt != word.attempt or live.over:
            if isinstance(word, Message):
                self._abandon(word)
            return
        if isinstance(word, Ended):
            self.lose(live, word.error or "its task ended without a last message")
            return
        if live.worker not in (None, word.worker):
            # When a worker dies, a cluster that is not ours gives its task to another, which begins
            # where the first began: not where it was.
            self._abandon(word)
            self.lose(live, "Dask had assigned its task to another")
            return
        live.heard = time.monotonic()
        result = live.worker is None
        live.worker = word.worker
        if live.wish is not None and (result or live.heard - live.wished > WISH_SECONDS):
            self._care.background.spawn(self._care.send_wish(live))
        events = decode(word.events)
        if events:
            _estimate_end(live, events)
            live.over = isinstance(events[-1], Finished)
            live.backlog.add(events, word.data_hash)
            make_room([other.backlog for other in self._care.live.values()])
            self._drain(live)

    def _abandon(self, word: Message) -> None:
        telling = self._care.client.tell(word.worker, word.run, word.attempt, "abandon")
        self._care.background.spawn(telling)

    def _drain(self, live: ActiveRun) -> None:
        """Have put down what waits of a run, in order."""
        if not live.draining:
            live.draining = True
            self._care.background.spawn(self._put_down(live))

    async def _put_down(self, live: ActiveRun) -> None:
        async with self._care.turns.of(live.id):
            try:
                while self._care.live.get(live.id) is live and live.assigned:
                    if live.backlog:
                        await self._hear(live, live.backlog.take(), live.backlog.data_hash)
                    elif live.loss:
                        await self._care.go_on_after_loss(live)
                    else:
                        break
            except TakenOver:
                await self._care.release(live)
            except StoreTrouble:
                log.info("the last events of run %s are not stored: the server is closing", live.id)
            except Exception:
                log.exception("events of run %s could not be stored", live.id)
            finally:
                live.draining = False

    async def _hear(self, live: ActiveRun, events: list[Event], data_hash: str) -> None:
        events = await self._reword(live, events)
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
        await self._care.journal.say(live.id, events, data_hash)
        live.started = live.started or started
        if running:
            live.state = State.RUNNING
        if any(isinstance(e, Fitted) for e in events) and live.worker:
            self._warm.remember(live.id, live.worker)
        if goes_on and self._care.background.closing:
            await self._care.interrupt(live)
            return
        if ended:
            self._care.let_go(live)
        if goes_on:
            await self._care.go_on(live, "")
        elif ended:
            self._care.live.pop(live.id, None)


def _estimate_end(live: ActiveRun, events: Sequence[Event]) -> None:
    """Note when training ends at the latest, at its pace so far."""
    for event in events:
        if isinstance(event, Started):
            live.steps, live.ends = event.total_steps, None
    last = next((e for e in reversed(events) if isinstance(e, Progress)), None)
    if last is not None and last.step and live.steps:
        left = last.seconds / last.step * (live.steps - last.step)
        live.ends = time.monotonic() + left
