"""The events page's curve: how few labels will do?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.pages.omniglot_matrices import STACKED
from dashboard.plots.base import Shown
from dashboard.plots.learning_curve import LearningCurvePlot
from dashboard.shell import text

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

DRAWS = 3  # for each stop of the slider, but one where all are learnt from
ASIDE = (
    "<p class='quiet'>Wherever the slider stops the model is trained anew on so many of what this "
    "run learnt from, drawn three times, beside kernels that are averaged and the plainest other "
    "method; all are asked of the run's held-out rows. The curve grows by a point.</p>"
)
HELP = "Let the slider go where you like, for the first point of the curve."


class Scarcity(Shown):
    """The main score against how many groups, patients or rows are learnt from."""

    title = "How few labels will do?"

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self._found: dict[int, list[np.ndarray]] = {}
        self._methods: list[str] = []
        self._counted = self._score = ""
        self.plot = LearningCurvePlot(self.title)
        self.figures = self.plot.figures
        self.plot.panel.visible = False
        self.slider = pmui.DiscreteSlider(
            label="Learn from", options=[1], disabled=True, sizing_mode="stretch_width",
            max_width=420, margin=(0, 12),
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
        words = run.words
        counts = [int(n) for n in words.get("counts", ())]
        if not counts:
            return
        self._methods, self._score = list(words["scarce"]), str(words["score"])
        self._counted = str(words["counted"])
        named = {f"{n} {self._counted if n != 1 else self._counted.rstrip('s')}": n for n in counts}
        self.slider.param.update(options=named, value=counts[0], disabled=False)

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self._found = {}
        self.slider.disabled = True
        self.plot.panel.visible = False
        self.plot.clear()

    def _train(self, n: int) -> None:
        """Train on n of them, once more if not often enough yet."""
        drawn = len(self._found.get(n, ()))
        most = 1 if n == max(self.slider.values) else DRAWS
        if not self.slider.disabled and drawn < most:
            self._page.ask("scarcity", partial(self._trained, n), n=n, draw=drawn)

    def _trained(self, n: int, answer: dict[str, np.ndarray]) -> None:
        self._found.setdefault(n, []).append(np.asarray(answer["scores"], float))
        self.plot.panel.visible = True
        self.plot.show(self._found, self._methods, self._score, self._counted)
        if n == self.slider.value:
            self._train(n)
