"""The events page's curve: how few labels will do?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dashboard.pages.growing import Growing
from dashboard.plots.learning_curve import LearningCurvePlot

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

DRAWS = 3  # for each stop of the slider, but one where all are learnt from
ASIDE = (
    "<p class='quiet'>Wherever the slider stops the model is trained anew on so many of what this "
    "run learnt from, drawn three times, beside kernels that are averaged and the plainest other "
    "method; all are asked of the run's held-out rows. The curve grows by a point.</p>"
)


class Scarcity(Growing):
    """The main score against how many groups, patients or rows are learnt from."""

    title = "How few labels will do?"
    wait = 10

    def __init__(self, page: StudyPage) -> None:
        super().__init__(page, LearningCurvePlot(self.title), "Learn from", ASIDE)
        self._methods: list[str] = []
        self._counted = self._score = ""

    def open(self, run: History) -> None:
        """From now on the curve may be asked for."""
        words = run.words
        counts = [int(n) for n in words.get("counts", ())]
        if not counts:
            return
        self._methods, self._score = list(words["scarce"]), str(words["score"])
        self._counted = str(words["counted"])
        self._offer({self._named(n): n for n in counts}, counts[0])

    def _ask(self, stop: int) -> None:
        """Train on so many of them, once more if not often enough yet."""
        drawn = len(self._found.get(stop, ()))
        draws = 1 if stop == max(self.slider.values) else DRAWS
        if drawn < draws:
            doing = f"training on {self._named(stop)}, draw {drawn + 1} of {draws}"
            self._work(doing, "scarcity", partial(self._trained, stop), n=stop, draw=drawn)

    def _named(self, n: int) -> str:
        return f"{n} {self._counted if n != 1 else self._counted.rstrip('s')}"

    def _trained(self, n: int, answer: dict[str, np.ndarray]) -> None:
        self._found.setdefault(n, []).append(np.asarray(answer["scores"], float))
        self._grown()
        self.plot.show(self._found, self._methods, self._score, self._counted)
        if n == self.slider.value:
            self._stopped()
