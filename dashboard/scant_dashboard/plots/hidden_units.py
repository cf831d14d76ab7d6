"""Values of a network's hidden units at each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant.metrics import Z_95
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
    place_legend_above,
)
from scant_dashboard.translate import later, tr

MAX_UNITS = 12  # the most influential units are shown
DOTS = 2400  # maximum number of dots, which are sent to every viewer five times a second
LANE = 46  # pixels of a unit's lane
GOLDEN = 0.6180339887498949  # multiples modulo 1 are a low-discrepancy sequence
Rows = Float[np.ndarray, " n"]
OF_CLASSES = later(
    "{name} correlates most with the classes ({value:.2f}), and {other} least ({least:.2f})."
)
OF_TARGET = later(
    "{name} correlates most with the target ({value:.2f}), and {other} least ({least:.2f})."
)
ONE_OF_CLASSES = later("{name} correlates with the classes ({value:.2f}).")
ONE_OF_TARGET = later("{name} correlates with the target ({value:.2f}).")


class HiddenUnitsPlot(Plot):
    """One lane per hidden unit with its value at every row; color and marker show the target.

    With classes, rows of the first are in the lower half of a lane and rows of the second in the
    upper half; with a numerical target, color is its value. One row may be marked.
    """

    def __init__(self, title: str = later("What the hidden neurons see")) -> None:
        self.dots = [columns("x", "y") for _ in range(2)]
        self.shades = columns("x", "y", "truth")
        self.mark = columns("x", "y", "low", "high")
        self._labels: tuple[str, ...] = ()
        self._units = np.empty(0, int)  # indices of the units shown
        plot = new_figure("hidden", tr("value of the neuron"), "", height=220)
        styles = ((VERMILION, "triangle"), (BLUE, "circle"))
        for source, (color, marker) in zip(self.dots, styles):
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
            for (_, marker), r in zip(styles, plot.renderers[:2])
        ]
        plot.legend[0].items = self.items
        self.bar = color_bar(plot, self.colors, tr("target"), visible=False)
        plot.yaxis[0].update(major_tick_line_color=None, ticker=models.FixedTicker(ticks=[]))
        plot.ygrid.visible = False
        plot.xgrid.visible = True
        plot.xaxis[0].ticker.desired_num_ticks = 4  # for large type on narrow screens
        plot.y_range = models.Range1d(-0.5, 0.5)
        plot.add_layout(models.Span(location=0, dimension="height", line_color=GRAY,
                                    line_alpha=0.5))  # fmt: skip
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(
        self,
        hidden: Float[np.ndarray, "n v"],
        truth: Rows,
        neurons: Sequence[str],
        influence: Float[np.ndarray, " v"],
        classes: Sequence[str] = (),
        target: str = later("target"),
    ) -> None:
        """Show the means of v hidden units at n rows.

        Args:
            hidden: The means.
            truth: Target of each row: 0 or 1 with classes; NaN if unknown.
            neurons: Names of the units.
            influence: Each unit's share of the output's relevance.
            classes: Names of the two classes; empty for a numerical target.
            target: Name of the target, with its unit.
        """
        self._units = np.sort(np.argsort(-influence, kind="stable")[:MAX_UNITS])
        self._set_lanes([str(neurons[i]) for i in self._units])
        step = max(1, -(-len(hidden) * len(self._units) // DOTS))
        values, y = hidden[::step][:, self._units], truth[::step]
        offset = (np.arange(len(values)) * GOLDEN) % 1  # position of a row within its lane
        for item, source, label, name in zip(self.items, self.dots, (0, 1), classes or ("", "")):
            rows = (y == label) if classes else np.zeros(len(y), bool)
            half = 0.04 + 0.36 * offset[rows]
            _fill(source, values[rows], half if label else -half)
            item.update(label={"value": name or "-"}, visible=bool(classes))
        finite = np.zeros(0, int) if classes else np.flatnonzero(np.isfinite(y))
        if len(finite):
            low, high = np.quantile(y[finite], [0.02, 0.98])
            self.colors.update(low=float(low), high=float(max(high, low + 1e-9)))
        _fill(
            self.shades,
            values[finite],
            0.8 * (offset[finite] - 0.5),
            truth=y[finite],
        )
        self.bar.update(visible=bool(len(finite)), title=tr(target))
        self.describe(_reading(hidden, truth, [str(n) for n in neurons], bool(classes)))

    def point(self, mean: Float[np.ndarray, " v"], std: Float[np.ndarray, " v"]) -> None:
        """Mark one row by its units' means with 95% intervals."""
        y = -np.arange(len(self._units), dtype=float)
        mean, half = mean[self._units], Z_95 * std[self._units]
        update_source(self.mark, x=mean, y=y, low=mean - half, high=mean + half)

    def _set_lanes(self, labels: list[str]) -> None:
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
    """Set the values of n rows in k lanes; `lift` is the offset from a lane's center."""
    k = values.shape[1]
    y = (lift[:, None] - np.arange(k)).T.ravel()
    update_source(
        source, x=values.T.ravel(), y=y, **{name: np.tile(v, k) for name, v in more.items()}
    )


def _reading(
    hidden: Float[np.ndarray, "n v"], truth: Rows, names: Sequence[str], classes: bool
) -> str:
    """Name the units with the largest and smallest absolute correlation with the target."""
    finite = np.isfinite(truth)
    if finite.sum() < 3 or np.ptp(truth[finite]) == 0:
        return tr("Too few rows have different targets to compute correlations.")
    centered = hidden[finite] - hidden[finite].mean(0)
    deviation = truth[finite] - truth[finite].mean()
    scale = np.sqrt((centered**2).sum(0) * (deviation**2).sum())
    corr = np.abs(centered.T @ deviation) / np.where(scale > 0, scale, np.inf)
    order = np.argsort(-corr, kind="stable")
    best, last = order[0], order[-1]
    if len(order) == 1:
        return tr(ONE_OF_CLASSES if classes else ONE_OF_TARGET, name=names[best], value=corr[best])
    return tr(OF_CLASSES if classes else OF_TARGET, name=names[best], value=corr[best],
              other=names[last], least=corr[last])  # fmt: skip
