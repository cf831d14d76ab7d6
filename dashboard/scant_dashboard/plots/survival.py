"""Survival curves: observed and predicted."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    GREEN,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.translate import as_number, later, tr

Times = Float[np.ndarray, " t"]


class SurvivalPlot(Plot):
    """The Kaplan-Meier estimate with its bounds, and two predicted survival curves.

    One is the empirical curve of the predicted times (Kandemir 2015, fig. 3, right); the other is
    the mean of the patients' predicted survival functions, which includes their uncertainty. Curves
    are right-continuous step functions; missing bounds are left out.
    """

    target = "time"

    def __init__(self, title: str = later("Survival, observed and predicted")) -> None:
        self.target = tr(self.target)
        self.band = columns("time", "low", "high")
        self.curves = columns("time", "observed", "times", "expected")
        plot = new_figure("survival", self.target, tr("share surviving"), height=340,
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        # Explicit corners: Bokeh's `varea_step` hangs the browser while it has no rows.
        plot.varea("time", "low", "high", source=self.band, fill_color=GRAY, fill_alpha=0.3,
                   legend_label=tr("its 95%"))  # fmt: skip
        styles = (("observed", GRAY, "solid", tr("observed (Kaplan-Meier)")),
                 ("times", BLUE, "dashed", tr("predicted times")),
                 ("expected", GREEN, "solid", tr("predicted, with uncertainty")))  # fmt: skip
        for column, color, dash, label in styles:
            plot.step("time", column, mode="after", source=self.curves, color=color,
                      line_width=2.5, line_dash=dash, legend_label=label)  # fmt: skip
        plot.yaxis.formatter = tick_labels("0%")
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
            self.describe(tr("No subject was held out."))
            return
        inside = float(np.mean((expected >= low) & (expected <= high)))
        self.describe(
            tr(
                "Median time until the event: {observed} observed, {predicted} predicted, "
                "{expected} with uncertainty. The curve of the predicted times differs from the "
                "observed one by at most {difference:.0%}, that with uncertainty by at most "
                "{uncertain_difference:.0%}. The latter is within the observed bounds "
                "{inside:.0%} of the time.",
                observed=_median(time, share),
                predicted=_median(time, predicted),
                expected=_median(time, expected),
                difference=np.nanmax(np.abs(predicted - share)),
                uncertain_difference=np.nanmax(np.abs(expected - share)),
                inside=inside,
            )
        )


def _median(time: Times, share: Times) -> str:
    """Format the median survival time, or a lower bound if the curve stays above one half."""
    half = np.flatnonzero(share <= 0.5)
    if not len(half):
        return tr("more than {time:.3g}", time=time[-1])
    return as_number(f"{time[half[0]]:.3g}")
