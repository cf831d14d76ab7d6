"""The omniglot page's curve: how few examples of a character does it take?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dashboard.pages.growing import Growing
from dashboard.pages.omniglot_rows import SHOT_ROWS, held_out
from dashboard.plots.shots import ShotsPlot

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

ASIDE = (
    "<p class='quiet'>Wherever the slider stops, what the model knows of labels is learnt anew "
    "from so many examples of each class; kernel and patches stay the run's. The curve grows by a "
    "point. Bands are the least and the most of the alphabets.</p>"
)


class Shots(Growing):
    """Recall against examples a class, a point at a time."""

    title = "How few examples does it take?"

    def __init__(self, page: StudyPage) -> None:
        super().__init__(page, ShotsPlot(self.title), "Examples of each class", ASIDE)
        self._of = ""

    def open(self, run: History) -> None:
        """From now on the curve may be asked for."""
        most = int(run.words.get("shots_most", 0))
        self._of = held_out(run.words, SHOT_ROWS)
        if most and run.words["rows"]["test"]:
            self._offer(list(range(1, most + 1)), most)

    def _ask(self, stop: int) -> None:
        if stop not in self._found:
            many = "one example" if stop == 1 else f"{stop} examples"
            doing = f"learning anew from {many} of each class"
            self._work(doing, "shots", partial(self._trained, stop), k=stop)

    def _trained(self, k: int, answer: dict[str, np.ndarray]) -> None:
        self._found[k] = np.stack([answer["accuracy"], answer["nearest"]])
        self._grown()
        self.plot.show(self._found, self._of)
