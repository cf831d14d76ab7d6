"""Locks of runs, and actions of visitors with a limited waiting time."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any
from weakref import WeakValueDictionary

from scant.errors import Unavailable
from scant.runs.background import Background
from scant.runs.store_writer import ANSWER_SECONDS, StoreWriter
from scant.store import StoreTrouble, TakenOver

ACT_SECONDS = ANSWER_SECONDS + 2.0  # longer than the query with which an action begins
LATER = (
    "The server is waiting for its database; your request is carried out as soon as the database "
    "answers, and this page then shows it."
)

log = logging.getLogger(__name__)


class Turns:
    """Locks of runs, held from a decision on a run until it is stored."""

    def __init__(self, writer: StoreWriter, background: Background) -> None:
        self._writer = writer
        self._background = background
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, run: str) -> asyncio.Lock:
        """Return the lock of a run."""
        lock = self._locks.get(run)
        if lock is None:
            lock = self._locks[run] = asyncio.Lock()
        return lock

    async def act(self, run: str, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run an action of a visitor with the lock of the run, and wait for some seconds.

        Raises:
            StoreTrouble: The database is not available, and nothing was done.
            Unavailable: The action continues in the background (`LATER`), or another server has
                taken over the run.
        """
        if self._writer.trouble:
            raise StoreTrouble(self._writer.trouble)

        async def locked_act() -> None:
            async with self.of(run):
                await act()

        task = self._background.hold(locked_act())
        done, _ = await asyncio.wait({task}, timeout=ACT_SECONDS)
        if not done:
            task.add_done_callback(functools.partial(_log_failure, run))
            raise Unavailable(LATER)
        try:
            task.result()
        except TakenOver:
            raise Unavailable(
                "Another server is handling this run now; try again in a second."
            ) from None


def _log_failure(run: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("an act on run %s that nobody waits for any more failed: %s", run, error)
