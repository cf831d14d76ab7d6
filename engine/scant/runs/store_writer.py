"""Queue of the database calls of the run service.

Calls that must succeed are repeated in order, so nothing is lost while the database is locked, full
or not reachable. Calls that a visitor waits for are tried once, within seconds.
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

FIRST_PAUSE = 0.1  # seconds before the first retry, doubled for each further retry …
LAST_PAUSE = 2.0  # … up to this
SLOW_SECONDS = 5.0  # time of a transaction after which the database counts as silent
ANSWER_SECONDS = 4.0  # maximum time that a visitor waits

T = TypeVar("T")
log = logging.getLogger(__name__)


class StoreWriter:
    """Sequential calls of the store in a separate thread, for one event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "store")
        self._line = asyncio.Lock()  # fair: first come, first served
        self._trouble = ""
        self._since = 0.0  # start of the trouble, by monotonic clock
        self._began: float | None = None  # start of the current call; None without a call
        self._closing = False

    @property
    def trouble(self) -> str:
        """Reason why nothing can be stored at the moment; "" if all is well."""
        if self._trouble:
            return self._trouble
        slow = self._began is not None and time.monotonic() - self._began > SLOW_SECONDS
        return SILENT if slow else ""

    async def do(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call the store in order, with retries until the database accepts it.

        Raises:
            StoreTrouble: The writer is closing.
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
        """Call the store in order, once, and wait for at most `ANSWER_SECONDS`.

        Raises:
            StoreTrouble: The database is not available. A call that has not started is cancelled; a
                call that has started may still succeed.
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
        task.add_done_callback(_log_error)
        raise StoreTrouble(self.trouble or SILENT)

    async def close(self, patience: float) -> None:
        """Stop all retries and end the thread when it is idle, or after `patience` seconds."""
        self._closing = True
        deadline = time.monotonic() + patience
        while self._began is not None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self._thread.shutdown(wait=False)

    def give_up(self) -> None:
        """Stop all retries, since the server is closing."""
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
            reason = trouble_of(error)
            if not reason:
                self._recover()  # the database answered
                raise
            if not self._trouble:
                self._since = self._began
                log.warning("nothing can be stored: %s; what there is to store waits", reason)
            self._trouble = reason
            raise StoreTrouble(reason) from error
        finally:
            self._began = None
        self._recover()
        return result

    def _recover(self) -> None:
        if self._trouble:
            log.warning("the database is back after %.1f s", time.monotonic() - self._since)
            self._trouble = ""


def _log_error(task: asyncio.Task[Any]) -> None:
    """Log the failure of a call that is no longer awaited."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.info("a call of the store that was not waited for failed: %s", error)
