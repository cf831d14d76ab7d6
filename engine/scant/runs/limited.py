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
from scant.runs.limits import Limits, check_cost, check_upload, cost_of, hours_text, size_of
from scant.store import RunRecord, StoreTrouble
from scant.studies import Entry

METER_SECONDS = 1.0  # between two updates of the worker time of runs
STORE_SECONDS = 10.0  # between two stores of the worker time; lost if the server is killed
HEED_SECONDS = 60.0  # grace period for a training step after the time limit
CONCLUDE_SHARE = 0.25  # fraction of the time limit granted for the conclusion of a stopped run

log = logging.getLogger(__name__)


class LimitPolicy:
    """Enforces the limits on numbers and worker time of runs.

    Args:
        lifecycle: Runs of this server.
        limits: Limits set by the operator.
    """

    def __init__(self, lifecycle: Lifecycle, limits: Limits) -> None:
        self.limits = limits
        self._lifecycle = lifecycle
        self._store, self._server = lifecycle.journal.store, lifecycle.journal.server
        self._writer, self._background = lifecycle.journal.writer, lifecycle.background
        self._used: dict[str, float] = {}  # seconds of worker time by run
        self._over: dict[
            tuple[str, int], float
        ] = {}  # when attempts exceeded the limit, by monotonic clock

    async def start(self) -> None:
        """Start to measure the worker time of runs."""
        self._background.spawn(self._meter())

    async def close(self) -> None:
        """Store the worker times if this is possible promptly."""
        with suppress(StoreTrouble):  # a loss of the last seconds is acceptable
            await self._writer.promptly(self._store.set_used_seconds, dict(self._used))

    # Submission

    async def check_cost(self, study: Entry, settings: Any, data: str) -> None:
        """Reject a run that this server could not finish, or that its table does not suit.

        Raises as `check_cost` and `check_upload` do.
        """
        # Not in the thread of the store, since counting the labels of a large table is slow.
        await asyncio.to_thread(check_upload, study, settings, data, self._store)
        size = await asyncio.to_thread(size_of, study, settings, data, self._store)
        own = not study.offers(data)
        cost = cost_of(study, settings, size, own) if size is not None else None
        if cost is not None:
            check_cost(cost, self.limits.hours, await self._lifecycle.client.memory())

    def check_counts(self, owner: str, address: str) -> None:
        """Check the numbers of runs in the thread of the store; `address` is a code."""
        if not owner:
            raise NotAllowed(
                "A run belongs to the visitor who starts it. The server recognizes visitors by a "
                "cookie, but your browser sent none; allow cookies for this page and reload it."
            )
        n_own, limit = self._store.live_runs(owner), self.limits.per_owner
        if n_own >= limit:
            raise BadInput(
                f"You have {n_own} run{'s' * (n_own != 1)} queued or running, and the limit is "
                f"{limit}; wait for one to end, or stop one."
            )
        limit = self.limits.per_address
        if address and (here := self._store.live_runs_from(address)) >= limit:
            raise BadInput(
                f"Visitors from your network address have {here} run{'s' * (here != 1)} queued or "
                f"running, and the limit is {limit}; wait for one to end."
            )

    def admit(self, owner: str, address: str, presenter: str, *about: Any, run_id: str) -> str:
        """Store a run after a check of the numbers, in the thread of the store."""
        self.check_counts(owner, address)
        return self._store.add_run_from(
            address, presenter, *about, owner, server=self._server, run_id=run_id
        )

    def readmit(self, record: RunRecord) -> bool:
        """Queue a paused run after a check of the numbers, in the thread of the store.

        Returns False if the run is not paused any more, as after a double click.
        """
        if self._store.run(record.id).state is not State.PAUSED:
            return False
        self.check_counts(record.owner, self._store.origin(record.id)[0])
        self._store.claim(record.id, self._server)
        self._store.update_run(record.id, state=State.QUEUED)
        return True

    # Hours

    async def _meter(self) -> None:
        last_read = last_stored = time.monotonic()
        while not self._background.closing:
            await asyncio.sleep(METER_SECONDS)
            now = time.monotonic()
            elapsed, last_read = (
                min(now - last_read, 3 * METER_SECONDS),
                now,
            )  # the machine may have been suspended
            try:
                for live in self._lifecycle.assigned():
                    if live.worker is not None:
                        await self._count(live, elapsed)
                if now - last_stored >= STORE_SECONDS:
                    last_stored = now
                    await self._store_used()
            except Exception:
                log.exception("the hours of runs could not be counted")

    async def _count(self, live: ActiveRun, elapsed: float) -> None:
        used = self._used[live.id] = await self._used_by(live.id) + elapsed
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
        async with self._lifecycle.turns.of(live.id):
            if live.assigned and live.attempt == attempt and live.wish != "stop":
                log.info("run %s has used its hours", live.id)
                await self._lifecycle.wish(live, "stop", State.STOPPING)

    async def _give_up(self, live: ActiveRun, attempt: int, limit: float) -> None:
        """End a run that does not stop by itself, and renew its worker."""
        async with self._lifecycle.turns.of(live.id):
            if live.assigned and live.attempt == attempt and not live.over:
                await self._end_for_hours(live, limit)

    async def _end_for_hours(self, live: ActiveRun, limit: float) -> None:
        allowed = f"The run used the {hours_text(limit)} that this server allows"
        delay = "did not end within the extra time" if live.heeded else "one step took too long"
        if live.worker is not None:
            renewing = self._lifecycle.client.renew(live.worker, live.id, live.attempt)
            self._background.spawn(renewing)
        await self._lifecycle.finish(
            live, State.FAILED,
            f"{allowed} and {delay}, so its worker was replaced and there is no model; use fewer "
            "rows or a smaller model, or run it on your own machine with `scant fit`.",
        )  # fmt: skip

    async def _used_by(self, run: str) -> float:
        if run not in self._used:
            self._used[run] = await self._writer.do(self._store.used_seconds, run)
        return self._used[run]

    async def _store_used(self) -> None:
        used = dict(self._used)
        if used:
            await self._writer.do(self._store.set_used_seconds, used)
        for run in used.keys() - self._lifecycle.live.keys():
            self._used.pop(run, None)
        self._over = {k: v for k, v in self._over.items() if k[0] in self._lifecycle.live}

    async def reworded(self, live: ActiveRun, events: Sequence[Event]) -> list[Event]:
        """Add the time limit to the reason of a run that was stopped for it."""
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
