"""Slider of class imbalance on the mitosis page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import panel as pn
import panel_material_ui as pmui
from jaxtyping import Float

from scant.studies.mitosis.entry import RATIOS
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.on_demand import SliderCurve
from scant_dashboard.pages.mitosis.spaces import HALVES
from scant_dashboard.plots.base import SIDE_BY_SIDE
from scant_dashboard.plots.score_curve import ScoreCurve, abridged
from scant_dashboard.plots.table import comparison
from scant_dashboard.plots.theme import models
from scant_dashboard.template import text
from scant_dashboard.translate import later, ntr, tr

ASIDE = later(
    "At each slider position, all methods train briefly with this number of other"
    " rows for each rare row, and predict the same held-out rows. Surplus rare rows are dropped. "
    "Each position adds a point to the curve."
)
SCORES = (
    later("precision"),
    later("recall"),
    "F1",
    later("average precision"),
)  # in the order of the study's answer
STOPS = [r for r in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300) if RATIOS[0] <= r <= RATIOS[1]]
BEGIN = 30
TICKS = [1, 3, 10, 30, 100, 300]


class ImbalancePlot(ScoreCurve):
    """One line per method over the number of other rows per rare row."""

    def __init__(self, title: str) -> None:
        frame = {"x_range": models.Range1d(0.8, 400), "y_range": models.Range1d(0, 1.02)}
        tips = (
            (tr("method"), "@method"), (tr("imbalance"), "1 : @x{0}"),
            (tr("score"), "@score{0.00}"),
        )  # fmt: skip
        super().__init__(title, {"imbalance": ""},
                         tr("other rows for each rare row"), tips=tips, size=10,
                         height=420, x_axis_type="log", **frame)  # fmt: skip
        self.figures[0].xaxis[0].ticker = models.FixedTicker(ticks=TICKS)
        self.figures[0].xaxis[0].major_label_overrides = {r: f"1:{r}" for r in TICKS}

    def show(
        self, result: Mapping[int, Float[np.ndarray, " m"]], methods: Sequence[str], score: str
    ) -> None:
        """Show the scores of m methods at the imbalances computed so far."""
        ratios, messages = sorted(result), []
        for ratio in ratios:
            scores = result[ratio]
            best = int(np.nanargmax(scores)) if np.isfinite(scores).any() else 0
            message = tr("{score:.2f} at 1:{ratio}", ratio=ratio, score=scores[0])
            if best:
                message = tr("{message} (best: {method}, {score:.2f})", message=message,
                             method=methods[best], score=scores[best])  # fmt: skip
            messages.append(message)
        self.figures[0].yaxis[0].axis_label = tr("{score} of the rare class", score=score)
        self.draw(
            tr("{score} of {method} (and of the best method, if different): {values}.",
               score=score, method=methods[0], values=abridged(messages)),
            [(ratios, line) for line in np.stack([result[r] for r in ratios], axis=1)],
            methods,
        )  # fmt: skip


class Imbalance(SliderCurve):
    """Scores of all methods against imbalance, computed one position at a time."""

    title = later("How rare may it be?")

    def __init__(self, page: PageContext) -> None:
        self._methods: list[str] = []
        self._last = (0, "")
        self.score = pmui.Select(label=tr("Score"), options={tr(name): name for name in SCORES},
                                 value="F1", width=180, size="small", margin=0)  # fmt: skip
        self.score.param.watch(lambda _: self._show(), "value")
        self.table = text("")
        plot = ImbalancePlot(self.title)
        layout = pn.Column(plot.panel, self.table, stylesheets=[SIDE_BY_SIDE, HALVES],
                           sizing_mode="stretch_width", margin=0)  # fmt: skip
        label, aside = tr("Other rows for each rare row"), f"<p class='quiet'>{tr(ASIDE)}</p>"
        super().__init__(page, plot, label, aside, (self.score,), layout)

    def open(self, run: RunState) -> None:
        """Enable the slider."""
        self._methods = [tr(name) for name in run.metadata["methods"]]
        if run.metadata["rows"]["test"]:
            self._offer({f"1:{r}": r for r in STOPS}, BEGIN)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        super().clear(run)
        self._last = (0, "")
        self.table.object = ""

    def _ask(self, stop: int) -> None:
        if stop not in self._points:
            count = len(self._methods)
            doing = tr("training {n} methods at 1:{ratio}", n=count, ratio=stop)
            self._work(doing, "imbalance", partial(self._answered, stop), ratio=stop)

    def _answered(self, ratio: int, answer: dict[str, np.ndarray]) -> None:
        self._points[ratio] = np.asarray(answer["scores"], float)
        rare, others = (int(n) for n in answer["rows"])
        message = tr("Trained on {rare} rare rows and {others:,} others at 1:{ratio}:", rare=rare,
                     others=others, ratio=ratio)  # fmt: skip
        self._last = (ratio, message)
        self._show()

    def _question(self, ratio: int) -> str:
        return ntr(
            "With {n} other for each rare row: what F1 does the model reach?",
            "With {n} others for each rare row: what F1 does the model reach?",
            ratio,
        )

    def _answer(self, scores: Float[np.ndarray, "m 4"]) -> tuple[str, float, Sequence[float]]:
        score = float(scores[0, SCORES.index("F1")])
        return tr("Its F1 is {value:.2f}.", value=score), score, ()

    def _draw(self, points: Mapping[int, Float[np.ndarray, "m 4"]]) -> None:
        name = str(self.score.value)
        column = SCORES.index(name)
        self.plot.show({r: s[:, column] for r, s in points.items()}, self._methods, tr(name))
        ratio, message = self._last
        if ratio not in points:
            self.table.object = ""
            return
        rows = {
            method: [tr("{value:.2f}", value=v) if np.isfinite(v) else "–" for v in values]
            for method, values in zip(self._methods, points[ratio])
        }
        self.table.object = (
            f"<p class='quiet'>{message}</p>{comparison(rows, [tr(s) for s in SCORES])}"
        )
