"""The mitosis page's slider of imbalance: how rare may the rare class be?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.pages.growing import Growing
from dashboard.pages.mitosis_spaces import HALVES
from dashboard.plots.base import BESIDE
from dashboard.plots.imbalance import ImbalancePlot
from dashboard.plots.table import comparison
from dashboard.shell import text
from engine.catalog.mitosis import RATIOS

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

ASIDE = (
    "<p class='quiet'>Wherever the slider stops, every method is trained anew, briefly, on as many "
    "rows of the others for each rare one, and judged by the same held-out rows. Where the others "
    "do not suffice, rare rows are left out. The curve grows by a point.</p>"
)
SCORES = ("precision", "recall", "F1", "average precision")  # as the study answers them
STOPS = [r for r in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300) if RATIOS[0] <= r <= RATIOS[1]]
BEGIN = 30


class Imbalance(Growing):
    """Scores of all methods against imbalance, a point at a time."""

    title = "How rare may it be?"
    wait = 15

    def __init__(self, page: StudyPage) -> None:
        self._methods: list[str] = []
        self._last = (0, "")
        self.score = pmui.Select(label="Score", options=list(SCORES), value="F1", width=180,
                                 size="small", margin=0)  # fmt: skip
        self.score.param.watch(lambda _: self._show(), "value")
        self.table = text("")
        plot = ImbalancePlot(self.title)
        beside = pn.Column(plot.panel, self.table, stylesheets=[BESIDE, HALVES],
                           sizing_mode="stretch_width", margin=0)  # fmt: skip
        label = "Others for each rare one"
        super().__init__(page, plot, label, ASIDE, (self.score,), beside)

    def open(self, run: History) -> None:
        """From now on the curve may be asked for."""
        self._methods = list(run.words["methods"])
        if run.words["rows"]["test"]:
            self._offer({f"1:{r}": r for r in STOPS}, BEGIN)

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        super().clear(run)
        self._last = (0, "")
        self.table.object = ""

    def _ask(self, stop: int) -> None:
        if stop not in self._found:
            doing = f"training {len(self._methods)} methods at 1:{stop}"
            self._work(doing, "imbalance", partial(self._answered, stop), ratio=stop)

    def _answered(self, ratio: int, answer: dict[str, np.ndarray]) -> None:
        self._found[ratio] = np.asarray(answer["scores"], float)
        rare, others = (int(n) for n in answer["rows"])
        self._last = (ratio, f"Learnt from {rare} rare rows and {others:,} others at 1:{ratio}")
        self._show()

    def _show(self) -> None:
        if not self._found:
            return
        name = str(self.score.value)
        column = SCORES.index(name)
        self.plot.show({r: s[:, column] for r, s in self._found.items()}, self._methods, name)
        self._grown()
        ratio, said = self._last
        rows = {
            method: [f"{v:.2f}" if np.isfinite(v) else "–" for v in values]
            for method, values in zip(self._methods, self._found[ratio])
        }
        self.table.object = f"<p class='quiet'>{said}:</p>{comparison(rows, SCORES)}"
        self._page.read(at_once=True)
