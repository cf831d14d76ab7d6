"""Messages between the run service and the workers, and the protocol of clients."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Message:
    """Message of a worker on an attempt, with encoded events or none for a heartbeat.

    Attributes:
        run: Id of the run.
        attempt: Number of the attempt.
        worker: Address of the worker.
        events: Encoded events.
        data_hash: Hash of the training data.
        resident: Memory use of the worker in bytes.
        memory: Memory limit in bytes; 0 for no limit.
        heeded: True if the training loop has received the request to pause or stop.
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
    """End of the task of an attempt, with `error` if it did not return normally."""

    run: str
    attempt: int
    error: str = ""


@runtime_checkable
class Workers(Protocol):
    """Protocol of clients for workers, such as `scant.runs.workers.client.WorkerClient`."""

    inbox: asyncio.Queue[Message | Ended]

    @property
    def connected(self) -> bool:
        """True if connected to a cluster."""

    @property
    def local(self) -> bool:
        """True if the workers are processes of this server."""

    async def connect(self) -> None:
        """Close the connection and open a new one."""

    async def close(self) -> None:
        """Close the connection."""

    async def slots(self) -> dict[str, int]:
        """Return the capacity for runs of each worker by address; empty if not connected."""

    async def memory(self) -> int | None:
        """Return the smallest memory limit of workers in bytes; None if unknown or unlimited."""

    async def cpu_seconds(self, address: str) -> float | None:
        """Return the CPU time of a worker in seconds; None if unknown."""

    def begin(self, job: dict[str, Any], table: bytes | None, checkpoint: bytes | None) -> None:
        """Submit an attempt."""

    def forget(self, run: str, attempt: int) -> None:
        """Drop an attempt and ignore its messages."""

    async def tell(self, address: str, run: str, attempt: int, wish: str | None) -> None:
        """Send a request to an attempt."""

    async def renew(self, address: str, run: str, attempt: int) -> None:
        """Replace a silent worker with an attempt, if it is local."""

    async def abandon(self, runs: list[str]) -> None:
        """End runs of an earlier server on an external cluster."""

    async def prefetch_demo(self, address: str, study: str) -> None:
        """Start the generation of example data on a worker."""

    async def ask(self, address: str, request: dict[str, Any], model: bytes | None) -> Any:
        """Query a fitted study on a worker."""
