"""What a missing measurement costs: error against how many are missing, beside a baseline."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, VERMILION, models, new_figure, quiet_legend


class MissingPlot(Plot):
    """RMSE of this model and of a baseline against the number of features removed at random."""

    def __init__(
        self,
        target: str = "z",
        baseline: str = "random forest",
        title: str = "Bands missing",
    ) -> None:
        self.baseline = baseline
        self.rows = columns("missing", "model", "baseline")
        plot = new_figure("missing", "bands missing", f"RMSE of {target}")
        for name, label, colour, marker in (
            ("baseline", baseline, VERMILION, "square"),
            ("model", "this model", BLUE, "circle"),
        ):
            plot.line("missing", name, source=self.rows, color=colour, line_width=2.5,
                      legend_label=label)  # fmt: skip
            plot.scatter("missing", name, source=self.rows, color=colour, size=9, marker=marker,
                         legend_label=label)  # fmt: skip
        plot.y_range.start = 0
        quiet_legend(plot)
        super().__init__(title, plot)

    def show(self, missing: Float[np.ndarray, "3 c"]) -> None:
        """Show how many are missing (first row), RMSE of this model, RMSE of the baseline."""
        count, model, baseline = missing
        put(self.rows, missing=count, model=model, baseline=baseline)
        self.figures[0].xaxis.ticker = models.FixedTicker(ticks=[int(c) for c in count])
        pairs = "; ".join(
            f"{int(c)} missing: {m:.4f} against {b:.4f}" for c, m, b in zip(count, model, baseline)
        )
        self.describe(
            f"RMSE of this model against {self.baseline}, on a part of the held-out rows: {pairs}."
        )
