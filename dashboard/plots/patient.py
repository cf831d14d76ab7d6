"""A quantity of one whole, averaged over its parts: a patient's time, from samples of tissue."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, GREEN, models, new_figure, quiet_legend

Rows = Float[np.ndarray, " m"]
SAMPLE = 14  # pixels of a sample


class PatientPlot(Plot):
    """Each sample's predicted time with its interval of 95%, their average, and what happened."""

    def __init__(self, title: str) -> None:
        self.samples = columns("y", "mean", "low", "high")
        self.whole = columns("y", "mean", "low", "high")
        self.truth = columns("x", "y")
        plot = new_figure("patient", "time", "", height=200)
        plot.segment("low", "y", "high", "y", source=self.samples, color=BLUE, line_alpha=0.35,
                     line_width=2)  # fmt: skip
        plot.scatter("mean", "y", source=self.samples, size=5, color=BLUE, alpha=0.6,
                     legend_label="a sample")  # fmt: skip
        plot.segment("low", "y", "high", "y", source=self.whole, color=BLUE, line_width=5)
        plot.scatter("mean", "y", source=self.whole, size=14, color=BLUE,
                     legend_label="the patient, with 95%")  # fmt: skip
        plot.line("x", "y", source=self.truth, color=GREEN, line_width=3, line_dash=[6, 3],
                  legend_label="what happened")  # fmt: skip
        plot.yaxis.visible = False
        plot.ygrid.visible = False
        plot.xgrid.visible = True
        plot.x_range.start = 0
        quiet_legend(plot)
        plot.legend[0].click_policy = "none"
        self.plot_range = plot.y_range = models.Range1d(-1.5, 1)
        super().__init__(title, plot)

    def name(self, time: str) -> None:
        """Name the axis of time, with its unit."""
        self.figures[0].xaxis.axis_label = time

    def show(
        self,
        who: str,
        whole: tuple[float, float, float],
        samples: Float[np.ndarray, "3 m"],
        truth: float,
        died: bool,
    ) -> None:
        """Show one patient.

        Args:
            who: The name.
            whole: The predicted time with the ends of its interval.
            samples: The same of each of m samples.
            truth: When the patient died or was last seen; NaN where nobody knows.
            died: Whether that was death.
        """
        mean, low, high = samples
        m = len(mean)
        put(self.samples, y=np.arange(1, m + 1)[::-1], mean=mean, low=low, high=high)
        put(self.whole, y=[0], mean=whole[:1], low=whole[1:2], high=whole[2:])
        known = bool(np.isfinite(truth))
        put(self.truth, x=[truth] * 2 if known else [], y=[-0.7, m + 0.7] if known else [])
        self.plot_range.update(start=-0.9, end=m + 0.9)
        self.figures[0].height = 150 + SAMPLE * (m + 1)
        time, *ends = (f"{v:.3g}" for v in whole)
        words = (
            f"{who}: {time} predicted, between {ends[0]} and {ends[1]} with 95%, from "
            f"{m} {'sample' if m == 1 else 'samples'}"
        )
        if known:
            words += f"; {'died at' if died else 'alive when last seen, at'} {truth:.3g}"
            inside = whole[1] <= truth <= whole[2]
            if died:
                words += ", within it" if inside else ", outside it"
        self.describe(words + ".")
