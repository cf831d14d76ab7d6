"""One figure of merit by method, with its spread over repeats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.plots.base import Plot
from dashboard.plots.theme import BLUE, VERMILION, models, new_figure
from engine.events import Metric

ROW = 30  # pixels of a method
LOWER = ("NMSE", "NLPD", "RMSE", "SMSE", "SNLP", "ECE")  # of these, less is better


class MethodsPlot(Plot):
    """Methods down, the metric across: a dot with a whisker of one standard deviation either way.

    What was published of other data is left to the table: it is no rival of this run.
    """

    def __init__(self, title: str = "Beside other methods") -> None:
        self.dots = models.ColumnDataSource(
            {"method": [], "value": [], "low": [], "high": [], "colour": [], "marker": []}
        )
        plot = new_figure("methods", "", "", height=200, y_range=models.FactorRange(factors=[]))
        plot.segment("low", "method", "high", "method", source=self.dots, line_color="colour",
                     line_width=3, line_alpha=0.7)  # fmt: skip
        drawn = plot.scatter("value", "method", source=self.dots, marker="marker", size=12,
                             color="colour")  # fmt: skip
        tips = [("", "@method"), ("", "@value{0.000} (@low{0.000} to @high{0.000})")]
        plot.add_tools(models.HoverTool(renderers=[drawn], tooltips=tips))
        plot.xgrid.visible = True
        super().__init__(title, plot)

    def show(self, metrics: Sequence[Metric], name: str) -> None:
        """Show the metric of this name of the run and of every baseline that has it."""
        shown = [m for m in metrics if m.name == name and m.source != "published"]
        shown = [m for m in shown if np.isfinite(m.value)]
        labels = [m.method for m in shown]
        spread = [m.spread or 0.0 for m in shown]
        own = [m.source == "run" for m in shown]
        self.dots.data = {
            "method": labels,
            "value": [m.value for m in shown],
            "low": [m.value - s for m, s in zip(shown, spread)],
            "high": [m.value + s for m, s in zip(shown, spread)],
            "colour": [BLUE if is_own else VERMILION for is_own in own],
            "marker": ["circle" if is_own else "diamond" for is_own in own],
        }
        less = name in LOWER
        plot = self.figures[0]
        plot.y_range.factors = labels[::-1]
        plot.height = 90 + ROW * len(labels)
        plot.xaxis.axis_label = f"{name} ({'less' if less else 'more'} is better)"
        self.describe(_in_words(shown, name, less))

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()


def _in_words(shown: Sequence[Metric], name: str, less: bool) -> str:
    if len(shown) < 2:
        return "No other method was fitted to the same rows."
    ranked = sorted(shown, key=lambda m: m.value if less else -m.value)
    own = next((i for i, m in enumerate(ranked) if m.source == "run"), None)
    said = ", ".join(
        f"{m.method} {m.value:.3f}" + (f" ± {m.spread:.3f}" if m.spread else "") for m in ranked
    )
    place = f"; this run is number {own + 1} of {len(ranked)}" if own is not None else ""
    return f"{name}, best first: {said}{place}."
