"""A run service whose desk only notes what it is told, for tests that play the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from scant.events import Checkpoint, Event, Progress, Started, State, encode
from scant.runs import RunService
from scant.runs.worker_client import Ended, Message
from scant.store import Store


class PaperDesk:
    """A desk with one worker that does nothing of itself."""

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

    def forget(self, run: str, attempt: int) -> None: ...

    def say(self, *events: Event) -> None:
        """Let the worker say something of the attempt that it has."""
        job = self.begun[-1]
        self.inbox.put_nowait(Message(job["run"], job["attempt"], "worker", encode(events)))


def service(url: str) -> tuple[RunService, PaperDesk]:
    made, desk = RunService(Store.open(url)), PaperDesk()
    made._desk = desk  # type: ignore[assignment]
    return made, desk


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.01)


async def running(url: str) -> tuple[RunService, PaperDesk, str]:
    """A server that trains a run, at step 1, with a checkpoint."""
    first, desk = service(url)
    await first.start()
    run = await first.submit("toy", {}, "demo", "ada")
    await until(lambda: desk.begun)
    desk.say(Started("cpu", 40), Progress(1, -1.0, 0.1, -1.0, -1.0), Checkpoint(1, b"one"))
    await until(lambda: first.store.run(run).state is State.RUNNING)
    return first, desk, run
