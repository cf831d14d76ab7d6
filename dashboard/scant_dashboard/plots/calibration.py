"""Can the stated uncertainty be trusted? PIT histogram and coverage of intervals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.metrics import Z_95
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.translate import enumerated, later, tr


class PitPlot(Plot):
    """Histogram of the probability integral transform; flat means calibrated.

    The gray band holds a bin's height 95 times in 100 if the model is calibrated (binomial, normal
    approximation). A hump says that deviations are too large, a trough that they are too small.
    """

    def __init__(
        self, bins: int = 20, title: str = later("Probability integral transform")
    ) -> None:
        self.bins = bins
        self.bars = columns("left", "right", "height")
        self.band = columns("x", "low", "high")
        plot = new_figure("pit", tr("PIT of the true values"), tr("density"),
                          x_range=models.Range1d(0, 1))  # fmt: skip
        plot.varea("x", "low", "high", source=self.band, color=GRAY, fill_alpha=0.45,
                   legend_label=tr("if calibrated, 95%"))  # fmt: skip
        plot.quad(left="left", right="right", bottom=0, top="height", source=self.bars,
                  color=BLUE, fill_alpha=0.7, line_width=0)  # fmt: skip
        plot.y_range.start = 0
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(self, pit: Float[np.ndarray, "n"]) -> None:
        """Show n transforms, each a probability."""
        counts, edges = np.histogram(pit, bins=self.bins, range=(0, 1))
        height = counts / max(len(pit), 1) * self.bins
        share = 1 / self.bins
        half = Z_95 * np.sqrt(share * (1 - share) / max(len(pit), 1)) * self.bins
        update_source(self.bars, left=edges[:-1], right=edges[1:], height=height)
        update_source(self.band, x=[0, 1], low=[max(1 - half, 0)] * 2, high=[1 + half] * 2)
        outside = int(np.sum(np.abs(height - 1) > half))
        middle = float(np.mean((pit > 0.25) & (pit < 0.75)))
        verdict = (
            tr("the deviations are a little too large") if middle > 0.55
            else tr("the deviations are a little too small") if middle < 0.45
            else tr("the deviations are about right")
        )  # fmt: skip
        self.describe(
            tr(
                "Bins outside the gray 95% range of a calibrated model: {outside} of {bins} "
                "(expected: {expected:.0f}). {middle:.0%} of the true values are in the middle "
                "half: {verdict}.",
                outside=outside,
                bins=self.bins,
                expected=0.05 * self.bins,
                middle=middle,
                verdict=verdict,
            )
        )


class CoveragePlot(Plot):
    """Observed against nominal coverage of central intervals; the diagonal is right."""

    def __init__(self, title: str = later("Coverage of intervals")) -> None:
        self.points = columns("nominal", "observed")
        plot = new_figure("coverage", tr("nominal"), tr("observed"),
                          x_range=models.Range1d(0, 1.02),
                          y_range=models.Range1d(0, 1.02))  # fmt: skip
        plot.add_layout(models.Slope(gradient=1, y_intercept=0, line_color=GRAY, line_width=1.5,
                                     level="underlay"))  # fmt: skip
        plot.segment("nominal", "nominal", "nominal", "observed", source=self.points, color=BLUE,
                     line_width=2)  # fmt: skip
        plot.scatter("nominal", "observed", source=self.points, size=11, color=BLUE)
        for axis in plot.axis:
            axis.formatter = tick_labels("0%")
        super().__init__(title, plot)

    def show(self, coverage: Float[np.ndarray, "2 c"]) -> None:
        """Show nominal (first row) and observed (second) shares."""
        nominal, observed = coverage
        update_source(self.points, nominal=nominal, observed=observed)
        pairs = [
            tr("{observed:.1%} lie in the {nominal:.0%} interval", nominal=n, observed=o)
            for n, o in zip(nominal, observed)
        ]
        self.describe(tr("Of the true values, {pairs}.", pairs=enumerated(pairs)))
