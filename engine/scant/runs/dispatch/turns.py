"""One decision over a run at a time, and visitors answered in seconds whatever the store does."""

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

ACT_SECONDS = ANSWER_SECONDS + 2.0  # longer than the question for the run with which it begins
LATER = (
    "The server is waiting for its database; what you asked for is done as soon as that answers, "
    "and this page then shows it."
)

log = logging.getLogger(__name__)


class Turns:
    """Locks of runs, held by whoever decides over one until what was decided is put down."""

    def __init__(self, writer: StoreWriter, background: Background) -> None:
        self._writer = writer
        self._background = background
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, run: str) -> asyncio.Lock:
        """The lock of a run."""
        lock = self._locks.get(run)
        if lock is None:
            lock = self._locks[run] = asyncio.Lock()
        return lock

    async def act(self, run: str, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have a visitor's act on a run done in its turn; they wait for seconds at most.

        Raises:
            StoreTrouble: The database is known to be in trouble, and nothing is done.
            Unavailable: The act was begun and is done, however long it takes (`LATER`); or another
                server has taken the run over.
        """
        if self._writer.trouble:
            raise StoreTrouble(self._writer.trouble)

        async def whole() -> None:
            async with self.of(run):
                await act()

        task = self._background.hold(whole())
        done, _ = await asyncio.wait({task}, timeout=ACT_SECONDS)
        if not done:
            task.add_done_callback(functools.partial(_log_failure, run))
            raise Unavailable(LATER)
        try:
            task.result()
        except TakenOver:
            raise Unavailable("Another server runs it now; try again in a second.") from None


def _log_failure(run: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("an act on run %s that nobody waits for any more failed: %s", run, error)
