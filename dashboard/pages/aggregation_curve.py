"""The aggregation page's curve: how many fine values are the coarse ones worth?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.plots.base import Shown
from dashboard.plots.scarcity import ScarcityPlot
from dashboard.shell import text

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

REPEATS = 3  # trainings for each stop of the slider, each with other fine values
ASIDE = (
    "<p class='quiet'>Wherever the slider stops the model trains on, from this run's, with so many "
    "fine values, drawn three times; the curve grows by a point. With Gaussian likelihoods the "
    "whole curve can be had at once: its posteriors are exact, at this run's lengthscales and "
    "noise. Bands are least and most.</p>"
)


class Scarcity(Shown):
    """SMSE and SNLP against the number of fine observations, with and without the other tasks."""

    title = "How many fine values are the coarse ones worth?"

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self.plot = ScarcityPlot(self.title)
        self.figures = self.plot.figures
        self._found: dict[int, list[np.ndarray]] = {}  # scores of each repeat, by number of values
        self.slider = pmui.DiscreteSlider(
            label="Number of fine observations",
            options=[1],
            disabled=True,
            sizing_mode="stretch_width",
            max_width=420,
            margin=(0, 12),
        )
        # What it says is released is an index; its value follows every place it is dragged over.
        self.slider.param.watch(lambda _: self._train(self.slider.value), "value_throttled")
        self.button = pmui.Button(
            label="Compute the whole curve", variant="outlined", disabled=True, margin=0
        )
        self.button.on_click(lambda _: page.ask("scarcity", self._whole))
        self.panel = pn.Column(
            self.slider,
            self.button,
            text(ASIDE),
            self.plot.panel,
            sizing_mode="stretch_width",
            margin=0,
        )

    def open(self, run: History) -> None:
        """From now on the curve may be asked for."""
        numbers = list(run.words.get("counts", ()))
        if numbers:
            self.slider.options = numbers
            self.slider.param.update(value=numbers[0], disabled=False)
        gaussian = all(kind == "gaussian" for kind in run.words["likelihoods"])
        self.button.disabled = not (numbers and gaussian)

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self._found = {}
        self.plot.clear()
        self.slider.disabled = self.button.disabled = True

    def _train(self, n: int) -> None:
        """Train on with n fine values, once more if not often enough yet."""
        repeat = len(self._found.get(n, ()))
        if repeat < REPEATS:
            self._page.ask("retrain", partial(self._trained, n), n=n, repeat=repeat)

    def _trained(self, n: int, answer: dict[str, np.ndarray]) -> None:
        self._found.setdefault(n, []).append(np.stack([answer["smse"], answer["snlp"]]))
        numbers = sorted(self._found)
        each = [np.stack(self._found[k]) for k in numbers]
        spread = [(f.mean(0), f.min(0), f.max(0)) for f in each]  # of 2 scores, of 2 models
        scores = np.transpose(np.array(spread), (2, 3, 1, 0))
        self.plot.show(np.array(numbers, float), scores[0], scores[1])
        if n == self.slider.value:
            self._train(n)

    def _whole(self, answer: dict[str, np.ndarray]) -> None:
        self._found = {}
        self.plot.show(answer["n"], answer["smse"], answer["snlp"])
