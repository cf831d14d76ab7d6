"""Predicted survival times of patients with intervals, against the observed ones."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    VERMILION,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.translate import later, tr

MAX_TICKS = 7  # per axis
Each = Float[np.ndarray, " p"]


class CohortPlot(Plot):
    """Predicted against observed times; for censored patients, predictions should exceed them.

    Both axes are logarithmic because the model predicts the logarithm of time, with intervals of
    similar relative width for short and long survival.
    """

    target = "time"

    def __init__(self, title: str = later("Survival times, predicted against observed")) -> None:
        self.target = tr(self.target)
        self.died = columns("time", "mean", "low", "high")
        self.alive = columns("time", "mean", "low", "high")
        self.line = columns("x", "y")
        plot = new_figure("cohort", tr("observed {target}", target=self.target),
                          tr("predicted {target}", target=self.target), height=340,
                          x_axis_type="log", y_axis_type="log", x_range=models.Range1d(1, 10),
                          y_range=models.Range1d(1, 10))  # fmt: skip
        plot.line("x", "y", source=self.line, color=GRAY, line_width=1.5)
        styles = ((self.alive, VERMILION, "triangle_pin", tr("no event when last seen")),
                 (self.died, BLUE, "circle", tr("event")))  # fmt: skip
        for source, color, marker, label in styles:
            plot.segment("time", "low", "time", "high", source=source, color=color,
                         line_alpha=0.35, line_width=2)  # fmt: skip
            dots = plot.scatter("time", "mean", source=source, size=8, color=color,
                                marker=marker, legend_label=label)  # fmt: skip
            interval = tr("{low} to {high}", low="@low{0.0}", high="@high{0.0}")
            tips = [(label, "@time{0.0}"), (tr("predicted"), f"@mean{{0.0}} ({interval})")]
            plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        for axis in plot.axis:
            axis.formatter = tick_labels("0.[0]")
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(self, time: Each, died: Each, predicted: Each, low: Each, high: Each) -> None:
        """Show p patients; `died` is 1 if the time is that of death, 0 if it is censored."""
        dead = died > 0.5
        for source, rows in ((self.died, dead), (self.alive, ~dead)):
            update_source(
                source, time=time[rows], mean=predicted[rows], low=low[rows], high=high[rows]
            )
        if not len(time):
            update_source(self.line, x=[], y=[])
            self.describe(tr("No subject was held out."))
            return
        observed = [float(time.min()), float(time.max())]
        update_source(self.line, x=observed, y=observed)
        plot = self.figures[0]
        limits = [float(min(low.min(), observed[0])), float(max(high.max(), observed[1]))]
        for axis, span, (start, end) in (
            (plot.xaxis[0], plot.x_range, observed),
            (plot.yaxis[0], plot.y_range, limits),
        ):
            span.update(start=start / 1.15, end=end * 1.15)
            axis.ticker = models.FixedTicker(ticks=_ticks(start / 1.15, end * 1.15))
        reading = []
        if dead.any():
            inside = (time >= low) & (time <= high)
            off = np.median(np.exp(np.abs(np.log(predicted[dead] / time[dead]))))
            reading.append(
                tr(
                    "Held-out subjects with the event: {n}. Their predicted times are off by a "
                    "factor of {off:.2f} (median), and {inside:.0%} of the 95% intervals contain "
                    "the observed time.",
                    n=dead.sum(),
                    off=off,
                    inside=inside[dead].mean(),
                )
            )
        if not dead.all():
            reading.append(
                tr(
                    "Held-out subjects without the event when last seen: {n}. {share:.0%} of their "
                    "intervals are consistent with that.",
                    n=(~dead).sum(),
                    share=np.mean(high[~dead] >= time[~dead]),
                )
            )
        self.describe(" ".join(reading))


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, or the powers only if those are too many."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1, 2, 5), (1,)):
        ticks = [float(m * 10.0**k) for k in powers for m in steps if low <= m * 10.0**k <= high]
        if len(ticks) <= MAX_TICKS:
            break
    return ticks
