"""Scheduler, nanny and worker of Dask without web servers.

Their HTTP servers would show runs to all users of this machine, and Dask has no setting to disable
them. Communication between the nodes uses TLS.
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
    """Scheduler without web server."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Do not listen."""


class QuietWorker(Worker):
    """Worker without web server."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Do not listen."""


class QuietNanny(Nanny):
    """Nanny of a `QuietWorker`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{**named, "worker_class": QuietWorker})

    async def kill(self, timeout: float = 5, reason: str = "nanny-kill") -> None:
        """Kill the worker process, without a graceful shutdown if the server is closing.

        All events are stored by then. A worker within a training step would not end in time, and
        Dask would log warnings.
        """
        worker_process = self.process
        running = (
            worker_process.process
            if worker_process and worker_process.status is Status.running
            else None
        )
        if self.status is Status.closing and worker_process and running:
            await running.kill()
            await worker_process.stopped.wait()
        await super().kill(timeout, reason)
