"""A score of several methods against how rare the rare class is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, put
from dashboard.plots.theme import DASHES, GROUPS, MARKERS, models, new_figure, quiet_legend


class ImbalancePlot(Plot):
    """A line a method over rows of the other classes for each of the rare one."""

    def __init__(self, title: str, height: int = 340) -> None:
        self.curves = models.ColumnDataSource(
            {n: [] for n in ("ratio", "score", "colour", "dash", "width", "method")}
        )
        self.points = models.ColumnDataSource(
            {n: [] for n in ("ratio", "score", "colour", "marker", "method")}
        )
        plot = new_figure("imbalance", "rows of the others for each of the rare class", "",
                          height=height, x_axis_type="log",
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        plot.multi_line("ratio", "score", source=self.curves, line_color="colour",
                        line_dash="dash", line_width="width")  # fmt: skip
        dots = plot.scatter("ratio", "score", source=self.points, size=10, color="colour",
                            marker="marker", legend_field="method")  # fmt: skip
        tips = [("method", "@method"), ("imbalance", "1 : @ratio{0}"), ("score", "@score{0.00}")]
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        quiet_legend(plot, stacked=True)
        plot.legend[0].click_policy = "none"  # all methods are one glyph
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
        look, names = range(len(methods)), [str(m) for m in methods]
        colours = [GROUPS[k % len(GROUPS)] for k in look]
        self.curves.data = {
            "ratio": [np.array(ratios, np.float32) for _ in look],
            "score": [line.astype(np.float32) for line in each],
            "colour": colours,
            "dash": [DASHES[k % len(DASHES)] for k in look],
            "width": [3.0 if k == 0 else 1.8 for k in look],
            "method": names,
        }
        many = len(ratios)
        put(
            self.points,
            ratio=np.tile(ratios, len(names)),
            score=each.ravel(),
            colour=np.repeat(colours, many),
            marker=np.repeat([MARKERS[k % len(MARKERS)] for k in look], many),
            method=np.repeat(names, many),
        )
        plot = self.figures[0]
        plot.yaxis[0].axis_label = f"{score} of the rare class"
        plot.xaxis[0].ticker = models.FixedTicker(ticks=ratios)
        plot.xaxis[0].major_label_overrides = {r: f"1:{r}" for r in ratios}
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
