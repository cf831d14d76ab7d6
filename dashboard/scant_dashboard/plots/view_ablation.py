"""Scores of a multi-view model by combination of views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import BLUE, VERMILION, models, new_figure, place_legend_above
from scant_dashboard.translate import later, tr

ROW = 30  # pixels per combination
LETTERS = 22  # maximum letters of a combination's name
WHO = ((later("this model"), "model", BLUE, "circle"),
       (later("averaged kernels"), "averaged", VERMILION, "diamond"))  # fmt: skip


class AblationResult(NamedTuple):
    """Scores of a combination of views; NaN if a method has no score."""

    views: tuple[str, ...]
    model: float
    averaged: float


class ViewAblationPlot(Plot):
    """Score (x) by combination of views (y), in the order of evaluation."""

    def __init__(self, title: str) -> None:
        self.dots = models.ColumnDataSource({"label": [], "model": [], "averaged": [], "all": []})
        plot = new_figure("views", "", "", height=180, x_range=models.Range1d(0, 1),
                          y_range=models.FactorRange(factors=[]))  # fmt: skip
        plot.segment("model", "label", "averaged", "label", source=self.dots, color=BLUE,
                     line_alpha=0.3, line_width=2)  # fmt: skip
        for who, column, color, marker in WHO:
            dots = plot.scatter(column, "label", source=self.dots, size=12, color=color,
                                 marker=marker, legend_label=tr(who))  # fmt: skip
            tips = [(tr("views"), "@all"), (tr(who), f"@{column}{{0.000}}")]
            plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        plot.xgrid.visible = plot.ygrid.visible = True
        place_legend_above(plot, stacked=True)
        super().__init__(title, plot)

    def show(self, results: Sequence[AblationResult], every: Sequence[str], metric: str) -> None:
        """Show the combinations evaluated so far.

        Args:
            results: The combinations in the order of evaluation, the newest last.
            every: Names of all views.
            metric: Name of the score.
        """
        labels = [f"{i}. {_short(t.views, every)}" for i, t in enumerate(results, 1)]
        self.dots.data = {
            "label": labels,
            "model": [t.model for t in results],
            "averaged": [t.averaged for t in results],
            "all": [", ".join(t.views) for t in results],
        }
        plot = self.figures[0]
        plot.y_range.factors = labels[::-1]
        plot.height = 130 + ROW * len(labels)
        plot.xaxis.axis_label = tr("{metric} of held-out rows", metric=metric)
        scores = np.array([(t.model, t.averaged) for t in results])
        low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
        margin = max(0.1 * (high - low), 0.01)
        plot.x_range.update(start=low - margin, end=high + margin)
        self.describe(_reading(results[-1], every, metric) + _best(results))

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()


def _named(views: Sequence[str], every: Sequence[str]) -> str:
    """Name a combination by its views, or by the absent ones if these are fewer."""
    off = [v for v in every if v not in views]
    if not off:
        return tr("all views") if len(every) > 1 else str(every[0])
    return (
        tr("all but {views}", views=", ".join(off)) if len(off) < len(views) else ", ".join(views)
    )


def _short(views: Sequence[str], every: Sequence[str]) -> str:
    message = _named(views, every)
    return message if len(message) <= LETTERS else f"{message[: LETTERS - 1]}…"


def _reading(result: AblationResult, every: Sequence[str], metric: str) -> str:
    views = _named(result.views, every)
    if np.isfinite(result.averaged):
        return tr(
            "With {views}, {metric} is {value:.3f}, against {averaged:.3f} for averaged kernels.",
            views=views,
            metric=metric,
            value=result.model,
            averaged=result.averaged,
        )
    return tr(
        "With {views}, {metric} is {value:.3f}.", views=views, metric=metric, value=result.model
    )


def _best(results: Sequence[AblationResult]) -> str:
    gains = [t.model - t.averaged for t in results if np.isfinite(t.averaged)]
    if len(gains) < 2:
        return ""
    return " " + tr("Over {n} combinations, the two differ by {gain:+.3f} on average.",
                    n=len(gains), gain=np.mean(gains))  # fmt: skip
