"""A function of one variable known by averages over intervals: bars, dots, and the posterior."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, name_drawn, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    GREEN,
    VERMILION,
    drawn_on,
    models,
    new_figure,
    quiet_legend,
)

Grid = Float[np.ndarray, "g"]
Rows = Float[np.ndarray, "n"]


class IntervalPlot(Plot):
    """The posterior of short averages as a band, over bars that are the observed averages.

    An interval that is short beside the range is a dot. Where the truth is known it is a thin line.

    Args:
        title: The heading.
        select: Whether an interval may be drawn on it.
    """

    def __init__(self, title: str = "Posterior over time", select: bool = False) -> None:
        self.band = columns("x", "mean", "lo", "hi", "y_lo", "y_hi", "truth")
        self.bars = columns("x0", "x1", "y")
        self.dots = columns("x", "y")
        self.held = columns("x", "y")
        self.others = columns("x", "y")
        tools = "xbox_select" if select else ""
        plot = new_figure("intervals", "", "", height=360, tools=tools)
        if select:
            drawn_on(plot)
        plot.varea("x", "y_lo", "y_hi", source=self.band, color=BLUE, fill_alpha=0.12,
                   legend_label="95% of new observations")  # fmt: skip
        plot.varea("x", "lo", "hi", source=self.band, color=BLUE, fill_alpha=0.28,
                   legend_label="95% of the average")  # fmt: skip
        plot.scatter("x", "y", source=self.others, size=3, color=GRAY, alpha=0.35,
                     legend_label="other tasks")  # fmt: skip
        plot.line("x", "truth", source=self.band, color=GRAY, line_width=1.2, legend_label="truth")
        plot.line("x", "mean", source=self.band, color=BLUE, line_width=2.2, legend_label="mean")
        plot.scatter("x", "y", source=self.dots, size=4, color=GRAY, alpha=0.7,
                     legend_label="short observations")  # fmt: skip
        plot.scatter("x", "y", source=self.held, size=4, color=GREEN, alpha=0.6,
                     legend_label="held out")  # fmt: skip
        plot.segment("x0", "y", "x1", "y", source=self.bars, color=VERMILION, line_width=3,
                     legend_label="observed averages")  # fmt: skip
        quiet_legend(plot)
        self.asked = models.BoxAnnotation(
            fill_color=VERMILION, fill_alpha=0.12, line_color=VERMILION, line_width=2, visible=False
        )
        if select:
            plot.add_layout(self.asked)
        super().__init__(title, plot)

    def mark(self, lo: Sequence[float], hi: Sequence[float]) -> None:
        """Draw the interval that is asked about."""
        self.asked.update(left=lo[0], right=hi[0], visible=True)

    def clear(self) -> None:
        super().clear()
        self.asked.visible = False

    def name(self, x: str, y: str) -> None:
        """Name the axes."""
        self.figures[0].xaxis.axis_label, self.figures[0].yaxis.axis_label = x, y

    def observe(self, lo: Rows, hi: Rows, y: Rows, held: Rows) -> None:
        """Show the n observations of the task; `held` is 1 where one was kept out of training."""
        span = max(float(np.max(hi) - np.min(lo)), 1e-300) if len(lo) else 1.0
        long = (hi - lo) > 0.01 * span
        kept = np.asarray(held, bool)
        middle = (lo + hi) / 2
        observed = long & ~kept
        update_source(self.bars, x0=lo[observed], x1=hi[observed], y=y[observed])
        update_source(self.dots, x=middle[~long & ~kept], y=y[~long & ~kept])
        update_source(self.held, x=middle[kept], y=y[kept])

    def beside(self, x: Rows, y: Rows) -> None:
        """Show what other tasks observed at x, brought to the scale of this one."""
        update_source(self.others, x=x, y=y)

    def show(self, x: Grid, mean: Grid, std_f: Grid, std_y: Grid, truth: Grid) -> None:
        """Show the posterior of short averages around x, in the unit of the task."""
        update_source(
            self.band,
            x=x,
            mean=mean,
            truth=truth,
            lo=mean - 1.96 * std_f,
            hi=mean + 1.96 * std_f,
            y_lo=mean - 1.96 * std_y,
            y_hi=mean + 1.96 * std_y,
        )
        name_drawn(self.figures[0])
        widest = int(np.argmax(std_f))
        reading = (
            f"Mean between {mean.min():.3g} and {mean.max():.3g}; the widest 95% interval, "
            f"± {1.96 * std_f[widest]:.2g}, is at {x[widest]:.4g}"
        )
        if np.isfinite(truth).any():
            reading += f"; RMSE against the truth {np.sqrt(np.nanmean((mean - truth) ** 2)):.3g}"
        self.describe(reading + ".")
