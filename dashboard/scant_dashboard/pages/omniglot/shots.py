"""Learning curve of the omniglot page over the number of examples per class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.on_demand import SliderCurve
from scant_dashboard.pages.omniglot.rows import SHOT_ROWS, held_out
from scant_dashboard.plots.score_curve import ScoreCurve
from scant_dashboard.plots.theme import models
from scant_dashboard.translate import later, ntr, tr

ASIDE = later(
    "At each slider position the model is retrained on this number of examples of"
    " each class, with the run's kernel and inducing points. Each position adds a point to the "
    "curve. Bands show the minimum and the maximum over the groups."
)


class ShotsPlot(ScoreCurve):
    """Mean recall over the outputs, with a band from minimum to maximum."""

    def __init__(self, title: str) -> None:
        tips = (("", "@score{0.0%}"), (tr("groups"), "@low{0%} – @high{0%}"))
        super().__init__(title, {"shots": tr("recall of held-out rows")},
                         tr("examples of each class"),
                         (tr("this model"), tr("nearest neighbor")), tips=tips, band=True,
                         height=320)  # fmt: skip
        self.figures[0].yaxis.formatter = models.NumeralTickFormatter(format="0%")
        self.figures[0].y_range.start = 0

    def show(self, result: Mapping[int, Float[np.ndarray, "2 d"]], of: str) -> None:
        """Show recalls of the model and the nearest neighbor, by number of examples.

        Args:
            result: For each number of examples, recalls of both methods on each output.
            of: Description of the rows.
        """
        shots = sorted(result)
        each = np.stack([result[k] for k in shots])  # shots, who, outputs
        mean, low, high = (f(each, axis=2).T for f in (np.nanmean, np.nanmin, np.nanmax))
        messages = [
            ntr("{recall:.1%} against {other:.1%} with {n} example",
                "{recall:.1%} against {other:.1%} with {n} examples", k, recall=a, other=b)
            for k, a, b in zip(shots, *mean)
        ]  # fmt: skip
        abridged = [*messages[:3], *(["…", messages[-1]] if len(messages) > 3 else [])]
        self.draw(
            tr("Recall of {rows} on average over the groups, against that of the nearest "
               "neighbor: {values}.", rows=of, values="; ".join(abridged)),
            [(shots, *line) for line in zip(mean, low, high)],
        )  # fmt: skip


class Shots(SliderCurve):
    """Recall against examples per class, computed one position at a time."""

    title = later("How few examples does it take?")
    span, start, unit, digits = (0, 100, 1), 50, "%", 0

    def __init__(self, page: PageContext) -> None:
        super().__init__(page, ShotsPlot(self.title), tr("Examples of each class"),
                         f"<p class='quiet'>{tr(ASIDE)}</p>")  # fmt: skip
        self._of = ""

    def open(self, run: RunState) -> None:
        """Enable the slider."""
        max_shots = int(run.metadata.get("shots_most", 0))
        self._of = held_out(run.metadata, SHOT_ROWS)
        if max_shots and run.metadata["rows"]["test"]:
            self._offer(list(range(1, max_shots + 1)), max_shots)

    def _ask(self, stop: int) -> None:
        if stop not in self._points:
            doing = ntr("training again on one example of each class",
                        "training again on {n} examples of each class", stop)  # fmt: skip
            self._work(doing, "shots", partial(self._trained, stop), k=stop)

    def _trained(self, k: int, answer: dict[str, np.ndarray]) -> None:
        self._points[k] = np.stack([answer["accuracy"], answer["nearest"]])
        self._show()

    def _question(self, stop: int) -> str:
        return ntr(
            "With one example of each class: what share of {rows} does it recognize?",
            "With {n} examples of each class: what share of {rows} does it recognize?",
            stop, rows=self._of,
        )  # fmt: skip

    def _answer(self, recalls: Float[np.ndarray, "2 d"]) -> tuple[str, float, Sequence[float]]:
        own = 100 * recalls[0]
        share = float(np.nanmean(own))
        answer = tr("It recognizes {percent:.0f}% on average over the groups.", percent=share)
        return answer, share, (np.nanmin(own), np.nanmax(own))

    def _draw(self, points: Mapping[int, Float[np.ndarray, "2 d"]]) -> None:
        self.plot.show(points, self._of)
