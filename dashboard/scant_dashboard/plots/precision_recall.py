"""Precision against recall of several methods, each marked at a threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, empty, update_source
from scant_dashboard.plots.fixed_legend import FixedLegend, group_style, width
from scant_dashboard.plots.theme import GRAY, models, new_figure, tick_labels
from scant_dashboard.translate import later, tr


class PrecisionRecallPlot(Plot):
    """One curve per method, the first one bold; the dotted line is random guessing."""

    def __init__(self, title: str = later("What a threshold trades"), height: int = 420) -> None:
        self.curves = models.ColumnDataSource(
            {n: [] for n in ("recall", "precision", "color", "dash", "width")}
        )
        self.marks = models.ColumnDataSource(
            {n: [] for n in ("recall", "precision", "color", "marker", "method", "threshold")}
        )
        self.guess = columns("x", "y")
        plot = new_figure("precision_recall", tr("recall: share of the rare class found"),
                          tr("precision: share of correct positives"), height=height,
                          x_range=models.Range1d(0, 1.02),
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        plot.line("x", "y", source=self.guess, color=GRAY, line_dash="dotted", line_width=2)
        plot.multi_line("recall", "precision", source=self.curves, line_color="color",
                        line_dash="dash", line_width="width", line_alpha=0.9)  # fmt: skip
        dots = plot.scatter("recall", "precision", source=self.marks, size=11, color="color",
                            marker="marker", line_color=GRAY)  # fmt: skip
        tips = [(tr("method"), "@method"), (tr("threshold"), "@threshold{0.000}"),
                (tr("recall"), "@recall{0%}"), (tr("precision"), "@precision{0%}")]  # fmt: skip
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        for axis in plot.axis:
            axis.formatter = tick_labels("0%")
        self.legend = FixedLegend(plot, lines=True, stacked=True)
        super().__init__(title, plot)

    def show(
        self,
        curves: Float[np.ndarray, "m 3 t"],
        methods: Sequence[str],
        share: float,
    ) -> None:
        """Show the curves of m methods.

        Args:
            curves: Threshold, precision and recall at t points of each curve.
            methods: Names of the methods, the run's own model first.
            share: Share of the rare class among the rows, the precision of random guessing.
        """
        every = range(len(methods))
        self.curves.data = {
            "recall": [c[2] for c in curves],
            "precision": [c[1] for c in curves],
            "color": [group_style(k)[0] for k in every],
            "dash": [group_style(k)[2] for k in every],
            "width": [width(k) for k in every],
        }
        self.legend.name([tr(name) for name in methods])
        update_source(self.guess, x=[0, 1.02], y=[share, share])
        empty(self.marks)
        self.describe(tr("Precision against recall of {n} methods.", n=len(methods)))

    def mark(self, at: Float[np.ndarray, "m 3"], methods: Sequence[str], reading: str) -> None:
        """Mark a point on each curve: its threshold, precision and recall."""
        every = range(len(methods))
        update_source(
            self.marks,
            recall=at[:, 2],
            precision=at[:, 1],
            color=[group_style(k)[0] for k in every],
            marker=[group_style(k)[1] for k in every],
            method=[tr(name) for name in methods],
            threshold=at[:, 0],
        )
        self.describe(f"{reading} {tr('Dotted: random guessing.')}")
