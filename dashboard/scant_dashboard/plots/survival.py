"""Survival curves: observed and predicted."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import BLUE, GRAY, GREEN, models, new_figure, place_legend_above

Times = Float[np.ndarray, " t"]


class SurvivalPlot(Plot):
    """The Kaplan-Meier estimate with its bounds, and two predicted survival curves.

    One is the empirical curve of the predicted times (Kandemir 2015, fig. 3, right); the other is
    the mean of the patients' predicted survival functions, which includes their uncertainty. Curves
    are right-continuous step functions; missing bounds are left out.
    """

    target = "time"

    def __init__(self, title: str = "Survival, observed and predicted") -> None:
        self.band = columns("time", "low", "high")
        self.curves = columns("time", "observed", "times", "expected")
        plot = new_figure("survival", "time", "share surviving", height=340,
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        # Explicit corners: Bokeh's `varea_step` hangs the browser while it has no rows.
        plot.varea("time", "low", "high", source=self.band, fill_color=GRAY, fill_alpha=0.3,
                   legend_label="its 95%")  # fmt: skip
        styles = (("observed", GRAY, "solid", "observed (Kaplan-Meier)"),
                 ("times", BLUE, "dashed", "predicted times"),
                 ("expected", GREEN, "solid", "predicted, with uncertainty"))  # fmt: skip
        for column, color, dash, label in styles:
            plot.step("time", column, mode="after", source=self.curves, color=color,
                      line_width=2.5, line_dash=dash, legend_label=label)  # fmt: skip
        plot.yaxis.formatter = models.NumeralTickFormatter(format="0%")
        place_legend_above(plot, stacked=True)
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
            time: Times in ascending order.
            observed: Estimate, lower and upper bound; NaN for a missing bound.
            predicted: Empirical survival curve of the predicted times.
            expected: Mean of the predicted survival functions.
        """
        share, low, high = observed
        # A missing bound would break the band's outline; zero width draws nothing.
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
    """Format the median survival time, or a lower bound if the curve stays above one half."""
    half = np.flatnonzero(share <= 0.5)
    return f"{time[half[0]]:.3g}" if len(half) else f"more than {time[-1]:.3g}"
