"""Views that keep an answer back until it has been guessed, with all that would give it away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import betaincinv

from scant.events import Report
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.plots.base import View

Metadata = Mapping[str, Any]
LEVEL = 0.95  # of the interval that is asked about
KEPT_BACK = "Hidden until you guess and press Reveal."


class HiddenUntilRevealed(View):
    """A view of a report, told less of it (or nothing) while a question stands.

    Args:
        page: The page that it stands on.
        view: What is shown.
        reveal: The question.
        less: What of a report the view may be told meanwhile; None: nothing, and it is not shown.
        ask: Puts the question, for every report anew; given to the first view that hears of one.
        above: Whether the question stands above this view.
    """

    def __init__(
        self,
        page: PageContext,
        view: Any,
        reveal: GuessFirst,
        less: Callable[[Report], Report] | None = None,
        ask: Callable[[GuessFirst, Report, Metadata], None] | None = None,
        above: bool = False,
    ) -> None:
        self._page, self._view, self._reveal = page, view, reveal
        self._less, self._ask = less, ask
        self._latest: tuple[Report, Metadata] | None = None
        self.title = view.title
        parts = [reveal.panel, view.panel] if above else [view.panel]
        self.panel = column(*parts, css=":host { gap: 10px; }")
        reveal.watch(self._turned)

    @property
    def alt(self) -> str:
        """The view's reading, if it may be read."""
        return KEPT_BACK if self._silent else str(self._view.alt)

    @property
    def figures(self) -> tuple[Any, ...]:
        """The view's figures."""
        return tuple(self._view.figures)

    @property
    def _silent(self) -> bool:
        return self._reveal.hidden and self._less is None

    def say(self) -> None:
        self._view.say()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self._latest = None
        self._view.clear(run)
        if self._ask is not None:
            self._reveal.ask("")

    def update(self, data: Report, metadata: Metadata) -> None:
        """Show this report, or what may be seen of it."""
        fresh = self._latest is None or self._latest[0] is not data
        self._latest = data, metadata
        if fresh and self._ask is not None:
            self._ask(self._reveal, data, metadata)
        self._show()

    def _show(self) -> None:
        if self._latest is None:
            return
        data, metadata = self._latest
        self._view.panel.visible = not self._silent
        if not self._reveal.hidden:
            self._view.update(data, metadata)
        elif self._less is not None:
            self._view.update(self._less(data), metadata)
        elif self._page.run is not None:
            self._view.clear(self._page.run)

    def _turned(self) -> None:
        self._show()
        self._page.read(at_once=True)


def ask_coverage(reveal: GuessFirst, data: Report, metadata: Metadata) -> None:
    """Ask how many of the held-out rows lie in the 95% interval, where the report says so."""
    nominal, observed = data.arrays["coverage"]
    level = np.flatnonzero(np.isclose(nominal, LEVEL))
    rows = int(metadata["rows"]["test"])
    if not len(level) or not rows:
        reveal.ask("")
        return
    share = float(observed[level[0]])
    held = round(share * rows)
    # Of the share among all rows like these: Jeffreys' interval (Brown, Cai, DasGupta 2001).
    band = 100 * betaincinv(held + 0.5, rows - held + 0.5, [0.025, 0.975])
    reveal.ask(
        f"For each of {rows:,} held-out values the model gives an interval that contains the value "
        "with a probability of 95%. How many of a hundred intervals contain their value?",
        start=75,
    )
    reveal.know(
        f"{held:,} of {rows:,} intervals do, {100 * share:.0f} of a hundred.",
        100 * share,
        band,
    )


def without_coverage(data: Report) -> Report:
    """The report without a word on how many rows lie in intervals."""
    return replace(
        data,
        metrics=tuple(m for m in data.metrics if not m.name.startswith("coverage")),
        notes=tuple(n for n in data.notes if "95% interval" not in n),
    )
