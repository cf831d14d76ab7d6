"""What the model leans on: shares as bars, sorted or named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, models, new_figure


class BasisPlot(Plot):
    """Each basis function's share of the signal, greatest first; ARD switched off the tail."""

    def __init__(self, title: str = "Basis functions at work") -> None:
        self.bars = columns("rank", "share")
        plot = new_figure("basis", "basis functions, sorted", "share of the signal", height=300)
        plot.vbar("rank", 0.8, "share", source=self.bars, color=BLUE, fill_alpha=0.85, line_width=0)
        plot.yaxis.formatter = models.NumeralTickFormatter(format="0%")
        plot.y_range.start = 0
        super().__init__(title, plot)

    def show(self, share: Float[np.ndarray, "m"]) -> None:
        """Show m shares that sum to one."""
        ordered = np.sort(share)[::-1]
        put(self.bars, rank=np.arange(1, len(share) + 1), share=ordered)
        needed = int(np.searchsorted(np.cumsum(ordered), 0.9 * ordered.sum()) + 1)
        self.describe(f"{needed} of {len(share)} basis functions carry 90% of the signal.")


class FeaturePlot(Plot):
    """Each feature's share of the sensitivity, by name."""

    def __init__(self, title: str = "Features that matter") -> None:
        self.bars = models.ColumnDataSource({"name": [], "share": []})
        plot = new_figure("features", "share of the sensitivity", "", height=300,
                          y_range=models.FactorRange(), min_border_left=90,
                          x_range=models.Range1d(0, 1))  # fmt: skip
        plot.hbar("name", 0.7, "share", source=self.bars, color=BLUE, fill_alpha=0.85, line_width=0)
        plot.xaxis.formatter = models.NumeralTickFormatter(format="0%")
        plot.ygrid.visible = False
        super().__init__(title, plot)

    def show(self, share: Float[np.ndarray, "d"], names: Sequence[str]) -> None:
        """Show d shares with the features' names; where names are missing they are numbered."""
        labels = [*names, *(f"feature {i + 1}" for i in range(len(names), len(share)))][
            : len(share)
        ]
        if list(self.figures[0].y_range.factors) != labels[::-1]:
            self.figures[0].y_range.factors = labels[::-1]
            self.figures[0].height = max(300, 18 * len(labels) + 70)
        self.figures[0].x_range.end = 1.05 * max(float(share.max()), 0.01)
        self.bars.data = {"name": labels, "share": share.astype(np.float32)}
        first, *others = np.argsort(share)[::-1][:2]
        words = f"Most sensitive to {labels[first]} ({share[first]:.0%})"
        self.describe(words + "".join(f", then {labels[i]} ({share[i]:.0%})" for i in others) + ".")
