"""Prediction against truth, colored by predictive deviation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from scant.events import Metric
from scant.metrics import rmse, within_95
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.table import figure
from scant_dashboard.plots.theme import DEVIATION, GRAY, GREEN, color_bar, models, new_figure
from scant_dashboard.translate import later, tr

Rows = Float[np.ndarray, "n"]


class ScatterPlot(Plot):
    """Predictive means against true values; color is the predictive deviation.

    Args:
        target: Name of the target, with its unit.
        outlier: Draw lines at truth ± outlier (1 + truth); None draws none. Photometric redshifts
            count |ẑ - z| > 0.15 (1 + z) as catastrophic (Almosallam 2017, §6.2).
        title: The heading.
        pick: Called with the row of a point that the visitor clicked.
        against: Adjective of the values on the x axis, such as "true".
        rows: Name of the rows, which the text alternative counts.
        rmse: State the RMSE; only of rows that the report's RMSE is of.
    """

    def __init__(
        self,
        target: str = "z",
        outlier: float | None = 0.15,
        title: str = later("Prediction against truth"),
        pick: Callable[[int], None] | None = None,
        against: str = later("true"),
        rows: str = later("held-out rows"),
        rmse: bool = True,
    ) -> None:
        self.target, self.outlier = tr(target), outlier
        target, against = self.target, tr(against)
        self.rows, self.rmse = rows, rmse
        self.points = columns("true", "mean", "std")
        self.chosen = columns("true", "mean")
        self.lines = columns("x", "identity", "above", "below")
        plot = new_figure("scatter", tr("{kind} {target}", kind=against, target=target),
                          tr("predicted {target}", target=target), height=340,
                          tools="tap" if pick else "")  # fmt: skip
        plot.line("x", "identity", source=self.lines, color=GRAY, line_width=1.5)
        if outlier is not None:
            for edge in ("above", "below"):
                plot.line("x", edge, source=self.lines, color=GRAY, line_dash=[4, 4])
        self.colors = models.LinearColorMapper(palette=list(DEVIATION), low=0, high=1)
        dots = plot.scatter("true", "mean", source=self.points, size=5, line_color=None,
                            fill_color={"field": "std", "transform": self.colors},
                            fill_alpha=0.65, nonselection_fill_alpha=0.65,
                            selection_fill_alpha=0.65)  # fmt: skip
        plot.scatter("true", "mean", source=self.chosen, size=15, fill_color=None,
                     line_color=GREEN, line_width=3)  # fmt: skip
        color_bar(plot, self.colors, tr("predicted deviation of {target}", target=target))
        tips = [(against, "@true{0.000}"), (tr("predicted"), "@mean{0.000} ± @std{0.000}")]
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        if pick:
            self.points.selected.on_change(
                "indices", lambda _attr, _old, new: pick(new[0]) if new else None
            )
        super().__init__(title, plot)

    def show(self, true: Rows, mean: Rows, std: Rows, pit: Rows | None = None) -> None:
        """Show n predictions against the true values.

        Args:
            true: True values, in the target's unit.
            mean: Predictive means.
            std: Predictive deviations.
            pit: Probability integral transforms of the true values; None: those of Gaussians.
        """
        update_source(self.points, true=true, mean=mean, std=std)
        low, high = np.quantile(std, [0.02, 0.98]) if len(std) else (0, 1)
        self.colors.update(low=float(low), high=float(max(high, low + 1e-9)))
        self._draw_lines(true)
        self._ring()
        inside = within_95(true, mean, std) if pit is None else np.abs(pit - 0.5) <= 0.475
        reading = [
            tr(
                "{inside:,} of {n:,} {rows} lie within their 95% interval.",
                inside=inside.sum(),
                n=len(true),
                rows=tr(self.rows),
            )
        ]
        if self.outlier is not None:
            beyond = int(np.sum(np.abs(mean - true) > self.outlier * (1 + true)))
            reading.append(tr("Beyond the dashed lines: {beyond:,}.", beyond=beyond))
        if self.rmse and len(true):
            value = figure(Metric("", "RMSE", rmse(true, mean)))
            reading.append(tr("RMSE: {value}.", value=value))
        self.describe(" ".join([*reading, tr("Orange: uncertain rows.")]))

    def select(self, row: int | None) -> None:
        """Mark one row, or none."""
        self.points.selected.indices = [] if row is None else [row]
        self._ring()

    def _ring(self) -> None:
        rows = self.points.selected.indices[:1]
        update_source(
            self.chosen, **{name: self.points.data[name][rows] for name in ("true", "mean")}
        )

    def _draw_lines(self, true: Rows) -> None:
        x = np.array([true.min(), true.max()])
        margin = (self.outlier or 0) * (1 + x)
        update_source(self.lines, x=x, identity=x, above=x + margin, below=x - margin)
