"""Learning curve of the multiview page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.on_demand import SliderCurve
from scant_dashboard.plots.score_curve import ScoreCurve, abridged
from scant_dashboard.plots.theme import models
from scant_dashboard.translate import later, ntr, tr

DRAWS = 3  # random draws per slider position; one if all rows are used
ASIDE = later(
    "At each slider position, the model trains on this number of the run's training groups, "
    "subjects or rows, drawn at random three times. For comparison, averaged kernels and the "
    "simplest other method train on the same draws. All predict the run's held-out rows. Each "
    "position adds a point to the curve."
)


TRAINED_ON = {
    "patients": later("subjects trained on"),
    "groups": later("groups trained on"),
    "rows": later("rows trained on"),
}


def named(n: int, counted: str) -> str:
    """Return a number of training units in words."""
    if counted == "patients":
        return ntr("{n} subject", "{n} subjects", n)
    if counted == "groups":
        return ntr("{n} group", "{n} groups", n)
    return ntr("{n} row", "{n} rows", n)


class LearningCurvePlot(ScoreCurve):
    """One line per method through the means of the draws; every draw is a mark."""

    def __init__(self, title: str) -> None:
        # Bokeh cannot compute ranges from empty lines, so `show` sets them.
        frame = {"x_range": models.Range1d(0, 1), "y_range": models.Range1d(0, 1)}
        tips = ((tr("method"), "@method"), (tr("training rows"), "@x{0}"),
                (tr("score"), "@score{0.00}"))  # fmt: skip
        super().__init__(title, {"scarcity": ""}, tips=tips, every=True, height=380, **frame)

    def show(
        self,
        result: Mapping[int, Sequence[Float[np.ndarray, " m"]]],
        methods: Sequence[str],
        score: str,
        counted: str,
    ) -> None:
        """Show the scores computed so far.

        Args:
            result: For each number of training units, the scores of m methods in every draw.
            methods: Names of the methods.
            score: Name of the score.
            counted: Name of the training units, such as "patients".
        """
        counts = sorted(result)
        means = np.stack([np.mean(result[n], axis=0) for n in counts], axis=1)  # methods, counts
        draws = np.concatenate([result[n] for n in counts]).T  # methods, draws of all counts
        x = np.repeat(counts, [len(result[n]) for n in counts])
        plot = self.figures[0]
        plot.x_range.end = 1.05 * counts[-1]
        plot.y_range.end = 1.05 * max(float(np.nanmax([0.0, *draws.ravel()])), 0.01)
        trained_on, names = tr(TRAINED_ON[counted]), [tr(name) for name in methods]
        plot.xaxis[0].axis_label = trained_on
        plot.yaxis[0].axis_label = tr("{score} of held-out rows", score=tr(score))
        messages = []
        for n, column in zip(counts, means.T):
            scores = [
                f"{name} {tr('{value:.2f}', value=v) if np.isfinite(v) else '–'}"
                for name, v in zip(names, column)
            ]
            messages.append(tr("{scores} when trained on {units}", scores=", ".join(scores),
                               units=named(n, counted)))  # fmt: skip
        self.draw(
            tr("{score} of held-out rows: {values}.", score=tr(score), values=abridged(messages)),
            [(counts, line) for line in means],
            names,
            [(x, marks) for marks in draws],
        )  # fmt: skip


class Scarcity(SliderCurve):
    """The main score against the number of training groups, patients or rows."""

    title = later("How few labels will do?")

    def __init__(self, page: PageContext) -> None:
        super().__init__(page, LearningCurvePlot(self.title), tr("Learn from"),
                         f"<p class='quiet'>{tr(ASIDE)}</p>")  # fmt: skip
        self._methods: list[str] = []
        self._counted = self._score = ""

    def open(self, run: RunState) -> None:
        """Enable the slider."""
        metadata = run.metadata
        counts = [int(n) for n in metadata.get("counts", ())]
        if not counts:
            return
        self._methods, self._score = list(metadata["scarce"]), str(metadata["score"])
        self._counted = str(metadata["counted"])
        self._offer({named(n, self._counted): n for n in counts}, counts[0])

    def _ask(self, stop: int) -> None:
        """Train on `stop` units, up to `DRAWS` times."""
        draw = len(self._points.get(stop, ()))
        draws = 1 if stop == max(self.slider.values) else DRAWS
        if draw < draws:
            doing = tr("training on {units}, draw {draw} of {draws}",
                       units=named(stop, self._counted), draw=draw + 1, draws=draws)  # fmt: skip
            self._work(doing, "scarcity", partial(self._trained, stop), n=stop, draw=draw)

    def _trained(self, n: int, answer: dict[str, np.ndarray]) -> None:
        self._points.setdefault(n, []).append(np.asarray(answer["scores"], float))
        self._show()
        if n == self.slider.value:
            self._on_stop()

    def _question(self, n: int) -> str:
        return tr("Trained on {units}: what will its {score} on held-out rows be?",
                  units=named(n, self._counted), score=tr(self._score))  # fmt: skip

    def _answer(
        self, draws: Sequence[Float[np.ndarray, " m"]]
    ) -> tuple[str, float, Sequence[float]]:
        own = [float(scores[0]) for scores in draws]
        mean = float(np.mean(own))
        band = (min(own), max(own)) if len(own) > 1 else ()
        return tr("Its {score} is {value:.2f}.", score=tr(self._score), value=mean), mean, band

    def _draw(self, points: Mapping[int, Sequence[Float[np.ndarray, " m"]]]) -> None:
        self.plot.show(points, self._methods, self._score, self._counted)
