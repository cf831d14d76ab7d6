"""The relevance of each view in a multi-view model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import BLUE, GRAY, models, new_figure, tick_labels
from scant_dashboard.translate import later, tr

MAX_BARS = 24  # the largest shares are shown
ROW = 38  # pixels per bar


class ViewContributionsPlot(Plot):
    """Each hidden unit's share of the output kernel's relevance, with the even share dashed."""

    def __init__(self, title: str = later("What each view contributes")) -> None:
        self.bars = models.ColumnDataSource({"name": [], "share": []})
        self.even = models.Span(location=0, dimension="height", line_color=GRAY, line_width=2,
                                line_dash=[4, 4], visible=False)  # fmt: skip
        plot = new_figure("influence", tr("share of the relevance\n(dashed: even shares)"), "",
                          height=200, x_range=models.Range1d(0, 1),
                          y_range=models.FactorRange(factors=[]))  # fmt: skip
        bars = plot.hbar("name", 0.7, "share", source=self.bars, color=BLUE, fill_alpha=0.85,
                         line_width=0)  # fmt: skip
        plot.add_tools(
            models.HoverTool(
                renderers=[bars], tooltips=[("", "@name"), (tr("share"), "@share{0.0%}")]
            )
        )
        plot.add_layout(self.even)
        plot.xaxis.formatter = tick_labels("0%")
        plot.ygrid.visible = False
        super().__init__(title, plot)

    def show(self, share: Float[np.ndarray, " v"], names: Sequence[str]) -> None:
        """Show v shares that sum to one, in the order of the views."""
        largest = np.sort(np.argsort(-share, kind="stable")[:MAX_BARS])
        labels = [str(names[i]) for i in largest]
        plot = self.figures[0]
        if list(plot.y_range.factors) != labels[::-1]:
            plot.y_range.factors = labels[::-1]
            plot.height = 90 + ROW * len(labels)
        plot.x_range.end = 1.05 * max(float(share.max()), 0.01)
        self.even.update(location=1 / len(share), visible=len(share) > 1)
        self.bars.data = {"name": labels, "share": share[largest].astype(np.float32)}
        self.describe(_reading(share, [str(name) for name in names]))

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        self.even.visible = False
        super().clear()


def _reading(share: Float[np.ndarray, " v"], names: Sequence[str]) -> str:
    order = np.argsort(-share, kind="stable")
    if len(share) == 1:
        return tr("There is only {name}.", name=names[0])
    first, second = order[:2]
    reading = tr(
        "{name} contributes {share:.0%}, {second} {second_share:.0%}.",
        name=names[first],
        share=share[first],
        second=names[second],
        second_share=share[second],
    )
    negligible = [names[i] for i in order[2:] if share[i] < 0.25 / len(share)]
    if negligible:
        listed = ", ".join(negligible[:4])
        if len(negligible) > 4:
            listed = tr("{listed} and {n} more", listed=listed, n=len(negligible) - 4)
        reading += " " + tr("Almost nothing comes from {listed}.", listed=listed)
    return reading
