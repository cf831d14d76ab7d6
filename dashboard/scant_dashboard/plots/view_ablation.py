"""The score of a model of several views, by which of them it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import BLUE, VERMILION, models, new_figure, quiet_legend

ROW = 30  # pixels of a combination
LETTERS = 22  # of a combination's name beside the axis
WHO = (("this model", "model", BLUE, "circle"),
       ("averaged kernels", "averaged", VERMILION, "diamond"))  # fmt: skip


class Tried(NamedTuple):
    """A combination of views and what it came to; NaN where a method has no score."""

    views: tuple[str, ...]
    model: float
    averaged: float


class ViewsOnPlot(Plot):
    """Combinations down in the order in which they were tried, the score across."""

    def __init__(self, title: str) -> None:
        self.dots = models.ColumnDataSource({"label": [], "model": [], "averaged": [], "all": []})
        plot = new_figure("views", "", "", height=180, x_range=models.Range1d(0, 1),
                          y_range=models.FactorRange(factors=[]))  # fmt: skip
        plot.segment("model", "label", "averaged", "label", source=self.dots, color=BLUE,
                     line_alpha=0.3, line_width=2)  # fmt: skip
        for who, column, color, marker in WHO:
            drawn = plot.scatter(column, "label", source=self.dots, size=12, color=color,
                                 marker=marker, legend_label=who)  # fmt: skip
            tips = [("views", "@all"), (who, f"@{column}{{0.000}}")]
            plot.add_tools(models.HoverTool(renderers=[drawn], tooltips=tips))
        plot.xgrid.visible = plot.ygrid.visible = True
        quiet_legend(plot, stacked=True)
        super().__init__(title, plot)

    def show(self, tried: Sequence[Tried], every: Sequence[str], metric: str) -> None:
        """Show what was tried so far.

        Args:
            tried: In the order of trying, the newest last.
            every: The names of all views.
            metric: What the score is called.
        """
        labels = [f"{i}. {_short(t.views, every)}" for i, t in enumerate(tried, 1)]
        self.dots.data = {
            "label": labels,
            "model": [t.model for t in tried],
            "averaged": [t.averaged for t in tried],
            "all": [", ".join(t.views) for t in tried],
        }
        plot = self.figures[0]
        plot.y_range.factors = labels[::-1]
        plot.height = 130 + ROW * len(labels)
        plot.xaxis.axis_label = f"{metric} of held-out rows"
        scores = np.array([(t.model, t.averaged) for t in tried])
        low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
        margin = max(0.1 * (high - low), 0.01)
        plot.x_range.update(start=low - margin, end=high + margin)
        self.describe("; ".join(_reading(t, every, metric) for t in tried[-1:]) + _best(tried))

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()


def _named(views: Sequence[str], every: Sequence[str]) -> str:
    """A combination's name: the views that are on, or those that are off where these are fewer."""
    off = [v for v in every if v not in views]
    if not off:
        return "all views" if len(every) > 1 else str(every[0])
    return f"all but {', '.join(off)}" if len(off) < len(views) else ", ".join(views)


def _short(views: Sequence[str], every: Sequence[str]) -> str:
    message = _named(views, every)
    return message if len(message) <= LETTERS else f"{message[: LETTERS - 1]}…"


def _reading(tried: Tried, every: Sequence[str], metric: str) -> str:
    reading = f"With {_named(tried.views, every)} {metric} is {tried.model:.3f}"
    if np.isfinite(tried.averaged):
        reading += f" against {tried.averaged:.3f} for averaged kernels"
    return reading


def _best(tried: Sequence[Tried]) -> str:
    ahead = [t.model - t.averaged for t in tried if np.isfinite(t.averaged)]
    if len(ahead) < 2:
        return "."
    return f"; over {len(ahead)} combinations the two differ by {np.mean(ahead):+.3f} on average."
