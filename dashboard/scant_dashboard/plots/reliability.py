"""Reliability diagram: accuracy against confidence (Guo et al. 2017, ICML)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.events import Metric
from scant.metrics import Z_95
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.table import figure
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.translate import later, tr

BINS = 10  # of equal width, in all reports


class ReliabilityPlot(Plot):
    """Accuracy in bins of confidence, with the ideal diagonal; bars are shares of the rows."""

    def __init__(self, title: str = later("Can its probabilities be trusted?")) -> None:
        self.points = columns("confidence", "accuracy", "low", "high", "rows")
        self.bars = columns("left", "right", "share")
        plot = new_figure(
            "reliability",
            tr("predicted probability"),
            tr("share correct"),
            x_range=models.Range1d(0, 1.02),
            y_range=models.Range1d(0, 1.02),
        )
        plot.quad("left", "right", "share", 0, source=self.bars, color=GRAY, fill_alpha=0.35,
                  line_width=0, legend_label=tr("share of the rows"))  # fmt: skip
        plot.add_layout(models.Slope(gradient=1, y_intercept=0, line_color=GRAY, line_width=1.5,
                                     level="underlay"))  # fmt: skip
        plot.segment("confidence", "low", "confidence", "high", source=self.points, color=BLUE,
                     line_width=2)  # fmt: skip
        dots = plot.scatter("confidence", "accuracy", source=self.points, size=10, color=BLUE,
                            legend_label=tr("observed (line: 95% interval)"))  # fmt: skip
        tips = [
            (tr("predicted"), "@confidence{0.0%}"),
            (tr("correct"), "@accuracy{0.0%}"),
            (tr("rows"), "@rows{0}"),
        ]
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        for axis in plot.axis:
            axis.formatter = tick_labels("0%")
        place_legend_above(plot, stacked=True)
        super().__init__(title, plot)

    def show(self, bins: Float[np.ndarray, "3 b"], of: str = "") -> None:
        """Show b bins; empty ones are left out.

        Args:
            bins: Mean confidence, accuracy and number of rows, for the predicted class or for `of`.
            of: Name of the class; its frequency then replaces accuracy.
        """
        x, y = self.figures[0].xaxis[0], self.figures[0].yaxis[0]
        x.axis_label = tr("predicted probability")
        y.axis_label = tr("share correct")
        if of:
            x.axis_label = tr("predicted probability of {name}", name=of)
            y.axis_label = tr("share of {name}", name=of)
        confidence, accuracy, n = bins[:, np.nan_to_num(bins[2]) > 0]
        total = max(n.sum(), 1)
        left = np.minimum(np.floor(confidence * BINS), BINS - 1) / BINS
        update_source(self.bars, left=left, right=left + 1 / BINS, share=n / total)
        half = Z_95 * np.sqrt((accuracy * (1 - accuracy) + 1 / (4 * n)) / n)  # not 0 at 0 or 1
        update_source(self.points, confidence=confidence, accuracy=accuracy, rows=n,
            low=np.clip(accuracy - half, 0, 1), high=np.clip(accuracy + half, 0, 1))  # fmt: skip
        if not len(n):
            self.describe(tr("No row was held out."))
            return
        mean, right = float((n * confidence).sum() / total), float((n * accuracy).sum() / total)
        if of:
            self.describe(
                tr(
                    "{n:,.0f} held-out rows: the mean probability of {name} is {mean:.0%}, the "
                    "share {share:.0%}.",
                    n=total,
                    name=of,
                    mean=mean,
                    share=right,
                )
            )
            return
        error = float((n * np.abs(confidence - accuracy)).sum() / total)
        verdict = (
            tr("overconfident") if mean > right + 0.03
            else tr("underconfident") if mean < right - 0.03
            else tr("well calibrated on average")
        )  # fmt: skip
        self.describe(
            tr(
                "{n:,.0f} held-out rows: mean confidence {mean:.0%}, accuracy {share:.0%}, "
                "{verdict}; ECE {error}.",
                n=total,
                mean=mean,
                share=right,
                verdict=verdict,
                error=figure(Metric("", "ECE", error)),
            )
        )
