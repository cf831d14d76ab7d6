"""The omniglot page's curve: how few examples of a character does it take?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.pages.omniglot_matrices import STACKED
from dashboard.plots.base import Shown
from dashboard.plots.shots import ShotsPlot
from dashboard.shell import text

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

ASIDE = (
    "<p class='quiet'>Wherever the slider stops, what the model knows of labels is learnt anew "
    "from so many examples of each class; kernel and patches stay the run's. The curve grows by a "
    "point. Bands are the least and the most of the alphabets.</p>"
)

HELP = "Let the slider go where you like, for the first point of the curve."


class Shots(Shown):
    """Recall against examples a class, a point at a time."""

    title = "How few examples does it take?"

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self._found: dict[int, np.ndarray] = {}
        self.plot = ShotsPlot(self.title)
        self.figures = self.plot.figures
        self.slider = pmui.DiscreteSlider(
            label="Examples of each class", options=[1], disabled=True,
            sizing_mode="stretch_width", max_width=420, margin=(0, 12),
        )  # fmt: skip
        # What it says is released is an index; its value follows every place it is dragged over.
        self.slider.param.watch(lambda _: self._train(int(self.slider.value)), "value_throttled")
        self.panel = pn.Column(
            self.slider, text(ASIDE), self.plot.panel, stylesheets=[STACKED],
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

    @property
    def alt(self) -> str:
        return str(self.plot.alt) if self._found else HELP

    def open(self, run: History) -> None:
        """From now on the curve may be asked for."""
        most = int(run.words.get("shots_most", 0))
        if most and run.words["rows"]["test"]:
            self.slider.options = list(range(1, most + 1))
            self.slider.param.update(value=most, disabled=False)

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self._found = {}
        self.plot.clear()
        self.slider.disabled = True

    def _train(self, k: int) -> None:
        if k not in self._found:
            self._page.ask("shots", partial(self._trained, k), k=k)

    def _trained(self, k: int, answer: dict[str, np.ndarray]) -> None:
        self._found[k] = np.stack([answer["accuracy"], answer["nearest"]])
        self.plot.show(self._found)
