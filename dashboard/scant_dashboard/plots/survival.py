"""Survival curves: observed and predicted."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import BLUE, GRAY, GREEN, models, new_figure, quiet_legend

Times = Float[np.ndarray, " t"]


class SurvivalPlot(Plot):
    """The Kaplan-Meier estimate with its bounds, beside two predictions.

    One is the curve of the predicted times as if they were sure (Kandemir 2015, Fig. 3, right), the
    other the mean of what is predicted of each patient, uncertainty included. A curve falls where
    somebody dies, and stays until the next; a bound is left out where there is none.
    """

    target = "time"

    def __init__(self, title: str = "Survival, observed and predicted") -> None:
        self.band = columns("time", "low", "high")
        self.curves = columns("time", "observed", "times", "expected")
        plot = new_figure("survival", "time", "share surviving", height=340,
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        # Corner by corner: Bokeh's own area of steps hangs the browser while it has no rows.
        plot.varea("time", "low", "high", source=self.band, fill_color=GRAY, fill_alpha=0.3,
                   legend_label="its 95%")  # fmt: skip
        looks = (("observed", GRAY, "solid", "observed (Kaplan-Meier)"),
                 ("times", BLUE, "dashed", "predicted times"),
                 ("expected", GREEN, "solid", "predicted, with uncertainty"))  # fmt: skip
        for column, color, dash, label in looks:
            plot.step("time", column, mode="after", source=self.curves, color=color,
                      line_width=2.5, line_dash=dash, legend_label=label)  # fmt: skip
        plot.yaxis.formatter = models.NumeralTickFormatter(format="0%")
        quiet_legend(plot, stacked=True)
        super().__init__(title, plot)

    def show(
        self,
        time: Times,
        observed: Float[np.ndarray, "3 t"],
        predicted: Times,
        expected: Times,
    ) -> None:
        """Show curves at t times.

        Args:
            time: In their order.
            observed: Estimate, lower and upper bound; NaN where there is no bound.
            predicted: Of the predicted times.
            expected: The mean of the predicted survival functions.
        """
        share, low, high = observed
        # A band of no width draws nothing, where a missing bound would break its outline.
        low, high = (np.where(np.isfinite(b), b, share) for b in (low, high))
        update_source(
            self.band,
            time=np.repeat(time, 2)[1:],
            low=np.repeat(low, 2)[:-1],
            high=np.repeat(high, 2)[:-1],
        )
        update_source(self.curves, time=time, observed=share, times=predicted, expected=expected)
        if not len(time):
            self.describe("No patient was held out.")
            return
        messages = [
            f"{who} at most {np.nanmax(np.abs(curve - share)):.0%}"
            for who, curve in (("the predicted times", predicted), ("with uncertainty", expected))
        ]
        inside = float(np.mean((expected >= low) & (expected <= high)))
        self.describe(
            f"Half live beyond {_median(time, share)}; predicted: {_median(time, predicted)}, with "
            f"uncertainty {_median(time, expected)}. Largest differences from the observed curve: "
            f"{', '.join(messages)}; the latter is within its bounds {inside:.0%} of the time."
        )


def _median(time: Times, share: Times) -> str:
    """When half are dead; the last time where that was not seen."""
    half = np.flatnonzero(share <= 0.5)
    return f"{time[half[0]]:.3g}" if len(half) else f"more than {time[-1]:.3g}"
