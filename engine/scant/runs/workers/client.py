"""Client of the workers: sends attempts and requests, and receives messages."""

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

TELL_SECONDS = 2.0  # timeout of a request to a worker
LARGE = 1_000_000  # bytes of a table or checkpoint that is sent to a worker directly

log = logging.getLogger(__name__)


class WorkerClient:
    """Connection to the workers; their messages arrive in `inbox` in order."""

    def __init__(self, scheduler: str | None = None, workers: int | None = None) -> None:
        self.inbox: asyncio.Queue[Message | Ended] = asyncio.Queue()
        self._scheduler = scheduler
        self._workers = workers
        self._cluster: Cluster | None = None
        self._watches: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._futures: dict[tuple[str, int], Future] = {}
        self._placed: dict[
            tuple[str, int], str
        ] = {}  # workers that received large data, by attempt
        self._present: set[str] = set()  # workers at the last check
        self._leaving: set[str] = set()  # workers being replaced, to which Dask still assigns tasks

    @property
    def connected(self) -> bool:
        return self._cluster is not None and self._cluster.connected

    @property
    def local(self) -> bool:
        return self._cluster is not None and self._cluster.local is not None

    async def connect(self) -> None:
        """Close the connection and open a new one. Raises as `Cluster.connect` does."""
        await self.close()
        self._cluster = await Cluster.connect(self._scheduler, self._workers)
        self._cluster.client.subscribe_topic(task.TOPIC, self._take)

    async def slots(self) -> dict[str, int]:
        """Return the capacity for runs of each worker by address; empty if not connected."""
        if self._cluster is None or not self._cluster.connected:
            return {}
        try:
            slots = await asyncio.wait_for(self._cluster.slots(), 5.0)
        except (OSError, TimeoutError):
            return {}
        self._present = set(slots)
        return {address: count for address, count in slots.items() if address not in self._leaving}

    async def memory(self) -> int | None:
        """Return the smallest memory limit of workers in bytes; None if unknown or unlimited."""
        if self._cluster is None or not self._cluster.connected:
            return None
        try:
            limits = await asyncio.wait_for(self._cluster.memory(), 5.0)
        except Exception as error:  # a scheduler of another version has other fields
            log.info("the workers' memory is not known: %s", error)
            return None
        return min(limits, default=None)

    async def cpu_seconds(self, address: str) -> float | None:
        """Return the CPU time of a worker on this machine in seconds; None for others."""
        process = self._cluster.process_of(address) if self._cluster else None
        if process is None:
            return None
        try:
            times = psutil.Process(process).cpu_times()
        except psutil.Error:
            return None
        return float(times.user + times.system)

    def begin(self, job: dict[str, Any], table: bytes | None, checkpoint: bytes | None) -> None:
        """Submit an attempt; `job` as in `scant.runs.workers.task.work`."""
        key = (job["run"], job["attempt"])
        watch = self._watch(self._client, key, job, [table, checkpoint])
        self._watches[key] = asyncio.create_task(watch)

    def forget(self, run: str, attempt: int) -> None:
        """Drop an attempt and ignore its messages."""
        watch = self._watches.pop((run, attempt), None)
        if watch is not None:
            watch.cancel()
        self._placed.pop((run, attempt), None)
        future = self._futures.pop((run, attempt), None)
        if future is not None:
            future.release()

    async def tell(self, address: str, run: str, attempt: int, wish: str | None) -> None:
        """Send a request to an attempt; no effect if it has ended."""
        telling = self._client.run(task.tell, run, attempt, wish, workers=[address])
        try:
            await asyncio.wait_for(telling, TELL_SECONDS)
        except Exception as error:  # the loss of the worker is reported by `_watch`
            log.info("worker %s could not be told to %s: %s", address, wish, error)

    async def renew(self, address: str, run: str, attempt: int) -> None:
        """Replace a silent worker with an attempt, if it is local."""
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
        """End runs of an earlier server on an external cluster."""
        if runs and not self.local and await self.slots():
            await self._client.run(task.abandon, runs, on_error="ignore")

    async def prefetch_demo(self, address: str, study: str) -> None:
        """Start the generation of example data on a worker. Raises as `ask` does."""
        await self._on(address, answers.prefetch_demo, study)

    async def ask(self, address: str, request: dict[str, Any], model: bytes | None) -> Any:
        """Query a fitted study on a worker.

        Returns:
            Answer, or `answers.NOT_CACHED` if the model is required.

        Raises:
            BadInput: The study rejected the request.
            Unavailable: The worker is lost.
        """
        kind, result = await self._on(address, answers.answer, request, model)
        if kind == "bad input":
            raise BadInput(result)
        return answers.NOT_CACHED if kind == answers.NOT_CACHED else result

    async def _on(self, address: str, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function on a worker. Raises Unavailable if the worker is lost."""
        try:
            results = await self._client.run(function, *given, workers=[address])
        except OSError as error:
            raise Unavailable("The worker was lost; try again in a few seconds.") from error
        return results[address]

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

        The scheduler keeps the arguments of a task in memory. Large ones are therefore scattered to
        a worker first, and the task follows its data there.
        """
        given: list[Any] = inputs
        if any(len(data) > LARGE for data in inputs if data is not None):
            address = await self._choose_worker(client, key)
            sent = await client.scatter(
                [data or b"" for data in inputs], workers=[address], hash=False
            )
            given = [None if data is None else held for data, held in zip(inputs, sent)]
        where: dict[str, Any] = {}
        if self._leaving and (staying := self._present - self._leaving):
            # A silent worker must not get tasks before it is replaced.
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
        return "" if lost is None else _reason(key, lost)

    async def _choose_worker(self, client: Any, key: tuple[str, int]) -> str:
        """Choose the worker with the fewest tasks, including those being sent.

        Raises:
            Unavailable: There is no worker.
        """
        all_tasks: dict[str, set[str]] = {a: set(t) for a, t in (await client.processing()).items()}
        tasks = {a: t for a, t in all_tasks.items() if a not in self._leaving} or all_tasks
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
            error = _reason(key, lost)
        self._placed.pop(key, None)
        self.inbox.put_nowait(Ended(*key, error))


def _reason(key: tuple[str, int], error: BaseException) -> str:
    """Log an error of Dask, and return why the attempt was lost, without names of classes."""
    if isinstance(error, Unavailable):
        return str(error).rstrip(".")
    log.warning("the task of run %s was lost: %s: %s", key[0], type(error).__name__, error)
    return "the process died or could not be reached"


def _name(key: tuple[str, int]) -> str:
    """Return the Dask key of an attempt."""
    return f"{key[0]}-{key[1]}"
