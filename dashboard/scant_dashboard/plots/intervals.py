"""A function of one variable observed as averages over intervals, with its posterior."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant.metrics import Z_95
from scant_dashboard.plots.base import Plot, columns, hide_empty_legend_items, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    GREEN,
    VERMILION,
    activate_box_select,
    models,
    new_figure,
    place_legend_above,
)
from scant_dashboard.translate import later, tr

Grid = Float[np.ndarray, "g"]
Rows = Float[np.ndarray, "n"]


class IntervalPlot(Plot):
    """Posterior of averages over short intervals as a band, over bars that are observed averages.

    Intervals that are short compared with the range are dots. A known truth is a thin line.

    Args:
        title: The heading.
        select: Whether the visitor may draw an interval.
    """

    def __init__(self, title: str = later("Posterior over time"), select: bool = False) -> None:
        self.band = columns("x", "mean", "lo", "hi", "y_lo", "y_hi", "truth")
        self.bars = columns("x0", "x1", "y")
        self.dots = columns("x", "y")
        self.held = columns("x", "y")
        self.others = columns("x", "y")
        tools = "xbox_select" if select else ""
        plot = new_figure("intervals", "", "", height=360, tools=tools)
        if select:
            activate_box_select(plot)
        plot.varea("x", "y_lo", "y_hi", source=self.band, color=BLUE, fill_alpha=0.12,
                   legend_label=tr("95% of new observations"))  # fmt: skip
        plot.varea("x", "lo", "hi", source=self.band, color=BLUE, fill_alpha=0.28,
                   legend_label=tr("95% of the average"))  # fmt: skip
        plot.scatter("x", "y", source=self.others, size=3, color=GRAY, alpha=0.35,
                     legend_label=tr("other tasks"))  # fmt: skip
        for name, color, width, label in (("truth", GRAY, 1.2, tr("truth")),
                                          ("mean", BLUE, 2.2, tr("mean"))):  # fmt: skip
            plot.line("x", name, source=self.band, color=color, line_width=width,
                      legend_label=label)  # fmt: skip
        plot.scatter("x", "y", source=self.dots, size=4, color=GRAY, alpha=0.7,
                     legend_label=tr("short observations"))  # fmt: skip
        plot.scatter("x", "y", source=self.held, size=4, color=GREEN, alpha=0.6,
                     legend_label=tr("held out"))  # fmt: skip
        plot.segment("x0", "y", "x1", "y", source=self.bars, color=VERMILION, line_width=3,
                     legend_label=tr("observed averages"))  # fmt: skip
        place_legend_above(plot)
        self.query = models.BoxAnnotation(
            fill_color=VERMILION, fill_alpha=0.12, line_color=VERMILION, line_width=2, visible=False
        )
        if select:
            plot.add_layout(self.query)
        super().__init__(title, plot)

    def mark(self, lo: Sequence[float], hi: Sequence[float]) -> None:
        """Draw the queried interval."""
        self.query.update(left=lo[0], right=hi[0], visible=True)

    def clear(self) -> None:
        super().clear()
        self.query.visible = False

    def name(self, x: str, y: str) -> None:
        """Set the axis labels."""
        self.figures[0].xaxis.axis_label, self.figures[0].yaxis.axis_label = x, y

    def observe(self, lo: Rows, hi: Rows, y: Rows, held: Rows) -> None:
        """Show the n observations of the task; `held` is 1 for held-out ones."""
        span = max(float(np.max(hi) - np.min(lo)), 1e-300) if len(lo) else 1.0
        long = (hi - lo) > 0.01 * span
        held_out = np.asarray(held, bool)
        middle = (lo + hi) / 2
        observed = long & ~held_out
        update_source(self.bars, x0=lo[observed], x1=hi[observed], y=y[observed])
        update_source(self.dots, x=middle[~long & ~held_out], y=y[~long & ~held_out])
        update_source(self.held, x=middle[held_out], y=y[held_out])

    def show_others(self, x: Rows, y: Rows) -> None:
        """Show observations of other tasks at x, on the scale of this task."""
        update_source(self.others, x=x, y=y)

    def show(self, x: Grid, mean: Grid, std_f: Grid, std_y: Grid, truth: Grid) -> None:
        """Show the posterior of averages over short intervals at x, in the unit of the task."""
        update_source(
            self.band,
            x=x,
            mean=mean,
            truth=truth,
            lo=mean - Z_95 * std_f,
            hi=mean + Z_95 * std_f,
            y_lo=mean - Z_95 * std_y,
            y_hi=mean + Z_95 * std_y,
        )
        hide_empty_legend_items(self.figures[0])
        widest = int(np.argmax(std_f))
        reading = tr(
            "The mean is between {low:.3g} and {high:.3g}; the widest 95% interval, "
            "± {half:.2g}, is at {x:.4g}.",
            low=mean.min(),
            high=mean.max(),
            half=Z_95 * std_f[widest],
            x=x[widest],
        )
        if np.isfinite(truth).any():
            error = np.sqrt(np.nanmean((mean - truth) ** 2))
            reading += " " + tr("RMSE against the truth: {error:.3g}.", error=error)
        self.describe(reading)
