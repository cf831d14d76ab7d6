"""Acts of visitors on a run: one at a time, and answered within seconds whatever the store does."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec

from scant.errors import Unavailable
from scant.runs.dispatcher import Dispatcher
from scant.runs.store_writer import ANSWER_SECONDS
from scant.store import StoreTrouble, TakenOver

P = ParamSpec("P")
Act = Callable[Concatenate[Any, str, P], Coroutine[Any, Any, None]]

ACT_SECONDS = ANSWER_SECONDS + 2.0  # longer than the question for the run with which it begins
LATER = (
    "The server is waiting for its database; what you asked for is done as soon as that answers, "
    "and this page then shows it."
)

log = logging.getLogger(__name__)


def in_turn(act: Act[P]) -> Act[P]:
    """Have an act on a run wait for its turn with the run, and its caller for seconds at most.

    The act raises StoreTrouble, and nothing is done, where the database is known to be in trouble.
    One that was begun is done, however long it takes; who asked then hears `LATER`.
    """

    @functools.wraps(act)
    async def acting(self: Any, run: str, *given: P.args, **named: P.kwargs) -> None:
        service: Dispatcher = self
        if service._writer.trouble:
            raise StoreTrouble(service._writer.trouble)

        async def whole() -> None:
            async with service._turn(run):
                await act(self, run, *given, **named)

        task = asyncio.create_task(whole())
        service._spawned.add(task)
        task.add_done_callback(service._spawned.discard)
        done, _ = await asyncio.wait({task}, timeout=ACT_SECONDS)
        if not done:
            task.add_done_callback(functools.partial(_log_failure, run))
            raise Unavailable(LATER)
        try:
            task.result()
        except TakenOver:
            raise Unavailable(
                "Another server has the run in its care by now; try again in a second."
            ) from None

    return acting


def _log_failure(run: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("an act on run %s that nobody waits for any more failed: %s", run, error)
