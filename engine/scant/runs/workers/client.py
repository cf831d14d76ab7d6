"""The server's side of the workers: sends attempts out, passes on wishes, takes in messages."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import psutil
from distributed import Future

from scant.errors import BadInput, Unavailable
from scant.runs.workers import answers, task
from scant.runs.workers.cluster import Cluster
from scant.runs.workers.protocol import Ended, Message

TELL_SECONDS = 2.0  # a worker that takes longer does not answer at all
LARGE = 1_000_000  # bytes of a table or checkpoint that go to a worker past the scheduler

log = logging.getLogger(__name__)


class WorkerClient:
    """One connection to the workers. What they say comes into `inbox`, in their order."""

    def __init__(self, scheduler: str | None = None, workers: int | None = None) -> None:
        self.inbox: asyncio.Queue[Message | Ended] = asyncio.Queue()
        self._scheduler = scheduler
        self._workers = workers
        self._cluster: Cluster | None = None
        self._watches: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._futures: dict[tuple[str, int], Future] = {}
        self._placed: dict[tuple[str, int], str] = {}  # workers that were sent large data
        self._present: set[str] = set()  # workers, when they were last counted
        self._leaving: set[str] = set()  # those that are being replaced: Dask counts on them still

    @property
    def connected(self) -> bool:
        return self._cluster is not None and self._cluster.connected

    @property
    def local(self) -> bool:
        return self._cluster is not None and self._cluster.local is not None

    async def connect(self) -> None:
        """Connect anew, leaving behind what there was. Raises as `Cluster.connect` does."""
        await self.close()
        self._cluster = await Cluster.connect(self._scheduler, self._workers)
        self._cluster.client.subscribe_topic(task.TOPIC, self._take)

    async def slots(self) -> dict[str, int]:
        """How many runs each worker can take, by address; empty when there is no connection."""
        if self._cluster is None or not self._cluster.connected:
            return {}
        try:
            slots = await asyncio.wait_for(self._cluster.slots(), 5.0)
        except (OSError, TimeoutError):
            return {}
        self._present = set(slots)
        return {address: count for address, count in slots.items() if address not in self._leaving}

    async def memory(self) -> int | None:
        """Bytes that the smallest worker may hold; None where that is not known or not limited."""
        if self._cluster is None or not self._cluster.connected:
            return None
        try:
            limits = await asyncio.wait_for(self._cluster.memory(), 5.0)
        except Exception as error:  # a scheduler of another version says it otherwise
            log.info("the workers' memory is not known: %s", error)
            return None
        return min(limits, default=None)

    async def cpu_seconds(self, address: str) -> float | None:
        """Processor time that a worker of this machine has used; None of any other."""
        process = self._cluster.process_of(address) if self._cluster else None
        if process is None:
            return None
        try:
            times = psutil.Process(process).cpu_times()
        except psutil.Error:
            return None
        return float(times.user + times.system)

    def begin(self, job: dict[str, Any], table: bytes | None, checkpoint: bytes | None) -> None:
        """Send an attempt out; `job` as `scant.runs.workers.task.work` takes it."""
        key = (job["run"], job["attempt"])
        watch = self._watch(self._client, key, job, [table, checkpoint])
        self._watches[key] = asyncio.create_task(watch)

    def forget(self, run: str, attempt: int) -> None:
        """Expect nothing more of an attempt."""
        watch = self._watches.pop((run, attempt), None)
        if watch is not None:
            watch.cancel()
        self._placed.pop((run, attempt), None)
        future = self._futures.pop((run, attempt), None)
        if future is not None:
            future.release()

    async def tell(self, address: str, run: str, attempt: int, wish: str | None) -> None:
        """Pass a wish to an attempt; one that is gone, with its worker or not, hears nothing."""
        telling = self._client.run(task.tell, run, attempt, wish, workers=[address])
        try:
            await asyncio.wait_for(telling, TELL_SECONDS)
        except Exception as error:  # whatever the connection died of, the watch tells of the loss
            log.info("worker %s could not be told to %s: %s", address, wish, error)

    async def renew(self, address: str, run: str, attempt: int) -> None:
        """Have a worker that fell silent in the midst of an attempt replaced, if it is ours."""
        if self.local:
            self._leaving.add(address)
        await self.tell(address, run, attempt, "abandon")
        if self.local:
            try:
                await self._client.restart_workers([address], timeout=30, raise_for_error=False)
            except Exception as error:
                log.warning("worker %s could not be replaced: %s", address, error)
            finally:
                self._leaving.discard(address)

    async def abandon(self, runs: list[str]) -> None:
        """End what an earlier server left running on a cluster that outlived it."""
        if runs and not self.local and await self.slots():
            await self._client.run(task.abandon, runs, on_error="ignore")

    async def prefetch_demo(self, address: str, study: str) -> None:
        """Have a worker make a study's demonstration; it does not wait for it. Raises as `ask`."""
        await self._on(address, answers.prefetch_demo, study)

    async def ask(self, address: str, request: dict[str, Any], model: bytes | None) -> Any:
        """Ask a fitted study on a worker.

        Returns:
            The answer, or `answers.NOT_CACHED` where the model must be sent along.

        Raises:
            BadInput: As the study raised it.
            Unavailable: The worker is gone.
        """
        kind, result = await self._on(address, answers.answer, request, model)
        if kind == "bad input":
            raise BadInput(result)
        return answers.NOT_CACHED if kind == answers.NOT_CACHED else result

    async def _on(self, address: str, function: Callable[..., Any], *given: Any) -> Any:
        """What a function gives on a worker. Raises Unavailable where the worker is gone."""
        try:
            given_back = await self._client.run(function, *given, workers=[address])
        except OSError as error:
            raise Unavailable("The worker was lost; try again in a few seconds.") from error
        return given_back[address]

    async def close(self) -> None:
        for key in list(self._watches):
            self.forget(*key)
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            try:
                await asyncio.wait_for(cluster.close(), 10.0)
            except Exception as error:
                log.warning("the workers did not close in order: %s", error)

    @property
    def _client(self) -> Any:
        if self._cluster is None:
            raise Unavailable("No worker is up at the moment; try again in a few seconds.")
        return self._cluster.client

    def _take(self, event: tuple[float, dict[str, Any]]) -> None:
        self.inbox.put_nowait(Message(**event[1]))

    async def _work(
        self, client: Any, key: tuple[str, int], job: dict[str, Any], inputs: list[bytes | None]
    ) -> str:
        """Submit an attempt and wait for its end; return what it died of, or "".

        A task carries its arguments through the scheduler, which keeps them for as long as it
        lives. Large ones go to the worker ahead of the task; the task follows its data there.
        """
        given: list[Any] = inputs
        if any(len(data) > LARGE for data in inputs if data is not None):
            address = await self._place(client, key)
            sent = await client.scatter(
                [data or b"" for data in inputs], workers=[address], hash=False
            )
            given = [None if data is None else held for data, held in zip(inputs, sent)]
        where: dict[str, Any] = {}
        if self._leaving and (staying := self._present - self._leaving):
            # A worker that fell silent dies with whatever it is given until it is replaced.
            where = {"workers": sorted(staying), "allow_other_workers": True}
        future = client.submit(
            task.work, json.dumps(job), *given, pure=False, key=_name(key), **where
        )
        self._futures[key] = future
        # Its result is None. Fetching it fails, with an error in the log, where the last event of
        # the attempt comes first and the future is released meanwhile.
        lost = await future.exception()
        if future.cancelled():
            return "its task was cancelled"
        return "" if lost is None else f"{type(lost).__name__}: {lost}"

    async def _place(self, client: Any, key: tuple[str, int]) -> str:
        """The worker with the fewest tasks, counting those that are on their way.

        Raises:
            Unavailable: There is none.
        """
        every: dict[str, set[str]] = {a: set(t) for a, t in (await client.processing()).items()}
        tasks = {a: t for a, t in every.items() if a not in self._leaving} or every
        if not tasks:
            raise Unavailable("No worker is up at the moment; try again in a few seconds.")
        for other, address in self._placed.items():
            tasks.get(address, set()).add(_name(other))
        address = self._placed[key] = min(tasks, key=lambda worker: len(tasks[worker]))
        return address

    async def _watch(
        self, client: Any, key: tuple[str, int], job: dict[str, Any], inputs: list[bytes | None]
    ) -> None:
        try:
            error = await self._work(client, key, job, inputs)
        except Exception as lost:
            error = f"{type(lost).__name__}: {lost}"
        self._placed.pop(key, None)
        self.inbox.put_nowait(Ended(*key, error))


def _name(key: tuple[str, int]) -> str:
    """An attempt's name among Dask's tasks."""
    return f"{key[0]}-{key[1]}"
