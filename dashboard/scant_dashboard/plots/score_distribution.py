"""Predicted probabilities of held-out rows, by true class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    VERMILION,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.translate import as_number, later, ntr, tr

BINS = 20
TICKS = 4  # at most, upwards and downwards
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)  # between ticks


class ScoreDistributionPlot(Plot):
    """Histograms of p(class): rows of the class upwards, other rows downwards.

    Heights are shares within each class, so that a rare class is visible. Bars above the axis on
    the left and below it on the right are errors at a threshold of one half.
    """

    def __init__(self, title: str = later("Probabilities by class")) -> None:
        self.bars = columns("left", "right", "up", "down", "rows_up", "rows_down")
        plot = new_figure("separation", tr("probability"), tr("share of the rows\nof each kind"),
                          x_range=models.Range1d(0, 1))  # fmt: skip
        sides = (("up", BLUE, 1), ("down", VERMILION, -1))
        for side, color, _ in sides:
            histogram = plot.quad("left", "right", side, 0, source=self.bars, color=color,
                              fill_alpha=0.8, line_width=0, legend_label=side)  # fmt: skip
            interval = tr("{low} to {high}", low="@left{0.00}", high="@right{0.00}")
            tips = [("p", interval), (tr("rows"), f"@rows_{side}")]
            plot.add_tools(models.HoverTool(renderers=[histogram], tooltips=tips))
        # Separate items, labeled when the classes are known.
        plot.legend[0].items = [
            models.LegendItem(label={"value": side}, renderers=[r], visible=False)
            for (side, _, _), r in zip(sides, plot.renderers[-2:])
        ]
        self.items = plot.legend[0].items
        plot.add_layout(models.Span(location=0.5, dimension="height", line_color=GRAY,
                                    line_dash=[4, 4], line_width=1.5))  # fmt: skip
        plot.add_layout(models.Span(location=0, dimension="width", line_color=GRAY))
        self.axis = plot.yaxis[0]
        self.axis.update(ticker=models.FixedTicker(), formatter=tick_labels("0%"))
        plot.xaxis.formatter = tick_labels("0%")
        place_legend_above(plot, stacked=True)
        super().__init__(title, plot)

    def show(
        self, p: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"], classes: Sequence[str]
    ) -> None:
        """Show n probabilities of `classes[1]`; `truth` is 1 for its rows, 0 for `classes[0]`."""
        inside = truth > 0.5
        counts = [np.histogram(p[rows], BINS, (0, 1))[0] for rows in (inside, ~inside)]
        up, down = (c / max(c.sum(), 1) for c in counts)
        edges = np.linspace(0, 1, BINS + 1)
        update_source(self.bars, left=edges[:-1], right=edges[1:], up=up, down=-down,
            rows_up=counts[0], rows_down=counts[1])  # fmt: skip
        tallest = float(max(up.max(), down.max()))
        step = next((s for s in STEPS if TICKS * s >= tallest), STEPS[-1])
        ticks = [k * step for k in range(-TICKS, TICKS + 1)]
        self.axis.ticker.ticks = ticks  # the shares downwards are positive, too
        self.axis.major_label_overrides = {t: as_number(f"{-t:.0%}") for t in ticks if t < 0}
        other, name = (str(c) for c in classes)
        for item, label in zip(
            self.items, (tr("{name}, upwards", name=name), tr("{name}, downwards", name=other))
        ):
            item.update(label={"value": label}, visible=True)
        self.figures[0].xaxis.axis_label = tr("probability of {name}", name=name)
        messages = []
        if inside.any():
            messages.append(
                ntr(
                    "{n} of the {rows} rows of {name} is above one half.",
                    "{n} of the {rows} rows of {name} are above one half.",
                    int((p[inside] > 0.5).sum()), rows=inside.sum(), name=name,
                )
            )  # fmt: skip
        if not inside.all():
            messages.append(
                ntr(
                    "{n} of the {rows} rows of {name} is below one half.",
                    "{n} of the {rows} rows of {name} are below one half.",
                    int((p[~inside] <= 0.5).sum()), rows=(~inside).sum(), name=other,
                )
            )  # fmt: skip
        self.describe(" ".join(messages) or tr("No row was held out."))

    def clear(self) -> None:
        for item in self.items:
            item.visible = False
        super().clear()
