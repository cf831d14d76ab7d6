"""A run service whose client only notes what it is told, for tests that play the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from scant.events import Checkpoint, Event, Progress, Started, State, encode
from scant.runs import RunService
from scant.runs.workers.protocol import Ended, Message
from scant.store import Store


class FakeWorkerClient:
    """A client with one worker that does nothing of itself."""

    connected, local = True, False

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[Message | Ended] = asyncio.Queue()
        self.begun: list[dict[str, Any]] = []
        self.checkpoints: list[bytes | None] = []
        self.told: list[tuple[str, str | None]] = []
        self.abandoned: list[str] = []

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    async def slots(self) -> dict[str, int]:
        return {"worker": 1}

    def begin(self, job: dict[str, Any], table: bytes | None, checkpoint: bytes | None) -> None:
        self.begun.append(job)
        self.checkpoints.append(checkpoint)

    async def tell(self, address: str, run: str, attempt: int, wish: str | None) -> None:
        self.told.append((run, wish))

    async def abandon(self, runs: list[str]) -> None:
        self.abandoned += runs

    async def memory(self) -> int | None:
        return None

    async def cpu_seconds(self, address: str) -> float | None:
        return None

    async def renew(self, address: str, run: str, attempt: int) -> None: ...

    async def prefetch_demo(self, address: str, study: str) -> None: ...

    async def ask(self, address: str, request: dict[str, Any], model: bytes | None) -> Any: ...

    def forget(self, run: str, attempt: int) -> None: ...

    def say(self, *events: Event) -> None:
        """Let the worker say something of the attempt that it has."""
        job = self.begun[-1]
        self.inbox.put_nowait(Message(job["run"], job["attempt"], "worker", encode(events)))


def service(url: str) -> tuple[RunService, FakeWorkerClient]:
    client = FakeWorkerClient()
    return RunService(Store.open(url), client=client), client


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.01)


async def running(url: str) -> tuple[RunService, FakeWorkerClient, str]:
    """A server that trains a run, at step 1, with a checkpoint."""
    first, client = service(url)
    await first.start()
    run = await first.submit("toy", {}, "demo", "ada")
    await until(lambda: client.begun)
    client.say(Started("cpu", 40), Progress(1, -1.0, 0.1, -1.0, -1.0), Checkpoint(1, b"one"))
    await until(lambda: first.store.run(run).state is State.RUNNING)
    return first, client, run
