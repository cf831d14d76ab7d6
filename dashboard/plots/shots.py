"""Recall against the examples of each class: the model, and the nearest of the same examples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, VERMILION, models, new_figure, quiet_legend

WHO = (("this model", BLUE), ("nearest neighbour", VERMILION))


class ShotsPlot(Plot):
    """Mean recall over the outputs, with the least and the greatest of them as a band."""

    def __init__(self, title: str) -> None:
        self.sources = [columns("shots", "mean", "low", "high") for _ in WHO]
        plot = new_figure("shots", "examples of each class", "recall of held-out rows", height=320)
        for source, (who, colour) in zip(self.sources, WHO):
            plot.varea("shots", "low", "high", source=source, color=colour, fill_alpha=0.15)
            plot.line("shots", "mean", source=source, color=colour, line_width=2.5,
                      legend_label=who)  # fmt: skip
            dots = plot.scatter("shots", "mean", source=source, color=colour, size=8)
            tips = [(who, "@mean{0.0%}"), ("outputs", "@low{0%} to @high{0%}")]
            plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        plot.yaxis.formatter = models.NumeralTickFormatter(format="0%")
        plot.y_range.start = 0
        quiet_legend(plot)
        super().__init__(title, plot)

    def show(
        self, found: Mapping[int, Float[np.ndarray, "2 d"]], of: str = "the held-out rows"
    ) -> None:
        """Show recalls of every output by model and nearest neighbour, by number of examples.

        Args:
            found: The recalls.
            of: Of which rows they are.
        """
        shots = sorted(found)
        each = np.stack([found[k] for k in shots])  # shots, who, outputs
        for source, recall in zip(self.sources, each.transpose(1, 0, 2)):
            mean, low, high = (f(recall, axis=1) for f in (np.nanmean, np.nanmin, np.nanmax))
            put(source, shots=shots, mean=mean, low=low, high=high)
        said = [
            f"{k} {'example' if k == 1 else 'examples'}: {np.nanmean(a):.1%} against "
            f"{np.nanmean(b):.1%}"
            for k, (a, b) in zip(shots, each)
        ]
        self.describe(
            f"Recall of {of}, on average over the outputs, with {'; with '.join(said[:3])}"
            + (f"; …; with {said[-1]}" if len(said) > 3 else "")
            + " of the nearest neighbour."
        )
