"""The predicted survival time of one patient, and the prediction from each sample."""

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
from scant_dashboard.translate import later, ntr, tr

Times = Float[np.ndarray, " t"]
INSIDE = later("Event at {time:.3g}, within the interval.")
OUTSIDE = later("Event at {time:.3g}, outside the interval.")


class PatientPlot(Plot):
    """Survival function of a patient, with median, interval, samples and the outcome."""

    target = "time"

    def __init__(self, title: str) -> None:
        self.target = tr(self.target)
        self.curve = columns("x", "y")
        self.median = columns("x", "y", "low", "high")
        self.samples = columns("x", "y")
        self.truth = columns("x", "y")
        plot = new_figure("patient", self.target, tr("survival probability"), height=320,
                          y_range=models.Range1d(-0.12, 1.02))  # fmt: skip
        plot.line("x", "y", source=self.curve, color=BLUE, line_width=2.5,
                  legend_label=tr("predicted"))  # fmt: skip
        plot.segment("low", "y", "high", "y", source=self.median, color=BLUE, line_width=4,
                     line_alpha=0.5)  # fmt: skip
        plot.scatter("x", "y", source=self.median, size=12, color=BLUE,
                     legend_label=tr("median, 95%"))  # fmt: skip
        plot.scatter("x", "y", source=self.samples, size=11, marker="dash", angle=np.pi / 2,
                     color=GRAY, line_width=2, legend_label=tr("a sample's"))  # fmt: skip
        plot.line("x", "y", source=self.truth, color=GREEN, line_width=3, line_dash=[6, 3],
                  legend_label=tr("what happened"))  # fmt: skip
        plot.yaxis.formatter = tick_labels("0%")
        plot.yaxis.ticker = [0, 0.25, 0.5, 0.75, 1]
        plot.xgrid.visible = True
        plot.x_range.start = 0
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(
        self,
        who: str,
        median: tuple[float, float, float],
        samples: Float[np.ndarray, " m"],
        curve: tuple[Times, Times],
        truth: float,
        died: bool,
    ) -> None:
        """Show one patient.

        Args:
            who: Name of the patient.
            median: Predicted median time and the bounds of its 95% interval.
            samples: Time predicted from each of m samples.
            curve: Times, and the probability of survival beyond each.
            truth: Time of death or last observation; NaN if unknown.
            died: Whether `truth` is the time of death.
        """
        update_source(self.curve, x=curve[0], y=curve[1])
        update_source(self.median, x=median[:1], y=[0.5], low=median[1:2], high=median[2:])
        update_source(self.samples, x=samples, y=np.full(len(samples), -0.06))
        observed = bool(np.isfinite(truth))
        update_source(
            self.truth, x=[truth] * 2 if observed else [], y=[-0.12, 1.02] if observed else []
        )
        time, low, high = median
        m = len(samples)
        reading = ntr(
            "{who}: {time:.3g} predicted from {n} sample (95% interval {low:.3g} to {high:.3g}).",
            "{who}: {time:.3g} predicted from {n} samples (95% interval {low:.3g} to {high:.3g}).",
            m,
            who=who,
            time=time,
            low=low,
            high=high,
        )
        if m > 1:
            low, high = samples.min(), samples.max()
            reading += " " + tr(
                "Single samples predict {low:.3g} to {high:.3g}.", low=low, high=high
            )
        if observed and died:
            inside = median[1] <= truth <= median[2]
            reading += " " + tr(INSIDE if inside else OUTSIDE, time=truth)
        elif observed:
            reading += " " + tr("No event when last seen, at {time:.3g}.", time=truth)
        self.describe(reading)
