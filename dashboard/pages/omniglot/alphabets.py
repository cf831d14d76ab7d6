"""The omniglot page's slider of alphabets: how much is one worth to another?"""

from __future__ import annotations

from html import escape
from typing import Any

import panel_material_ui as pmui
from scant.dashboard.frame.template import text
from scant.dashboard.live.run_state import RunState
from scant.dashboard.plots.base import View
from scant.dashboard.study_page.context import PageContext
from scant.dashboard.study_page.widgets import stacked

NAMED = 4  # alphabets that a sentence lists
ONLY = "There is only one alphabet, and it cannot be removed."


class Alphabets(View):
    """A slider of how many alphabets are learned together, and a link that trains with so many."""

    title = "What are the other alphabets worth?"

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._names: list[str] = []
        self.alt = ""
        self.slider = pmui.DiscreteSlider(
            label="Alphabets learned together", options=[1], disabled=True,
            sizing_mode="stretch_width", max_width=420, margin=(0, 12),
        )  # fmt: skip
        self.slider.param.watch(lambda _: self._offer(), "value")
        self.link = text("")
        self.panel = stacked(self.slider, self.link)

    def open(self, run: RunState) -> None:
        """Offer as many alphabets as this run has learned, or fewer."""
        self._run, self._names = run, [str(name) for name in run.metadata["outputs"]]
        count = len(self._names)
        several = count > 1
        self.slider.options = list(range(1, count + 1))
        self.slider.param.update(value=1, disabled=not several)
        self.alt = f"This run trained on {self._listed(count)} together." if several else ONLY
        self._offer()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self._run = None
        self.slider.disabled = True
        self.alt, self.link.object = "", ""

    def _offer(self) -> None:
        if self._run is None or self.slider.disabled:
            return
        count = int(self.slider.value)
        changed: dict[str, Any] = {"n_outputs": count}
        link = self._page.link(run=None, compare=self._run.id, **changed)
        alone = " alone" if count == 1 else ""
        self.link.object = (
            f"<p><a href='{escape(link, quote=True)}'>Train with {escape(self._listed(count))}"
            f"{alone} and compare</a></p>"
        )

    def _listed(self, count: int) -> str:
        names = self._names[:count]
        if count <= NAMED:
            return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        return f"{', '.join(names[:NAMED])} and {count - NAMED} more"
