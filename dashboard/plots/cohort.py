"""Patients: the time predicted of each with its interval, against what is known of him."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, GREY, VERMILION, models, new_figure, quiet_legend

Each = Float[np.ndarray, " p"]


class CohortPlot(Plot):
    """Predicted against observed times; who was last seen alive belongs somewhere further right.

    Both axes are logarithmic: times are learnt so, and an interval is as wide for a short life as
    for a long one.
    """

    def __init__(self, title: str = "Patients, predicted against observed") -> None:
        self.died = columns("time", "mean", "low", "high")
        self.alive = columns("time", "mean", "low", "high")
        self.line = columns("x", "y")
        plot = new_figure("cohort", "observed time", "predicted time", height=340,
                          x_axis_type="log", y_axis_type="log")  # fmt: skip
        plot.line("x", "y", source=self.line, color=GREY, line_width=1.5)
        looks = ((self.alive, VERMILION, "triangle_pin", "alive when last seen"),
                 (self.died, BLUE, "circle", "died"))  # fmt: skip
        for source, colour, marker, label in looks:
            plot.segment("time", "low", "time", "high", source=source, color=colour,
                         line_alpha=0.35, line_width=2)  # fmt: skip
            dots = plot.scatter("time", "mean", source=source, size=8, color=colour,
                                marker=marker, legend_label=label)  # fmt: skip
            tips = [(label, "@time{0.0}"), ("predicted", "@mean{0.0} (@low{0.0} to @high{0.0})")]
            plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        for axis in plot.axis:
            axis.formatter = models.NumeralTickFormatter(format="0.[0]")
        quiet_legend(plot)
        super().__init__(title, plot)

    def name(self, time: str) -> None:
        """Name the axes, with the unit of time."""
        plot = self.figures[0]
        plot.xaxis.axis_label, plot.yaxis.axis_label = f"observed {time}", f"predicted {time}"

    def show(self, time: Each, died: Each, predicted: Each, low: Each, high: Each) -> None:
        """Show p patients; `died` is 1 where the time is that of death."""
        dead = died > 0.5
        for source, of in ((self.died, dead), (self.alive, ~dead)):
            put(source, time=time[of], mean=predicted[of], low=low[of], high=high[of])
        if not len(time):
            put(self.line, x=[], y=[])
            self.describe("No patient was held out.")
            return
        ends = [float(time.min()), float(time.max())]
        put(self.line, x=ends, y=ends)
        words = []
        if dead.any():
            inside = (time >= low) & (time <= high)
            off = np.median(np.exp(np.abs(np.log(predicted[dead] / time[dead]))))
            words.append(
                f"{dead.sum()} held-out patients died: their times are off by a factor of "
                f"{off:.2f} (median), and the 95% interval holds {inside[dead].mean():.0%} of them"
            )
        if not dead.all():
            later = float(np.mean(high[~dead] >= time[~dead]))
            words.append(
                f"{(~dead).sum()} were last seen alive, which the interval allows for {later:.0%}"
            )
        self.describe(f"{'; '.join(words)}.")
