"""A score of several methods against how rare the rare class is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, put
from dashboard.plots.key import Key, look, width
from dashboard.plots.theme import models, new_figure

TICKS = [1, 3, 10, 30, 100, 300]


class ImbalancePlot(Plot):
    """A line a method over rows of the other classes for each of the rare one."""

    def __init__(self, title: str, height: int = 420) -> None:
        self.curves = models.ColumnDataSource(
            {n: [] for n in ("ratio", "score", "colour", "dash", "width")}
        )
        self.points = models.ColumnDataSource(
            {n: [] for n in ("ratio", "score", "colour", "marker", "method")}
        )
        plot = new_figure("imbalance", "rows of the others for each of the rare class", "",
                          height=height, x_axis_type="log", x_range=models.Range1d(0.8, 400),
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        plot.multi_line("ratio", "score", source=self.curves, line_color="colour",
                        line_dash="dash", line_width="width")  # fmt: skip
        dots = plot.scatter("ratio", "score", source=self.points, size=10, color="colour",
                            marker="marker")  # fmt: skip
        tips = [("method", "@method"), ("imbalance", "1 : @ratio{0}"), ("score", "@score{0.00}")]
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        plot.xaxis[0].ticker = models.FixedTicker(ticks=TICKS)
        plot.xaxis[0].major_label_overrides = {r: f"1:{r}" for r in TICKS}
        self.key = Key(plot, lines=True, stacked=True)
        super().__init__(title, plot)

    def show(
        self,
        found: Mapping[int, Float[np.ndarray, " m"]],
        methods: Sequence[str],
        score: str,
    ) -> None:
        """Show the score of m methods at the imbalances that are known by now."""
        ratios = sorted(found)
        each = np.stack([found[r] for r in ratios], axis=1)  # methods, ratios
        every, names = range(len(methods)), [str(m) for m in methods]
        self.curves.data = {
            "ratio": [np.array(ratios, np.float32) for _ in every],
            "score": [line.astype(np.float32) for line in each],
            "colour": [look(k)[0] for k in every],
            "dash": [look(k)[2] for k in every],
            "width": [width(k) for k in every],
        }
        self.key.name(names)
        many = len(ratios)
        put(
            self.points,
            ratio=np.tile(ratios, len(names)),
            score=each.ravel(),
            colour=np.repeat([look(k)[0] for k in every], many),
            marker=np.repeat([look(k)[1] for k in every], many),
            method=np.repeat(names, many),
        )
        plot = self.figures[0]
        plot.yaxis[0].axis_label = f"{score} of the rare class"
        self.describe(_in_words(ratios, each, names, score))


def _in_words(
    ratios: Sequence[int], each: Float[np.ndarray, "m r"], names: Sequence[str], score: str
) -> str:
    said = []
    for ratio, column in zip(ratios, each.T):
        best = int(np.nanargmax(column)) if np.isfinite(column).any() else 0
        against = f" (best of them: {names[best]}, {column[best]:.2f})" if best else ""
        said.append(f"1:{ratio} {column[0]:.2f}{against}")
    shown = said if len(said) <= 4 else [*said[:2], "…", said[-1]]
    return f"{score} of {names[0]}, where it is not the best beside the best: {'; '.join(shown)}."
