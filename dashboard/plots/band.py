"""A posterior over a function of one variable: mean, bands, data."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, GREY, new_figure, quiet_legend

Grid = Float[np.ndarray, "g"]
Rows = Float[np.ndarray, "n"]


class BandPlot(Plot):
    """The mean with the band of the curve f inside the band of new measurements y."""

    def __init__(self, x: str, y: str, title: str = "Posterior") -> None:
        self.band = columns("x", "mean", "f_lo", "f_hi", "y_lo", "y_hi")
        self.points = columns("x", "y")
        self.y = y
        plot = new_figure("band", x, y, height=340)
        plot.varea("x", "y_lo", "y_hi", source=self.band, color=BLUE, fill_alpha=0.12,
                   legend_label="95% of new measurements")  # fmt: skip
        plot.varea("x", "f_lo", "f_hi", source=self.band, color=BLUE, fill_alpha=0.28,
                   legend_label="95% for the curve")  # fmt: skip
        plot.line("x", "mean", source=self.band, color=BLUE, line_width=2.5, legend_label="mean")
        plot.scatter("x", "y", source=self.points, size=5, color=GREY, legend_label="data")
        quiet_legend(plot)
        super().__init__(title, plot)

    def show(self, x: Grid, mean: Grid, std_f: Grid, std_y: Grid) -> None:
        """Show the posterior on a grid: deviations of the curve and of a new measurement."""
        put(self.band, x=x, mean=mean, f_lo=mean - 1.96 * std_f, f_hi=mean + 1.96 * std_f,
            y_lo=mean - 1.96 * std_y, y_hi=mean + 1.96 * std_y)  # fmt: skip
        widest = int(np.argmax(std_f))
        self.describe(
            f"Mean of {self.y} between {mean.min():.3g} and {mean.max():.3g}; the curve is known "
            f"least at {x[widest]:.3g}, within ± {1.96 * std_f[widest]:.2g}."
        )

    def show_data(self, x: Rows, y: Rows) -> None:
        """Show n measurements."""
        put(self.points, x=x, y=y)
