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

ASIDE = (
    "<p class='quiet'>At each slider position the model is retrained on this number of examples of"
    " each class, with the run's kernel and patches. Each position adds a point to the curve. "
    "Bands show the minimum and the maximum over the alphabets.</p>"
)


class ShotsPlot(ScoreCurve):
    """Mean recall over the outputs, with a band from minimum to maximum."""

    def __init__(self, title: str) -> None:
        tips = (("", "@score{0.0%}"), ("outputs", "@low{0%} to @high{0%}"))
        super().__init__(title, {"shots": "recall of held-out rows"}, "examples of each class",
                         ("this model", "nearest neighbor"), tips=tips, band=True,
                         height=320)  # fmt: skip
        self.figures[0].yaxis.formatter = models.NumeralTickFormatter(format="0%")
        self.figures[0].y_range.start = 0

    def show(
        self, result: Mapping[int, Float[np.ndarray, "2 d"]], of: str = "the held-out rows"
    ) -> None:
        """Show recalls of the model and the nearest neighbor, by number of examples.

        Args:
            result: For each number of examples, recalls of both methods on each output.
            of: Description of the rows.
        """
        shots = sorted(result)
        each = np.stack([result[k] for k in shots])  # shots, who, outputs
        mean, low, high = (f(each, axis=2).T for f in (np.nanmean, np.nanmin, np.nanmax))
        messages = [
            f"{k} {'example' if k == 1 else 'examples'}: {a:.1%} against {b:.1%}"
            for k, a, b in zip(shots, *mean)
        ]
        self.draw(
            f"Recall of {of}, on average over the outputs, with {'; with '.join(messages[:3])}"
            + (f"; …; with {messages[-1]}" if len(messages) > 3 else "")
            + " of the nearest neighbor.",
            [(shots, *line) for line in zip(mean, low, high)],
        )


class Shots(SliderCurve):
    """Recall against examples per class, computed one position at a time."""

    title = "How few examples does it take?"
    span, start, unit, digits = (0, 100, 1), 50, "%", 0

    def __init__(self, page: PageContext) -> None:
        super().__init__(page, ShotsPlot(self.title), "Examples of each class", ASIDE)
        self._of = ""

    def open(self, run: RunState) -> None:
        """Enable the slider."""
        max_shots = int(run.metadata.get("shots_most", 0))
        self._of = held_out(run.metadata, SHOT_ROWS)
        if max_shots and run.metadata["rows"]["test"]:
            self._offer(list(range(1, max_shots + 1)), max_shots)

    def _ask(self, stop: int) -> None:
        if stop not in self._points:
            doing = f"learning anew from {_examples(stop)} of each class"
            self._work(doing, "shots", partial(self._trained, stop), k=stop)

    def _trained(self, k: int, answer: dict[str, np.ndarray]) -> None:
        self._points[k] = np.stack([answer["accuracy"], answer["nearest"]])
        self._show()

    def _question(self, stop: int) -> str:
        return f"With {_examples(stop)} of each class: what share of {self._of} does it recognize?"

    def _answer(self, recalls: Float[np.ndarray, "2 d"]) -> tuple[str, float, Sequence[float]]:
        own = 100 * recalls[0]
        share = float(np.nanmean(own))
        answer = f"It recognizes {share:.0f}% on average over the outputs"
        return f"{answer}.", share, (np.nanmin(own), np.nanmax(own))

    def _draw(self, points: Mapping[int, Float[np.ndarray, "2 d"]]) -> None:
        self.plot.show(points, self._of)


def _examples(examples: int) -> str:
    return "one example" if examples == 1 else f"{examples} examples"
