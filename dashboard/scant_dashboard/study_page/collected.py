"""Updates of a page for news that come faster than it is to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
from bokeh.document import Document


class Collected:
    """Calls `show` on the session's document, once for all news of some milliseconds.

    Calling an object of this class announces news; it may be called on no document.

    Args:
        turn: Calls a function on the session's document as soon as it is free.
        doc: The session's document.
        milliseconds: Time for which news are collected.
        show: Updates the page.
    """

    def __init__(
        self,
        turn: Callable[[Callable[[], Any]], None],
        doc: Document,
        milliseconds: int,
        show: Callable[[], None],
    ) -> None:
        self._turn, self._doc, self._milliseconds, self._show = turn, doc, milliseconds, show
        self._waiting = False

    def __call__(self) -> None:
        """Schedule an update, unless one is scheduled."""
        if not self._waiting:
            self._waiting = True
            self._turn(lambda: self._doc.add_timeout_callback(self._later, self._milliseconds))

    def _later(self) -> None:
        self._waiting = False
        with pn.io.hold(self._doc):
            self._show()
