"""Work in the background of a page, whose results come on the page's document."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any

import panel as pn

from scant.errors import BadInput, NotAllowed, NotFound, Unavailable
from scant_dashboard.engine_text import translated
from scant_dashboard.translate import later, tr

FAULT = later("An error occurred; the server's log has the reason.")

log = logging.getLogger(__name__)


class Background:
    """Background work of one session; refusals become sentences, and faults are logged.

    Args:
        turn: Calls functions on the session's document, as `on_document`.
        say: Shows a sentence as an error.
    """

    def __init__(self, turn: Callable[..., None], say: Callable[[str], None]) -> None:
        self._turn, self._say = turn, say
        self._tasks: set[asyncio.Task[None]] = set()

    def start(
        self,
        work: Coroutine[Any, Any, Any],
        then: Callable[[Any], None],
        refused: Callable[[str], None] | None = None,
        last: Callable[[], None] = lambda: None,
    ) -> None:
        """Do some work, then call `then` with its result, or `refused` with a sentence.

        Args:
            work: The work.
            then: Called with the result.
            refused: Called with the sentence of a refusal; by default it is shown.
            last: Called afterwards in any case.
        """

        async def do() -> None:
            try:
                result = await work
                end = partial(then, result)
            except (BadInput, NotAllowed, NotFound, Unavailable) as error:
                end = partial(_refuse, refused or self._say, str(error))
            except Exception:
                log.exception("work for a page failed")
                end = partial(self._say, tr(FAULT))
            self._turn(end, last)

        # In an empty context: objects that outlive the work, such as connections to workers, would
        # keep a reference to the document.
        task = asyncio.get_running_loop().create_task(do(), context=Context())
        self._tasks.add(task)  # the loop has only a weak reference
        task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        """Wait for all background work, including work started by it."""
        while self._tasks:
            await asyncio.wait(self._tasks)
            await asyncio.sleep(0)  # let their callbacks run


def _refuse(say: Callable[[str], None], sentence: str) -> None:
    say(translated(sentence))  # on the document, which has a language


def on_document(document: Any, say: Callable[[str], None], *acts: Callable[[], None]) -> None:
    """Call functions on a session's document as soon as it is free.

    Args:
        document: The session's document.
        say: Shows a sentence as an error, of a function that fails.
        *acts: The functions.
    """

    def act() -> None:
        with pn.io.hold(document):
            for one in acts:
                try:
                    one()
                except Exception:
                    log.exception("what came for a page could not be shown")
                    say(tr(FAULT))

    with contextlib.suppress(AttributeError):  # the session is gone
        document.add_next_tick_callback(act)
