"""Dask's scheduler, nanny and worker without their web servers.

Each of them would listen for HTTP on a port of its own, and tell anybody on this machine who asks
what runs there are; Dask has no setting for it. What they have to say to each other goes over TLS.
"""

from __future__ import annotations

import logging
from typing import Any

from distributed import Nanny, Scheduler, Status, Worker

# The service logs the loss of a worker itself, once, with the run. Dask adds an error for every
# message that no longer reaches the worker, and a warning for each task that ends with it.
_OF_LOST_WORKERS = ("broadcast to ", "Async instruction for ")


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_OF_LOST_WORKERS)


for _name in ("distributed.scheduler", "distributed.worker.state_machine"):
    logging.getLogger(_name).addFilter(_is_news)


class QuietScheduler(Scheduler):
    """A scheduler without pages."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Do not listen."""


class QuietWorker(Worker):
    """A worker without pages."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Do not listen."""


class QuietNanny(Nanny):
    """The keeper of a quiet worker's process."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{**named, "worker_class": QuietWorker})

    async def kill(self, timeout: float = 5, reason: str = "nanny-kill") -> None:
        """End the worker's process; without asking it first where the server closes.

        By then all that it had to say is stored. A worker in the midst of a step would not end by
        itself within any time, and Dask would warn of it, and of what it had begun.
        """
        keeper = self.process
        running = keeper.process if keeper and keeper.status is Status.running else None
        if self.status is Status.closing and keeper and running:
            await running.kill()
            await keeper.stopped.wait()
        await super().kill(timeout, reason)
