"""What the run service and the workers have to say to each other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Message:
    """What a worker said of an attempt: encoded events, none for a mere sign of life.

    Attributes:
        resident: Bytes of memory that the worker holds.
        memory: Bytes that it may hold; 0 for no limit.
        heeded: Whether the training loop has taken the wish to pause or stop.
    """

    run: str
    attempt: int
    worker: str
    events: bytes
    data_hash: str = ""
    resident: int = 0
    memory: int = 0
    heeded: bool = False


@dataclass(frozen=True)
class Ended:
    """An attempt's task is over; `error` where it ended otherwise than by returning."""

    run: str
    attempt: int
    error: str = ""


@runtime_checkable
class Workers(Protocol):
    """What the run service needs of the workers (see `scant.runs.workers.client.WorkerClient`)."""

    inbox: asyncio.Queue[Message | Ended]

    @property
    def connected(self) -> bool:
        """Whether there is a connection to a cluster."""

    @property
    def local(self) -> bool:
        """Whether the workers are processes of this server."""

    async def connect(self) -> None:
        """Connect anew, leaving behind what there was."""

    async def close(self) -> None:
        """Let the workers go."""

    async def slots(self) -> dict[str, int]:
        """How many runs each worker can take, by address; empty when there is no connection."""

    async def memory(self) -> int | None:
        """Bytes that the smallest worker may hold; None where that is not known or not limited."""

    async def cpu_seconds(self, address: str) -> float | None:
        """Processor time that a worker's process has used; None where that is not known."""

    def begin(self, job: dict[str, Any], table: bytes | None, checkpoint: bytes | None) -> None:
        """Send an attempt out."""

    def forget(self, run: str, attempt: int) -> None:
        """Expect nothing more of an attempt."""

    async def tell(self, address: str, run: str, attempt: int, wish: str | None) -> None:
        """Pass a wish to an attempt."""

    async def renew(self, address: str, run: str, attempt: int) -> None:
        """Have a worker that fell silent in the midst of an attempt replaced, if it is ours."""

    async def abandon(self, runs: list[str]) -> None:
        """End what an earlier server left running on a cluster that outlived it."""

    async def prefetch_demo(self, address: str, study: str) -> None:
        """Have a worker make a study's demonstration."""

    async def ask(self, address: str, request: dict[str, Any], model: bytes | None) -> Any:
        """Ask a fitted study on a worker."""
