"""Links that train the same run with one thing changed, to be compared with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from scant.dashboard.frame.template import text
from scant.dashboard.live.run_state import RunState
from scant.dashboard.study_page.context import PageContext


class Variant(NamedTuple):
    """One alternative: what it trains ("the same with …"), what to expect, settings to change."""

    train: str
    expect: str
    settings: dict[str, Any]


class Alternatives:
    """An explore view of nothing but links; each fills the form and sets the run on show beside.

    Args:
        page: The page that it stands on.
        title: Its heading.
        offer: Says of a run what it did, and what else could be tried.
    """

    def __init__(
        self,
        page: PageContext,
        title: str,
        offer: Callable[[RunState], tuple[str, Sequence[Variant]]],
    ) -> None:
        self.title = title
        self.alt = ""
        self.panel = text("")
        self._page, self._offer = page, offer

    def open(self, run: RunState) -> None:
        """Offer what this run did not do."""
        self.alt, others = self._offer(run)
        items = ""
        for other in others:
            link = self._page.link(run=None, compare=run.id, **other.settings)
            items += (
                f"<li><a href='{escape(link, quote=True)}'>Train {escape(other.train)} and "
                f"compare</a>: {escape(other.expect)}</li>"
            )
        self.panel.object = f"<ul>{items}</ul>" if items else ""

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self.alt, self.panel.object = "", ""
