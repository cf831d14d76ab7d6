"""One line in which everything waits that the run service has to do with its database.

What must be stored is tried again until it is, in its order: a database that is locked, full or
gone for a while costs no step. What a visitor waits for is tried once and within seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from scant.store.trouble import SILENT, StoreTrouble, trouble_of

FIRST_PAUSE = 0.1  # seconds before the first repetition; each further pause is twice as long …
LAST_PAUSE = 2.0  # … up to this
SLOW_SECONDS = 5.0  # a database that takes longer for one transaction does not answer
ANSWER_SECONDS = 4.0  # that a visitor waits at most

T = TypeVar("T")
log = logging.getLogger(__name__)


class StoreWriter:
    """Calls of the store, one at a time, in a thread of their own; used on one event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "store")
        self._line = asyncio.Lock()  # who came first is served first
        self._trouble = ""
        self._since = 0.0  # when the trouble began, by the monotonic clock
        self._began: float | None = None  # when the call in the thread began; None: there is none
        self._closing = False

    @property
    def trouble(self) -> str:
        """Why nothing can be stored at the moment, in half a sentence; "" while all is well."""
        if self._trouble:
            return self._trouble
        slow = self._began is not None and time.monotonic() - self._began > SLOW_SECONDS
        return SILENT if slow else ""

    async def do(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call the store in turn, again and again until the database takes it.

        Raises:
            StoreTrouble: Only once the writer is closing.
        """
        async with self._line:
            pause = FIRST_PAUSE
            while True:
                try:
                    return await self._call(partial(call, *args, **named))
                except StoreTrouble:
                    if self._closing:
                        raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE)

    async def promptly(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call the store in turn, once, for somebody who waits for `ANSWER_SECONDS` at most.

        Raises:
            StoreTrouble: The database is in trouble. What had not begun by then is not done; what
                had begun may be (where a database fell silent in the midst of it).
        """
        if self.trouble:
            raise StoreTrouble(self.trouble)
        begun = asyncio.Event()
        task = asyncio.create_task(self._once(begun, partial(call, *args, **named)))
        done, _ = await asyncio.wait({task}, timeout=ANSWER_SECONDS)
        if done:
            return task.result()
        if not begun.is_set():
            task.cancel()
        task.add_done_callback(_heed)
        raise StoreTrouble(self.trouble or SILENT)

    async def close(self, patience: float) -> None:
        """Try nothing again from now on, and end the thread when it is idle, or after a while."""
        self._closing = True
        deadline = time.monotonic() + patience
        while self._began is not None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self._thread.shutdown(wait=False)

    def give_up(self) -> None:
        """Try nothing again from now on: the server closes."""
        self._closing = True

    async def _once(self, begun: asyncio.Event, call: Callable[[], T]) -> T:
        async with self._line:
            begun.set()
            return await self._call(call)

    async def _call(self, call: Callable[[], T]) -> T:
        self._began = time.monotonic()
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except Exception as error:
            why = trouble_of(error)
            if not why:
                self._recover()  # the database has answered
                raise
            if not self._trouble:
                self._since = self._began
                log.warning("nothing can be stored: %s; what there is to store waits", why)
            self._trouble = why
            raise StoreTrouble(why) from error
        finally:
            self._began = None
        self._recover()
        return result

    def _recover(self) -> None:
        if self._trouble:
            log.warning("the database is back after %.1f s", time.monotonic() - self._since)
            self._trouble = ""


def _heed(task: asyncio.Task[Any]) -> None:
    """Take note of what became of a call that nobody waits for any more."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.info("a call of the store that was not waited for failed: %s", error)
