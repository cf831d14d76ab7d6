"""Sending patches to the browser: each once, before it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from scant_dashboard.controls.labeling_widget import LabelingWidget, card
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.pages.clamp.progress import Answer

HELD = 150  # patches that the browser keeps at least
AT_ONCE = 12  # patches per query


class PatchSender:
    """Sends the widget's browser the patches of a run that it lacks.

    Attributes:
        run: The run; None if there is none.
    """

    def __init__(self, page: PageContext, widget: LabelingWidget) -> None:
        self._page, self._widget = page, widget
        self.run: RunState | None = None
        self._sent: dict[int, None] = {}  # rows that the browser holds, in order of sending
        self._fetching: set[int] = set()

    def open(self, run: RunState | None) -> None:
        """Set the run whose patches are sent."""
        self.run = run
        self._sent, self._fetching = {}, set()

    def reset(self) -> None:
        """Mark all patches as not sent, because the browser has discarded them."""
        self._sent.clear()

    def send(
        self, rows: Sequence[int], done: Callable[[], None] = lambda: None, again: bool = False
    ) -> None:
        """Send patches that were not sent yet, then call `done`.

        Args:
            rows: Rows of the pool.
            done: Called once the patches are sent.
            again: Whether to send all of them, including those sent before.
        """
        run = self.run
        if run is None:
            return
        fetching = self._fetching
        here = self._sent.keys() | fetching
        lacking = [r for r in dict.fromkeys(rows) if again or r not in here]
        lacking = lacking[:AT_ONCE]
        if not lacking:
            done()
            return
        fetching.update(lacking)

        async def fetch() -> list[dict[str, Any]]:
            try:
                answer = await self._page.service.explore(run.id, "patches", {"rows": lacking})
                return await asyncio.to_thread(_cards, run, lacking, answer)
            finally:
                fetching.difference_update(lacking)

        def received(cards: list[dict[str, Any]]) -> None:
            if self.run is run:
                held = {r: None for r in self._sent if r not in lacking} | dict.fromkeys(lacking)
                self._sent = dict.fromkeys(list(held)[-HELD:])
                self._widget.cards = cards
                done()

        self._page.background(fetch(), received)


def _cards(run: RunState, rows: Sequence[int], answer: Answer) -> list[dict[str, Any]]:
    names = [str(name) for name in run.metadata.get("columns", ())]
    return [
        card(row, answer["image"][i], answer["thumb"][i], answer["box"][i],
             list(zip(names, map(float, answer["x"][i]))))
        for i, row in enumerate(rows)
    ]  # fmt: skip
