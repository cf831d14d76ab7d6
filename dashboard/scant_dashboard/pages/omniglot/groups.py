"""Slider over the number of groups (alphabets) on the omniglot page."""

from __future__ import annotations

import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.variants import Variant, VariantButtons
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.base import View
from scant_dashboard.translate import enumerated, later, tr

NAMED = 4  # groups that a sentence lists


class Groups(View):
    """A slider over the number of groups learned together, and a button to train with it."""

    title = later("What are the other groups worth?")

    def __init__(self, page: PageContext) -> None:
        self._run: RunState | None = None
        self._names: list[str] = []
        self.alt = ""
        self.slider = pmui.DiscreteSlider(
            label=tr("Groups learned together"), options=[1], disabled=True,
            sizing_mode="stretch_width", max_width=420, margin=(0, 12),
        )  # fmt: skip
        self.slider.param.watch(lambda _: self._update_button(), "value")
        self.button = VariantButtons(page)
        self.panel = stacked(self.slider, self.button)

    def open(self, run: RunState) -> None:
        """Offer as many groups as this run has learned, or fewer."""
        self._run, self._names = run, [str(name) for name in run.metadata["outputs"]]
        count = len(self._names)
        self.slider.options = list(range(1, count + 1))
        self.slider.param.update(value=1, disabled=False)
        self.alt = tr("This run trained on {names} together.", names=self._listed(count))
        self._update_button()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._run = None
        self.slider.disabled = True
        self.alt = ""
        self.button.offer(())

    def _update_button(self) -> None:
        if self._run is None or self.slider.disabled:
            return
        count = int(self.slider.value)
        names = self._listed(count)
        train = tr("Train again with {names}", names=names)
        if count == 1:
            train = tr("Train again with {names} alone", names=names)
        self.button.offer([Variant(train, "", {"n_outputs": count})])

    def _listed(self, count: int) -> str:
        names = self._names[:count]
        if count <= NAMED:
            return enumerated(names)
        return tr("{names} and {n} more", names=", ".join(names[:NAMED]), n=count - NAMED)
