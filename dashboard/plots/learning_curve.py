"""A score of several methods against how much they have learnt from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, put
from dashboard.plots.key import Key, look, width
from dashboard.plots.theme import models, new_figure


class LearningCurvePlot(Plot):
    """A line a method, through the means of the draws; every draw is a mark."""

    def __init__(self, title: str, height: int = 380) -> None:
        self.curves = models.ColumnDataSource(
            {n: [] for n in ("count", "score", "colour", "dash", "width")}
        )
        self.points = models.ColumnDataSource(
            {n: [] for n in ("count", "score", "colour", "marker", "method")}
        )
        # Many lines that are none yet give Bokeh nothing to frame, so that `show` frames them.
        plot = new_figure("scarcity", "", "", height=height, x_range=models.Range1d(0, 1),
                          y_range=models.Range1d(0, 1))  # fmt: skip
        plot.multi_line("count", "score", source=self.curves, line_color="colour",
                        line_dash="dash", line_width="width")  # fmt: skip
        dots = plot.scatter("count", "score", source=self.points, size=8, color="colour",
                            marker="marker", alpha=0.8)  # fmt: skip
        tips = [("method", "@method"), ("learnt from", "@count{0}"), ("score", "@score{0.00}")]
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        self.key = Key(plot, lines=True, stacked=True)
        super().__init__(title, plot)

    def show(
        self,
        found: Mapping[int, Sequence[Float[np.ndarray, " m"]]],
        methods: Sequence[str],
        score: str,
        counted: str,
    ) -> None:
        """Show the scores that are known by now.

        Args:
            found: Scores of m methods in every draw, by how many they learnt from.
            methods: Their names.
            score: What it is called.
            counted: What there are so many of.
        """
        counts, names = sorted(found), [str(m) for m in methods]
        means = np.stack([np.mean(found[n], axis=0) for n in counts], axis=1)  # methods, counts
        every = range(len(names))
        self.curves.data = {
            "count": [np.array(counts, np.float32) for _ in every],
            "score": [line.astype(np.float32) for line in means],
            "colour": [look(k)[0] for k in every],
            "dash": [look(k)[2] for k in every],
            "width": [width(k) for k in every],
        }
        self.key.name(names)
        marks = [
            (n, draw[k], *look(k)[:2], names[k]) for n in counts for draw in found[n] for k in every
        ]
        put(self.points, **dict(zip(self.points.data, (np.array(c) for c in zip(*marks)))))
        plot = self.figures[0]
        plot.x_range.end = 1.05 * counts[-1]
        best = np.nanmax([0.0, *(score for n in counts for draw in found[n] for score in draw)])
        plot.y_range.end = 1.05 * max(float(best), 0.01)
        plot.xaxis[0].axis_label = f"{counted} learnt from"
        plot.yaxis[0].axis_label = f"{score} of held-out rows"
        self.describe(_in_words(counts, means, names, score, counted))


def _in_words(
    counts: Sequence[int],
    means: Float[np.ndarray, "m n"],
    names: Sequence[str],
    score: str,
    counted: str,
) -> str:
    said = [
        f"{n} " + ", ".join(f"{v:.2f}" if np.isfinite(v) else "–" for v in column)
        for n, column in zip(counts, means.T)
    ]
    shown = said if len(said) <= 4 else [*said[:2], "…", said[-1]]
    return f"{score} of {', '.join(names)} by {counted} learnt from: {'; '.join(shown)}."
