"""Survival curves: what happened to the patients, and what was predicted of them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, GREY, models, new_figure, quiet_legend

Curve = Float[np.ndarray, "3 t"]
WHO = (("observed", GREY, [6, 3]), ("predicted", BLUE, []))


class SurvivalPlot(Plot):
    """Kaplan-Meier estimates with their bounds, as steps (Kandemir 2015, Fig. 3, right).

    A curve falls where somebody dies, and stays until the next; a bound is left out where there is
    none.
    """

    def __init__(self, title: str = "Survival, observed and predicted") -> None:
        self.sources = [columns("time", "share", "low", "high") for _ in WHO]
        plot = new_figure("survival", "time", "share that lives", height=340,
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        for source, (who, colour, dash) in zip(self.sources, WHO):
            plot.varea_step("time", "low", "high", step_mode="after", source=source,
                            fill_color=colour, fill_alpha=0.2)  # fmt: skip
            plot.step("time", "share", mode="after", source=source, color=colour, line_width=2.5,
                      line_dash=dash, legend_label=who)  # fmt: skip
            dots = plot.scatter("time", "share", source=source, size=9, alpha=0, hover_alpha=0.6,
                                color=colour)  # fmt: skip
            tips = [(who, "@share{0%} (@low{0%} to @high{0%})"), ("at", "@time{0.0}")]
            plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        plot.yaxis.formatter = models.NumeralTickFormatter(format="0%")
        quiet_legend(plot)
        super().__init__(title, plot)

    def name(self, time: str) -> None:
        """Name the axis of time, with its unit."""
        self.figures[0].xaxis.axis_label = time

    def show(self, time: Float[np.ndarray, " t"], observed: Curve, predicted: Curve) -> None:
        """Show estimates, lower and upper bounds at t times, in the order of time."""
        for source, (share, low, high) in zip(self.sources, (observed, predicted)):
            # A band of no width draws nothing, where a missing bound would break its outline.
            low, high = (np.where(np.isfinite(b), b, share) for b in (low, high))
            put(source, time=time, share=share, low=low, high=high)
        if not len(time):
            self.describe("No patient was held out.")
            return
        apart = np.abs(observed[0] - predicted[0])
        widest = int(np.nanargmax(apart))
        inside = (predicted[0] >= observed[1]) & (predicted[0] <= observed[2])
        bounded = np.isfinite(observed[1]) & np.isfinite(observed[2])
        words = (
            f"{_median(time, observed[0], 'Of the observed, half')}; "
            f"{_median(time, predicted[0], 'of the predicted, half')}. The curves are at most "
            f"{apart[widest]:.0%} apart, at {time[widest]:.3g}"
        )
        if bounded.any():
            words += (
                f"; the predicted one lies within the bounds of the observed "
                f"{inside[bounded].mean():.0%} of the time"
            )
        self.describe(words + ".")


def _median(time: Float[np.ndarray, " t"], share: Float[np.ndarray, " t"], who: str) -> str:
    """When half are dead, if that was seen."""
    half = np.flatnonzero(share <= 0.5)
    return f"{who} live beyond {time[half[0] if len(half) else -1]:.3g}"
