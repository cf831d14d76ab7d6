"""Work of the run service that nobody waits for; it ends with the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from scant.store import StoreTrouble, TakenOver

log = logging.getLogger(__name__)


class Background:
    """Tasks on the server's event loop.

    Attributes:
        closing: The server closes: what goes on by itself begins nothing more.
    """

    def __init__(self) -> None:
        self.closing = False
        self._tasks: set[asyncio.Task[None]] = set()  # a task that nobody holds may vanish

    def hold(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done whose failure the caller heeds."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done; its failure is logged."""
        self.hold(work).add_done_callback(_log_failure)

    async def cancel(self) -> None:
        """End all of it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:  # not for ever: `wait_for` may swallow a cancellation
            await asyncio.wait(tasks, timeout=1.0)


def _log_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, StoreTrouble | TakenOver):  # the server closes; another one cares
        log.info("a background task was refused: %s", error)
    elif error is not None:
        log.error("a background task failed", exc_info=error)
