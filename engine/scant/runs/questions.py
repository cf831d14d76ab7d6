"""Questions to the fitted models of runs, answered by workers beside what they train."""

from __future__ import annotations

import asyncio
from typing import Any

from scant.errors import NotFound, Unavailable
from scant.runs.dispatch.dispatcher import Dispatcher
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.workers.answers import NOT_CACHED
from scant.store import RunRecord, StoreTrouble
from scant.studies import entry

PATIENCE = 15.0  # seconds that a question waits for a worker: a lost one is replaced in five


class Questions:
    """Asks the worker that has a model warm, or the least busy one."""

    def __init__(self, care: Lifecycle, dispatcher: Dispatcher) -> None:
        self._care = care
        self._pool, self._warm = dispatcher.pool, dispatcher.warm
        self._prefetched: set[str] = set()

    async def ask(self, run: str, request: dict[str, Any]) -> Any:
        """Ask the model of a finished run.

        Args:
            run: The run.
            request: As `workers.answers.answer` takes it, but for the run, which is added.

        Raises:
            NotFound: There is no such run, or it has left no model.
            BadInput: As the study raised it.
            Unavailable: No worker is up, nor has one come up for a while.
        """
        record = await asyncio.to_thread(self._care.journal.store.run, run)
        request |= {"run": run, "study": record.study, "settings": dict(record.settings)}
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                return await self._answer(record, request)
            except StoreTrouble:
                raise  # it is not the worker that is wanting
            except Unavailable:
                if asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(0.2)

    def prefetch_demo(self, study: str) -> None:
        """Have a study's demonstration made, in the background; once a server.

        Where no worker is up, it is left to the run, or to the next who asks.
        """
        if study in self._prefetched or not entry(study).sources[0].kept:
            return
        self._prefetched.add(study)
        self._care.background.spawn(self._prefetch_demo(study))

    async def _prefetch_demo(self, study: str) -> None:
        try:
            await self._care.client.prefetch_demo(self._choose(""), study)
        except Unavailable:
            self._prefetched.discard(study)

    async def _answer(self, record: RunRecord, request: dict[str, Any]) -> Any:
        run, client, address = record.id, self._care.client, self._choose(record.id)
        try:
            answer = await client.ask(address, request, None) if self._warm.worker(run) else None
            if answer is None or (isinstance(answer, str) and answer == NOT_CACHED):
                model = await asyncio.to_thread(self._care.journal.store.model, run)
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
        busy = [live.worker for live in self._care.assigned()]
        return min(slots, key=busy.count)
