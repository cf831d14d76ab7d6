"""The aggregation page's curve: how many fine values are the coarse ones worth?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.plots.scarcity import ScarcityPlot
from dashboard.shell import text

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

ASIDE = (
    "<p class='quiet'>For each number of fine values the posterior is computed anew, exactly, at "
    "this run's lengthscales and noise, three times with other values; bands are least and most. "
    "It takes some seconds.</p>"
)


class Scarcity:
    """SMSE and SNLP against the number of fine observations, with and without the other tasks."""

    title = "How many fine values are the coarse ones worth?"

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self.plot = ScarcityPlot(self.title)
        self.figures = self.plot.figures
        self.button = pmui.Button(
            label="Compute the curve", variant="outlined", disabled=True, margin=0
        )
        self.button.on_click(lambda _: page.ask("scarcity", self._answered))
        self.panel = pn.Column(
            self.button, text(ASIDE), self.plot.panel, sizing_mode="stretch_width", margin=0
        )

    @property
    def alt(self) -> str:
        return self.plot.alt

    def say(self) -> None:
        """Tell the reading to a screen reader."""
        self.plot.say()

    def open(self, run: History) -> None:
        """From now on the curve may be asked for."""
        self.button.disabled = False

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self.plot.clear()
        self.button.disabled = True

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        self.plot.show(answer["n"], answer["smse"], answer["snlp"])
