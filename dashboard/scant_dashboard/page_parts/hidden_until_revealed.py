"""Views that hide an answer, and everything that would give it away, until it is guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import betaincinv

from scant.events import Report
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.guess_first import HIDDEN_TEXT, GuessFirst
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.plots.base import View
from scant_dashboard.translate import tr

Metadata = Mapping[str, Any]
LEVEL = 0.95  # of the interval in the question


class HiddenUntilRevealed(View):
    """A view of a report that shows less of it, or nothing, while a question is open.

    Args:
        page: The page of the view.
        view: The view to wrap.
        reveal: The question.
        less: Reduces a report to the part that may be shown meanwhile; None hides the view.
        ask: Asks the question, once for every report; pass it to one view of several only.
        above: Whether the question is placed above this view.
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
        self._was_revealed = False  # a further question does not hide what has been seen
        self.title = view.title
        parts = [reveal.panel, view.panel] if above else [view.panel]
        self.panel = column(*parts, css=":host { gap: 10px; }")
        reveal.watch(self._on_reveal)

    @property
    def alt(self) -> str:
        """The view's text alternative, unless it is hidden."""
        return tr(HIDDEN_TEXT) if self._hides_view else str(self._view.alt)

    @property
    def figures(self) -> tuple[Any, ...]:
        """The view's figures."""
        return tuple(self._view.figures)

    @property
    def _hides_view(self) -> bool:
        return self._hides and self._less is None

    @property
    def _hides(self) -> bool:
        return self._reveal.hidden and not self._was_revealed

    def say(self) -> None:
        self._view.say()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._latest, self._was_revealed = None, False
        self._view.clear(run)
        if self._ask is not None:
            self._reveal.ask("")

    def update(self, data: Report, metadata: Metadata) -> None:
        """Show this report, or its permitted part."""
        fresh = self._latest is None or self._latest[0] is not data
        self._latest = data, metadata
        if fresh and self._ask is not None:
            self._ask(self._reveal, data, metadata)
        self._show()

    def _show(self) -> None:
        if self._latest is None:
            return
        data, metadata = self._latest
        self._view.panel.visible = not self._hides_view
        if not self._hides:
            self._view.update(data, metadata)
        elif self._less is not None:
            self._view.update(self._less(data), metadata)
        elif self._page.run is not None:
            self._view.clear(self._page.run)

    def _on_reveal(self) -> None:
        self._was_revealed = self._reveal.first and (self._was_revealed or self._reveal.revealed)
        self._show()
        self._page.read(at_once=True)


def ask_coverage(reveal: GuessFirst, data: Report, metadata: Metadata) -> None:
    """Ask how many held-out rows lie in the 95% interval, if the report has that level."""
    nominal, observed = data.arrays["coverage"]
    level = np.flatnonzero(np.isclose(nominal, LEVEL))
    rows = int(metadata["rows"]["test"])
    if not len(level) or not rows:
        reveal.ask("")
        return
    share = float(observed[level[0]])
    inside = round(share * rows)
    # Jeffreys' interval for the share in the population (Brown, Cai, DasGupta 2001).
    band = 100 * betaincinv(inside + 0.5, rows - inside + 0.5, [0.025, 0.975])
    reveal.ask(
        tr(
            "For each of {rows:,} held-out values the model gives an interval that contains the "
            "value with a probability of 95%. How many of a hundred intervals contain their value?",
            rows=rows,
        ),
        start=75,
    )
    reveal.know(
        tr(
            "{inside:,} of {rows:,} intervals contain their value, {percent:.0f} of a hundred.",
            inside=inside,
            rows=rows,
            percent=100 * share,
        ),
        100 * share,
        band,
    )


def without_coverage(data: Report) -> Report:
    """Return the report without its statements on interval coverage."""
    return replace(
        data,
        metrics=tuple(m for m in data.metrics if not m.name.startswith("coverage")),
        notes=tuple(n for n in data.notes if "95% interval" not in n),
    )
