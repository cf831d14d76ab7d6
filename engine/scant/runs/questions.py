"""Queries to the fitted models of runs, answered by workers in parallel to training."""

from __future__ import annotations

import asyncio
from typing import Any

from scant.errors import NotFound, Unavailable
from scant.runs.dispatch.dispatcher import Dispatcher
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.workers.answers import NOT_CACHED
from scant.store import RunRecord, StoreTrouble
from scant.studies import entry

PATIENCE = 15.0  # maximum seconds to wait for a worker; a lost one is replaced within five


class Questions:
    """Client for queries to the worker that has the model in memory, or to the least busy one."""

    def __init__(self, lifecycle: Lifecycle, dispatcher: Dispatcher) -> None:
        self._lifecycle = lifecycle
        self._pool, self._warm = dispatcher.pool, dispatcher.warm
        self._prefetched: set[str] = set()

    async def ask(self, run: str, request: dict[str, Any]) -> Any:
        """Query the model of a finished run.

        Args:
            run: Id of the run.
            request: Request as in `workers.answers.answer`, without the run.

        Raises:
            NotFound: There is no such run, or it has no model.
            BadInput: The study rejected the request.
            Unavailable: No worker has been available for `PATIENCE` seconds.
        """
        record = await asyncio.to_thread(self._lifecycle.journal.store.run, run)
        request |= {"run": run, "study": record.study, "settings": dict(record.settings)}
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                return await self._answer(record, request)
            except StoreTrouble:
                raise  # not a problem of the worker
            except Unavailable:
                if asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(0.2)

    def prefetch_demo(self, study: str) -> None:
        """Generate the example data of a study in the background, once per server.

        Without a worker, this is left to the run or the next call.
        """
        if study in self._prefetched or not entry(study).sources[0].kept:
            return
        self._prefetched.add(study)
        self._lifecycle.background.spawn(self._prefetch_demo(study))

    async def _prefetch_demo(self, study: str) -> None:
        try:
            await self._lifecycle.client.prefetch_demo(self._choose(""), study)
        except Unavailable:
            self._prefetched.discard(study)

    async def _answer(self, record: RunRecord, request: dict[str, Any]) -> Any:
        run, client, address = record.id, self._lifecycle.client, self._choose(record.id)
        try:
            answer = await client.ask(address, request, None) if self._warm.worker(run) else None
            if answer is None or (isinstance(answer, str) and answer == NOT_CACHED):
                model = await asyncio.to_thread(self._lifecycle.journal.store.model, run)
                if model is None:
                    raise NotFound(f"Run {run} is {record.state} and has no fitted model to ask.")
                answer = await client.ask(address, request, model)
        except StoreTrouble:
            raise
        except Unavailable:
            self._pool.slots.pop(address, None)  # until it is seen again
            raise
        self._warm.remember(run, address)
        return answer

    def _choose(self, run: str) -> str:
        warm, slots = self._warm.worker(run), self._pool.slots
        if warm in slots:
            return warm
        if not slots:
            raise Unavailable("No worker is up at the moment; try again in a few seconds.")
        busy = [live.worker for live in self._lifecycle.assigned()]
        return min(slots, key=busy.count)
