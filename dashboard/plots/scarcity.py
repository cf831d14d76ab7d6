"""Errors against the number of fine observations: all tasks together, and the scarce one alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, VERMILION, new_figure, quiet_legend

WHO = (("all tasks", BLUE), ("this task alone", VERMILION))


class ScarcityPlot(Plot):
    """SMSE and SNLP, each with a band over repeats (Yousefi 2021, Figs. 5.2-5.3)."""

    def __init__(self, title: str) -> None:
        self.sources = [[columns("n", "mean", "low", "high") for _ in WHO] for _ in range(2)]
        made = []
        names = (("smse", "SMSE\n(1 is the mean's)"), ("snlp", "SNLP (nats,\n0 is the mean's)"))
        for (name, said), pair in zip(names, self.sources):
            plot = new_figure(name, "fine observations", said, height=300, x_axis_type="log")
            for (who, colour), source in zip(WHO, pair):
                plot.varea("n", "low", "high", source=source, color=colour, fill_alpha=0.15)
                plot.line("n", "mean", source=source, color=colour, line_width=2.5,
                          legend_label=who)  # fmt: skip
                plot.scatter("n", "mean", source=source, color=colour, size=6)
            quiet_legend(plot)
            made.append(plot)
        super().__init__(title, *made)

    def show(
        self,
        n: Float[np.ndarray, " k"],
        smse: Float[np.ndarray, "2 3 k"],
        snlp: Float[np.ndarray, "2 3 k"],
    ) -> None:
        """Show means, lows and highs over repeats at n fine observations."""
        for pair, values in zip(self.sources, (smse, snlp)):
            for source, (mean, low, high) in zip(pair, values):
                put(source, n=n, mean=mean, low=low, high=high)
        ahead = smse[0, 0] < smse[1, 0]
        last = f"up to {n[ahead][-1]:.0f} fine observations" if ahead.any() else "nowhere"
        self.describe(
            f"With {n[0]:.0f} fine observations SMSE is {smse[0, 0, 0]:.3f} with all tasks and "
            f"{smse[1, 0, 0]:.3f} with this one alone; the other tasks help {last}."
        )
