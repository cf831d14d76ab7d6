"""The hidden neurons of a network at each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    DEVIATION,
    GRAY,
    GREEN,
    VERMILION,
    color_bar,
    models,
    new_figure,
    quiet_legend,
)

MOST = 12  # neurons, those of greatest influence where there are more
DOTS = 2400  # dots at most: they travel to every watcher, five times a second
LANE = 46  # pixels of a neuron
GOLDEN = 0.6180339887498949  # its multiples spread evenly over a lane, whatever their number
Rows = Float[np.ndarray, " n"]


class HiddenPlot(Plot):
    """A lane for each neuron with its value at every row; color and marker tell the target.

    Rows of the first class stand in the lower half of a lane, of the second in the upper; where the
    target is a number, color goes from its least to its greatest. One row may be marked.
    """

    def __init__(self, title: str = "What the hidden neurons see") -> None:
        self.dots = [columns("x", "y") for _ in range(2)]
        self.shades = columns("x", "y", "truth")
        self.mark = columns("x", "y", "low", "high")
        self._labels: tuple[str, ...] = ()
        self._kept = np.empty(0, int)  # the neurons that have a lane
        plot = new_figure("hidden", "value of the neuron", "", height=220)
        looks = ((VERMILION, "triangle"), (BLUE, "circle"))
        for source, (color, marker) in zip(self.dots, looks):
            plot.scatter("x", "y", source=source, marker=marker, size=5, color=color, alpha=0.55,
                         legend_label=marker)  # fmt: skip
        self.colors = models.LinearColorMapper(palette=list(DEVIATION), low=0, high=1)
        plot.scatter("x", "y", source=self.shades, size=5, line_color=None, fill_alpha=0.7,
                     fill_color={"field": "truth", "transform": self.colors})  # fmt: skip
        plot.segment("low", "y", "high", "y", source=self.mark, color=GREEN, line_width=3)
        plot.scatter("x", "y", source=self.mark, size=11, line_color=GREEN, line_width=3,
                     fill_color=None)  # fmt: skip
        self.items = [
            models.LegendItem(label={"value": marker}, renderers=[r], visible=False)
            for (_, marker), r in zip(looks, plot.renderers[:2])
        ]
        plot.legend[0].items = self.items
        self.bar = color_bar(plot, self.colors, "target", visible=False)
        plot.yaxis[0].update(major_tick_line_color=None, ticker=models.FixedTicker(ticks=[]))
        plot.ygrid.visible = False
        plot.xgrid.visible = True
        plot.xaxis[0].ticker.desired_num_ticks = 4  # large type on a narrow screen
        plot.y_range = models.Range1d(-0.5, 0.5)
        plot.add_layout(models.Span(location=0, dimension="height", line_color=GRAY,
                                    line_alpha=0.5))  # fmt: skip
        quiet_legend(plot)
        super().__init__(title, plot)

    def show(
        self,
        hidden: Float[np.ndarray, "n v"],
        truth: Rows,
        neurons: Sequence[str],
        influence: Float[np.ndarray, " v"],
        classes: Sequence[str] = (),
        target: str = "target",
    ) -> None:
        """Show v neurons' means at n rows.

        Args:
            hidden: The means.
            truth: The target of each row: 0 or 1 where there are classes; NaN where it is unknown.
            neurons: Their names.
            influence: The share of each in what the output goes by.
            classes: The names of both classes; none where the target is a number.
            target: What the target is, with its unit.
        """
        self._kept = np.sort(np.argsort(-influence, kind="stable")[:MOST])
        self._lay([str(neurons[i]) for i in self._kept])
        step = max(1, -(-len(hidden) * len(self._kept) // DOTS))
        values, of = hidden[::step][:, self._kept], truth[::step]
        within = (np.arange(len(values)) * GOLDEN) % 1  # where in its lane a row stands
        for item, source, label, name in zip(self.items, self.dots, (0, 1), classes or ("", "")):
            rows = (of == label) if classes else np.zeros(len(of), bool)
            half = 0.04 + 0.36 * within[rows]
            _fill(source, values[rows], half if label else -half)
            item.update(label={"value": name or "-"}, visible=bool(classes))
        known = np.zeros(0, int) if classes else np.flatnonzero(np.isfinite(of))
        if len(known):
            low, high = np.quantile(of[known], [0.02, 0.98])
            self.colors.update(low=float(low), high=float(max(high, low + 1e-9)))
        _fill(self.shades, values[known], 0.8 * (within[known] - 0.5), truth=of[known])
        self.bar.update(visible=bool(len(known)), title=target)
        self.describe(_reading(hidden, truth, [str(n) for n in neurons], bool(classes)))

    def point(self, mean: Float[np.ndarray, " v"], std: Float[np.ndarray, " v"]) -> None:
        """Mark one row by its neurons' means with intervals of 95%."""
        y = -np.arange(len(self._kept), dtype=float)
        mean, half = mean[self._kept], 1.96 * std[self._kept]
        update_source(self.mark, x=mean, y=y, low=mean - half, high=mean + half)

    def _lay(self, labels: list[str]) -> None:
        if self._labels == tuple(labels):
            return
        self._labels = tuple(labels)
        plot, ticks = self.figures[0], [-float(k) for k in range(len(labels))]
        plot.yaxis[0].ticker = models.FixedTicker(ticks=ticks)
        plot.yaxis[0].major_label_overrides = dict(zip(ticks, labels))
        plot.y_range.update(start=0.5 - len(labels), end=0.5)
        plot.height = 110 + LANE * len(labels)

    def clear(self) -> None:
        self._labels = ()
        for item in self.items:
            item.visible = False
        self.bar.visible = False
        super().clear()


def _fill(
    source: object,
    values: Float[np.ndarray, "n k"],
    lift: Rows,
    **more: Rows,
) -> None:
    """Put n rows' values into k lanes, each lifted from its lane's middle."""
    k = values.shape[1]
    y = (lift[:, None] - np.arange(k)).T.ravel()
    update_source(
        source, x=values.T.ravel(), y=y, **{name: np.tile(v, k) for name, v in more.items()}
    )


def _reading(
    hidden: Float[np.ndarray, "n v"], truth: Rows, names: Sequence[str], classes: bool
) -> str:
    """Which neurons go with the target most and least, by the correlation over the rows."""
    known = np.isfinite(truth)
    if known.sum() < 3 or np.ptp(truth[known]) == 0:
        return f"{len(names)} neurons at {len(hidden)} rows with equal targets."
    centered = hidden[known] - hidden[known].mean(0)
    away = truth[known] - truth[known].mean()
    scale = np.sqrt((centered**2).sum(0) * (away**2).sum())
    along = np.abs(centered.T @ away) / np.where(scale > 0, scale, np.inf)
    order = np.argsort(-along, kind="stable")
    best, least = order[0], order[-1]
    kind = "classes" if classes else "target"
    reading = f"{names[best]} correlates most with the {kind} ({along[best]:.2f}"
    return reading + (f"), {names[least]} least ({along[least]:.2f})." if len(order) > 1 else ").")
