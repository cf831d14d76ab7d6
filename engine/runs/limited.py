"""Runs within limits: who may begin one, how long it may hold a worker, what its memory holds."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from engine.catalog import Entry
from engine.errors import BadInput, NotAllowed
from engine.events import Event, Finished, State
from engine.memory import out_of_memory
from engine.runs.desk import Ended, Message
from engine.runs.limits import Limits, check_cost, cost_of, hours_words, size_of
from engine.runs.live import Live
from engine.runs.sharing import Shared
from engine.store import RunRecord, StoreTrouble

METER_SECONDS = 1.0  # between two readings of how long runs have held their workers
PUT_SECONDS = 10.0  # between two times that this is put down: what a killed server forgets
HEED_SECONDS = 60.0  # so long may a step take after the hours are used; then its worker goes
CONCLUDE_SHARE = 0.25  # of the hours that a run may use, beyond them, to conclude from what it has
NEAR = 0.8  # of a worker's memory: one that held as much when it was lost had run out of it

log = logging.getLogger(__name__)


class Limited(Shared):
    """Attempts of runs that no visitor, address or study can have more of than is allowed."""

    limits = Limits()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._used: dict[str, float] = {}  # seconds that runs have held workers
        self._over: dict[tuple[str, int], float] = {}  # attempts past their hours, since when

    async def start(self) -> None:
        """Bring the workers up. Raises as `Shared.start` does."""
        await super().start()
        self._tasks.append(asyncio.create_task(self._meter()))

    async def close(self, patience: float = 3.0) -> None:
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        with suppress(StoreTrouble):  # what a server forgets that cannot store is of no weight
            await self._promptly(self.store.put_used, dict(self._used))
        await super().close(patience)

    # Beginning

    async def _check_cost(self, found: Entry, settings: Any, data: str) -> None:
        """Refuse a run that this server could not finish. Raises as `check_cost` does."""
        # Not in the store's own thread: the labels of a large table take a while to count.
        size = await asyncio.to_thread(size_of, found, settings, data, self.store)
        cost = cost_of(found, settings, size) if size is not None else None
        if cost is not None:
            check_cost(cost, self.limits.hours, await self._desk.memory())

    def _check_counts(self, owner: str, address: str) -> None:
        """Refuse one run too many; `address` is a code. In the store's thread."""
        if not owner:
            raise NotAllowed(
                "A run belongs to the visitor who starts it, whom the server knows by a cookie, "
                "and your browser sent none; allow cookies of this page and load it anew."
            )
        mine, most = self.store.live_runs(owner), self.limits.per_owner
        if mine >= most:
            raise BadInput(
                f"You have {mine} runs queued or running, which is the limit of "
                f"{most}; wait for one to end, or stop one."
            )
        most = self.limits.per_address
        if address and (here := self.store.live_runs_from(address)) >= most:
            raise BadInput(
                f"From your network address {here} runs are queued or running, which is the limit "
                f"of {most} for all visitors there; wait for one to end."
            )

    def _admit(self, owner: str, address: str, presenter: str, *about: Any, run_id: str) -> str:
        """Put a run down if there are not too many; in the store's thread, one after another."""
        self._check_counts(owner, address)
        return self.store.add_run_from(
            address, presenter, *about, owner, server=self.server, run_id=run_id
        )

    def _readmit(self, record: RunRecord) -> bool:
        """Let a run that rests go on, if there are not too many; in the store's thread.

        False where it does not rest any more: of two clicks the first was answered.
        """
        if self.store.run(record.id).state is not State.PAUSED:
            return False
        self._check_counts(record.owner, self.store.origin(record.id)[0])
        self.store.claim(record.id, self.server)
        self.store.update_run(record.id, state=State.QUEUED)
        return True

    async def _requeue(self, live: Live, note: str, *, first: bool) -> None:
        if self._live.get(live.id, live) is not live:
            return  # somebody else has it go on
        if not live.address:
            live.address, _ = await self._off(self.store.origin, live.id)
        await super()._requeue(live, note, first=first)

    # Hours

    async def _meter(self) -> None:
        read = put = time.monotonic()
        while not self._closing:
            await asyncio.sleep(METER_SECONDS)
            now = time.monotonic()
            passed, read = min(now - read, 3 * METER_SECONDS), now  # a machine may have slept
            try:
                for live in self._in_hand():
                    if live.worker is not None:
                        await self._count(live, passed)
                if now - put >= PUT_SECONDS:
                    put = now
                    await self._put_used()
            except Exception:
                log.exception("the hours of runs could not be counted")

    async def _count(self, live: Live, passed: float) -> None:
        used = self._used[live.id] = await self._used_by(live.id) + passed
        limit = self.limits.hours * 3600
        if not limit or used < limit or not live.in_hand:
            return
        now = time.monotonic()
        key = (live.id, live.attempt)
        if key not in self._over:
            self._over[key] = now
            self._aside(self._stop_for_hours(live, live.attempt))
        elif now - self._over[key] > HEED_SECONDS + CONCLUDE_SHARE * limit * live.heeded:
            self._over[key] = math.inf  # once
            self._aside(self._give_up(live, live.attempt, limit))

    async def _stop_for_hours(self, live: Live, attempt: int) -> None:
        async with self._turn(live.id):
            if live.in_hand and live.attempt == attempt and live.wish != "stop":
                log.info("run %s has used its hours", live.id)
                await self._wish(live, "stop", State.STOPPING)

    async def _give_up(self, live: Live, attempt: int, limit: float) -> None:
        """Take its worker from a run that does not end."""
        async with self._turn(live.id):
            if live.in_hand and live.attempt == attempt and not live.over:
                await self._end_for_hours(live, limit)

    async def _end_for_hours(self, live: Live, limit: float) -> None:
        allowed = f"The run used the {hours_words(limit)} that this server allows"
        late = "did not conclude in the time after" if live.heeded else "took too long over a step"
        if live.worker is not None:
            self._aside(self._desk.renew(live.worker, live.id, live.attempt))
        await self._finish(
            live, State.FAILED,
            f"{allowed} and {late}, so its worker was replaced and there is no model; use fewer "
            "rows or a smaller model, or run it on your own machine with `scant fit`.",
        )  # fmt: skip

    async def _used_by(self, run: str) -> float:
        if run not in self._used:
            self._used[run] = await self._off(self.store.used_seconds, run)
        return self._used[run]

    async def _put_used(self) -> None:
        used = dict(self._used)
        if used:
            await self._off(self.store.put_used, used)
        for run in used.keys() - self._live.keys():
            self._used.pop(run, None)
        self._over = {k: v for k, v in self._over.items() if k[0] in self._live}

    async def _hear(self, live: Live, events: list[Event], data_hash: str) -> None:
        await super()._hear(live, await self._worded(live, events), data_hash)

    async def _worded(self, live: Live, events: Sequence[Event]) -> list[Event]:
        """Let the reason of a run that was stopped for its hours say so."""
        last, limit = events[-1] if events else None, self.limits.hours * 3600
        stopped = isinstance(last, Finished) and last.state is State.STOPPED
        if not (limit and stopped):
            return list(events)
        if await self._used_by(live.id) < limit:
            return list(events)
        assert isinstance(last, Finished)
        reason = (
            f"It used the {hours_words(limit)} that this server allows a run and was stopped. "
            f"{last.reason.replace(', as asked', '')}"
        )
        return [*events[:-1], Finished(last.state, reason, last.report)]

    # Memory

    def _receive(self, word: Message | Ended) -> None:
        live = self._live.get(word.run)
        if isinstance(word, Message) and live is not None and live.attempt == word.attempt:
            live.resident, live.memory, live.heeded = word.resident, word.memory, word.heeded
        super()._receive(word)

    async def _begin(self, live: Live) -> None:
        await super()._begin(live)
        live.resident, live.heeded = 0, False  # after the last word of the attempt before

    async def _go_on_after_loss(self, live: Live) -> None:
        """A run whose worker was killed for its memory would kill the next one, too."""
        if live.memory and live.resident >= NEAR * live.memory:
            log.warning("run %s lost its worker for memory: %s", live.id, live.loss)
            await self._finish(live, State.FAILED, out_of_memory(live.memory))
        else:
            await super()._go_on_after_loss(live)
