"""Enforcement of limits: who may start a run, and its time on a worker."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from scant.errors import BadInput, NotAllowed
from scant.events import Event, Finished, State
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.limits import Limits, check_cost, cost_of, hours_text, size_of
from scant.store import RunRecord, StoreTrouble
from scant.studies import Entry

METER_SECONDS = 1.0  # between two readings of how long runs have held their workers
PUT_SECONDS = 10.0  # between two times that this is put down: what a killed server forgets
HEED_SECONDS = 60.0  # so long may a step take after the hours are used; then its worker goes
CONCLUDE_SHARE = 0.25  # of the hours that a run may use, beyond them, to conclude from what it has

log = logging.getLogger(__name__)


class LimitPolicy:
    """What runs may have of a server: no visitor, address or study more than is allowed.

    Args:
        care: The runs of this server.
        limits: What the operator allows.
    """

    def __init__(self, care: Lifecycle, limits: Limits) -> None:
        self.limits = limits
        self._care = care
        self._store, self._server = care.journal.store, care.journal.server
        self._writer, self._background = care.journal.writer, care.background
        self._used: dict[str, float] = {}  # seconds that runs have held workers
        self._over: dict[tuple[str, int], float] = {}  # attempts past their hours, since when

    async def start(self) -> None:
        """Count the hours of runs from now on."""
        self._background.spawn(self._meter())

    async def close(self) -> None:
        """Put down what was counted, if that can be done promptly."""
        with suppress(StoreTrouble):  # what a server forgets that cannot store is of no weight
            await self._writer.promptly(self._store.put_used, dict(self._used))

    # Beginning

    async def check_cost(self, study: Entry, settings: Any, data: str) -> None:
        """Refuse a run that this server could not finish. Raises as `check_cost` does."""
        # Not in the store's own thread: the labels of a large table take a while to count.
        size = await asyncio.to_thread(size_of, study, settings, data, self._store)
        own = not study.offers(data)
        cost = cost_of(study, settings, size, own) if size is not None else None
        if cost is not None:
            check_cost(cost, self.limits.hours, await self._care.client.memory())

    def check_counts(self, owner: str, address: str) -> None:
        """Refuse one run too many; `address` is a code. In the store's thread."""
        if not owner:
            raise NotAllowed(
                "A run belongs to the visitor who starts it, whom the server knows by a cookie, "
                "and your browser sent none; allow cookies of this page and load it anew."
            )
        mine, most = self._store.live_runs(owner), self.limits.per_owner
        if mine >= most:
            raise BadInput(
                f"You have {mine} runs queued or running, which is the limit of "
                f"{most}; wait for one to end, or stop one."
            )
        most = self.limits.per_address
        if address and (here := self._store.live_runs_from(address)) >= most:
            raise BadInput(
                f"From your network address {here} runs are queued or running, which is the limit "
                f"of {most} for all visitors there; wait for one to end."
            )

    def admit(self, owner: str, address: str, presenter: str, *about: Any, run_id: str) -> str:
        """Put a run down if there are not too many; in the store's thread, one after another."""
        self.check_counts(owner, address)
        return self._store.add_run_from(
            address, presenter, *about, owner, server=self._server, run_id=run_id
        )

    def readmit(self, record: RunRecord) -> bool:
        """Let a run that rests go on, if there are not too many; in the store's thread.

        False where it does not rest any more: of two clicks the first was answered.
        """
        if self._store.run(record.id).state is not State.PAUSED:
            return False
        self.check_counts(record.owner, self._store.origin(record.id)[0])
        self._store.claim(record.id, self._server)
        self._store.update_run(record.id, state=State.QUEUED)
        return True

    # Hours

    async def _meter(self) -> None:
        read = put = time.monotonic()
        while not self._background.closing:
            await asyncio.sleep(METER_SECONDS)
            now = time.monotonic()
            passed, read = min(now - read, 3 * METER_SECONDS), now  # a machine may have slept
            try:
                for live in self._care.assigned():
                    if live.worker is not None:
                        await self._count(live, passed)
                if now - put >= PUT_SECONDS:
                    put = now
                    await self._put_used()
            except Exception:
                log.exception("the hours of runs could not be counted")

    async def _count(self, live: ActiveRun, passed: float) -> None:
        used = self._used[live.id] = await self._used_by(live.id) + passed
        limit = self.limits.hours * 3600
        if not limit or used < limit or not live.assigned:
            return
        now = time.monotonic()
        key = (live.id, live.attempt)
        if key not in self._over:
            self._over[key] = now
            self._background.spawn(self._stop_for_hours(live, live.attempt))
        elif now - self._over[key] > HEED_SECONDS + CONCLUDE_SHARE * limit * live.heeded:
            self._over[key] = math.inf  # once
            self._background.spawn(self._give_up(live, live.attempt, limit))

    async def _stop_for_hours(self, live: ActiveRun, attempt: int) -> None:
        async with self._care.turns.of(live.id):
            if live.assigned and live.attempt == attempt and live.wish != "stop":
                log.info("run %s has used its hours", live.id)
                await self._care.wish(live, "stop", State.STOPPING)

    async def _give_up(self, live: ActiveRun, attempt: int, limit: float) -> None:
        """Take its worker from a run that does not end."""
        async with self._care.turns.of(live.id):
            if live.assigned and live.attempt == attempt and not live.over:
                await self._end_for_hours(live, limit)

    async def _end_for_hours(self, live: ActiveRun, limit: float) -> None:
        allowed = f"The run used the {hours_text(limit)} that this server allows"
        late = "did not conclude in the time after" if live.heeded else "took too long over a step"
        if live.worker is not None:
            renewing = self._care.client.renew(live.worker, live.id, live.attempt)
            self._background.spawn(renewing)
        await self._care.finish(
            live, State.FAILED,
            f"{allowed} and {late}, so its worker was replaced and there is no model; use fewer "
            "rows or a smaller model, or run it on your own machine with `scant fit`.",
        )  # fmt: skip

    async def _used_by(self, run: str) -> float:
        if run not in self._used:
            self._used[run] = await self._writer.do(self._store.used_seconds, run)
        return self._used[run]

    async def _put_used(self) -> None:
        used = dict(self._used)
        if used:
            await self._writer.do(self._store.put_used, used)
        for run in used.keys() - self._care.live.keys():
            self._used.pop(run, None)
        self._over = {k: v for k, v in self._over.items() if k[0] in self._care.live}

    async def reworded(self, live: ActiveRun, events: Sequence[Event]) -> list[Event]:
        """Let the reason of a run that was stopped for its hours say so."""
        last, limit = events[-1] if events else None, self.limits.hours * 3600
        stopped = isinstance(last, Finished) and last.state is State.STOPPED
        if not (limit and stopped):
            return list(events)
        if await self._used_by(live.id) < limit:
            return list(events)
        assert isinstance(last, Finished)
        reason = (
            f"It used the {hours_text(limit)} that this server allows a run and was stopped. "
            f"{last.reason.replace(', as requested', '')}"
        )
        return [*events[:-1], Finished(last.state, reason, last.report)]
