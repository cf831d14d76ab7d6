"""Metrics of the rows that remain when the least certain ones are rejected."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.events import Metric
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.table import figure
from scant_dashboard.plots.theme import BLUE, VERMILION, models, new_figure, tick_labels
from scant_dashboard.translate import later, tr

NAMES = ("RMSE", "mean log-likelihood", "F_0.15 (%)", "F_0.05 (%)", "bias")


class RejectionCurvePlot(Plot):
    """Small multiples of metrics against the share kept (Almosallam 2017, fig. 6.14)."""

    def __init__(self, title: str = later("Keep only the confident")) -> None:
        self.curves = columns("share", *(f"m{i}" for i in range(len(NAMES))))
        self.marks = []
        figures = []
        for i, name in enumerate(NAMES):
            plot = new_figure(
                f"kept-{name}", tr("share kept"), tr(name).replace(" ", "\n"), height=220
            )
            plot.line("share", f"m{i}", source=self.curves, color=BLUE, line_width=2.5)
            plot.xaxis.formatter = tick_labels("0%")
            plot.xaxis.ticker = models.FixedTicker(ticks=[0, 0.5, 1])  # more would overlap
            mark = models.Span(location=1, dimension="height", line_color=VERMILION, line_width=2)
            plot.add_layout(mark)
            self.marks.append(mark)
            figures.append(plot)
        self.table = np.zeros((6, 0))
        self.share = 1.0
        super().__init__(title, *figures)

    def show(self, curves: Float[np.ndarray, "6 p"]) -> None:
        """Show the five metrics of `NAMES` (rows 1 to 5) at p shares kept (row 0)."""
        self.table = curves[:, np.argsort(curves[0])]
        update_source(
            self.curves, share=self.table[0], **{f"m{i}": self.table[i + 1] for i in range(5)}
        )
        self.at(self.share)

    def clear(self) -> None:
        """Remove the curves."""
        super().clear()
        self.table = np.zeros((6, 0))

    def at(self, share: float) -> None:
        """Mark and describe the metrics at this share kept."""
        self.share = share
        for mark in self.marks:
            mark.location = share
        if self.table.shape[1]:
            values = [np.interp(share, self.table[0], row) for row in self.table[1:]]
            readings = ", ".join(
                f"{tr(name)} {figure(Metric('', name, float(value)))}"
                for name, value in zip(NAMES, values)
            )
            if share >= 1:
                self.describe(tr("All rows: {metrics}.", metrics=readings))
            else:
                self.describe(
                    tr("The {share:.0%} most confident rows: {metrics}.", share=share,
                       metrics=readings)
                )  # fmt: skip
