"""Background tasks of the run service, which end with the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from scant.store import StoreTrouble, TakenOver

log = logging.getLogger(__name__)


class Background:
    """Set of tasks on the event loop of the server.

    Attributes:
        closing: True if the server is closing, and tasks should start no further work.
    """

    def __init__(self) -> None:
        self.closing = False
        self._tasks: set[asyncio.Task[None]] = set()  # unreferenced tasks may be garbage collected

    def hold(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task; the caller handles its failure."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task whose failure is logged."""
        self.hold(work).add_done_callback(_log_failure)

    async def cancel(self) -> None:
        """Cancel all tasks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:  # with a timeout, since `wait_for` may swallow a cancellation
            await asyncio.wait(tasks, timeout=1.0)


def _log_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(
        error, StoreTrouble | TakenOver
    ):  # the server is closing, or another one has the run
        log.info("a background task was refused: %s", error)
    elif error is not None:
        log.error("a background task failed", exc_info=error)
