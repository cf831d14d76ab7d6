"""Small multiples of curves: outputs in rows, their replicas in columns, in a single figure.

A separate figure per cell would need some forty Bokeh models each. Here a cell is a rectangle in
one figure's plane to which its data are shifted, so a grid of any size costs as much as one plot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import panel as pn
from bokeh.events import Tap
from jaxtyping import Bool, Float, Int

from scant.metrics import Z_95, within_95
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    GREEN,
    VERMILION,
    models,
    new_figure,
    place_legend_above,
)
from scant_dashboard.translate import as_number, later, tr

Curves = Float[np.ndarray, "s r g"]
Rows = Float[np.ndarray, " n"]
Indices = Int[np.ndarray, " n"]

ACROSS, DOWN = 0.08, 0.34  # gaps between cells, in cells; the lower gap holds a replica's name
ROW = 96  # pixels of a cell's height
MIN_CELL_WIDTH = 70  # pixels; on narrower pages the grid scrolls
BAND_Y, BAND_F = later("95% of new measurements y"), later("95% for the curve f")
SHARED = later("shared by the replicas, g")
MEAN, TRAINED, HELD = later("mean"), later("training points"), later("held out")
Y_MARGIN = 0.2  # fraction of a row's range of values, above and below the data
CURVES = ("u", "mean", "shared", "f_lo", "f_hi", "y_lo", "y_hi")
SCROLL = """
:host { overflow-x: auto !important; overflow-y: hidden !important; max-height: none !important;
  min-width: 0; max-width: 100%; }
"""


class ReplicaGrid(Plot):
    """Means with bands of the function f and of new measurements y (Ma 2023, 5.14).

    Each row has its own y scale from its data; curves are clipped at the cell's edge.

    Args:
        title: The heading.
        row_height: Pixels.
        pick: Called with (row, replica) of a clicked cell.
        legend: Whether to show a legend.
        rows: Kind of object per row. Rows other than "outputs" all show the same points.
    """

    def __init__(
        self,
        title: str,
        row_height: int = ROW,
        pick: Callable[[int, int], None] | None = None,
        legend: bool = True,
        rows: str = later("outputs"),
    ) -> None:
        self.row_height, self.rows_are = row_height, rows
        self.rows: list[str] = []
        self.replicas: list[list[str]] = []
        self._x = (0.0, 1.0)
        self._y = np.empty((0, 2))
        self._points: tuple[np.ndarray, ...] = (np.empty(0),) * 5
        self.curves, self.points, self.held = (columns(*c) for c in (CURVES, ("u", "v"), "uv"))
        self.cells = columns("left", "right", "bottom", "top")
        self.chosen = columns("left", "right", "bottom", "top")
        self.labels = models.ColumnDataSource(
            {"u": [], "top": [], "bottom": [], "text": [], "hidden": []}
        )
        plot = _figure(self, legend)
        if pick is not None:
            plot.on_event(Tap, lambda event: self._tapped(event, pick))
        super().__init__(title, plot)
        self.panel = pn.Column(
            self.panel, stylesheets=[SCROLL], sizing_mode="stretch_width", margin=0
        )

    @staticmethod
    def tall(rows: int, row_height: int = ROW) -> int:
        """Return the height in pixels of a grid with so many rows, with axis and legend."""
        return round(row_height * rows * (1 + DOWN)) + 110

    def lay_out(
        self,
        rows: Sequence[str],
        replicas: Sequence[Sequence[str]],
        x: Rows,
        y: Rows,
        row: Indices,
        replica: Indices,
        held: Bool[np.ndarray, " n"],
        span: tuple[float, float] | None = None,
    ) -> None:
        """Create the cells and show the data.

        Args:
            rows: Names of the rows.
            replicas: Names of each row's replicas.
            x: Inputs of n data points.
            y: Their values; NaN if unknown.
            row: Row of each point.
            replica: Index of each point's replica within its row.
            held: Whether each point was held out.
            span: Range of the inputs; None for that of the data.
        """
        self.rows, self.replicas = list(rows), [list(names) for names in replicas]
        low, high = span or ((float(x.min()), float(x.max())) if len(x) else (0.0, 1.0))
        self._x = (low, high if high > low else low + 1.0)
        self._y = np.array([_range(y[(row == i) & np.isfinite(y)]) for i in range(len(rows))])
        self._points = (x, y, row, replica, held)
        u, v = self._to_plane(x, y, row, replica)
        update_source(self.points, u=u[~held], v=v[~held])
        update_source(self.held, u=u[held], v=v[held])
        self._frame()

    def show(
        self,
        grid: Float[np.ndarray, " g"],
        mean: Curves,
        std_f: Curves,
        std_y: Curves,
        shared: Float[np.ndarray, "s g"] | None = None,
    ) -> None:
        """Show each cell's curves; cells with non-finite means stay empty."""
        parts: list[np.ndarray] = []
        for i, names in enumerate(self.replicas):
            for j in range(len(names)):
                if np.isfinite(mean[i, j]).all():
                    shared_mean = np.full(len(grid), np.nan) if shared is None else shared[i]
                    values = np.stack([mean[i, j], shared_mean, *_band(mean[i, j], std_f[i, j]),
                                       *_band(mean[i, j], std_y[i, j])])  # fmt: skip
                    parts.append(self._cell(grid, values, i, j))
        joined = np.concatenate(parts, axis=1) if parts else np.empty((len(CURVES), 0))
        update_source(self.curves, **dict(zip(CURVES, joined)))
        self._explain(std_f, std_y, shared)
        self.describe(self._reading(grid, mean, std_f, std_y))

    def choose(self, row: int | None, replica: int = 0) -> None:
        """Mark one cell, or none."""
        cells = [] if row is None else [self._cell_at(row, replica)]
        left, right, bottom, top = np.array(cells).reshape(-1, 4).T
        update_source(self.chosen, left=left, right=right, bottom=bottom, top=top)

    def clear(self) -> None:
        super().clear()
        self.rows, self.replicas = [], []

    def _explain(self, std_f: Curves, std_y: Curves, shared: object) -> None:
        """Hide the legend items of glyphs without data."""
        visible = {
            BAND_Y: np.isfinite(std_y).any(),
            BAND_F: np.isfinite(std_f).any(),
            SHARED: shared is not None,
            MEAN: True,
            TRAINED: len(self.points.data["u"]) > 0,
            HELD: len(self.held.data["u"]) > 0,
        }
        labeled = {tr(label): value for label, value in visible.items()}
        for item in self.figures[0].legend[0].items:
            item.visible = bool(labeled[item.label.value])

    # --- from a cell's units to the figure's plane ----------------------------------------------

    def _to_plane(
        self, x: Rows, y: Rows, row: Indices, replica: Indices
    ) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._x
        bottom, top = self._y[row].T if len(row) else np.empty((2, 0))
        inside = np.clip((y - bottom) / (top - bottom), 0.0, 1.0)
        return replica * (1 + ACROSS) + (x - low) / (high - low), inside - row * (1 + DOWN)

    def _cell(self, grid: np.ndarray, values: np.ndarray, i: int, j: int) -> np.ndarray:
        """Return one cell's curves; zero-width ends of bands join the cells invisibly."""
        rows, n = np.full(len(grid), i), len(values)
        u, _ = self._to_plane(grid, values[0], rows, np.full(len(grid), j))
        v = np.stack([self._to_plane(grid, one, rows, rows)[1] for one in values])
        edges = [np.concatenate([[np.nan] * 2, [v[0, k]] * (n - 2)])[:, None] for k in (0, -1)]
        v = np.concatenate([edges[0], v, edges[1]], axis=1)
        return np.concatenate([np.concatenate([u[:1], u, u[-1:]])[None], v])

    def _cell_at(self, i: int, j: int) -> tuple[float, float, float, float]:
        return j * (1 + ACROSS), j * (1 + ACROSS) + 1, -i * (1 + DOWN), 1 - i * (1 + DOWN)

    def _tapped(self, event: Any, pick: Callable[[int, int], None]) -> None:
        i, j = int(np.floor(-(event.y - 1 - DOWN / 2) / (1 + DOWN))), int(event.x // (1 + ACROSS))
        if 0 <= i < len(self.rows) and 0 <= j < len(self.replicas[i]):
            pick(i, j)

    def _frame(self) -> None:
        """Set cells, names, ticks and the figure's size."""
        plot, n_columns = self.figures[0], max(map(len, self.replicas), default=1)
        cells = [(i, j) for i, names in enumerate(self.replicas) for j in range(len(names))]
        edges = np.array([self._cell_at(i, j) for i, j in cells]).reshape(-1, 4)
        update_source(self.cells, **dict(zip(("left", "right", "bottom", "top"), edges.T)))
        self.labels.data = {
            "u": edges[:, 0],
            "top": edges[:, 3],
            "bottom": edges[:, 2],
            "text": [self.replicas[i][j] for i, j in cells],
            "hidden": [tr(HELD) if self._hidden(i, j) else "" for i, j in cells],
        }
        total = len(self.rows) * (1 + DOWN)
        plot.x_range.update(start=-0.04, end=n_columns * (1 + ACROSS) - ACROSS + 0.04)
        plot.y_range.update(start=1 - total + DOWN - 0.06, end=1 + DOWN)
        plot.update(
            height=self.tall(len(self.rows), self.row_height),
            min_width=70 + MIN_CELL_WIDTH * n_columns,
        )
        across = {
            j * (1 + ACROSS) + (tick - self._x[0]) / (self._x[1] - self._x[0]): as_number(
                f"{tick:g}"
            )
            for j in range(n_columns)
            for tick in ticks(*self._x, 2)
        }
        down = {
            (tick - low) / (high - low) - i * (1 + DOWN): as_number(f"{tick:g}")
            for i, (low, high) in enumerate(self._y)
            for tick in ticks(low, high, 2)
        }
        names = {0.5 - i * (1 + DOWN): name for i, name in enumerate(self.rows)}
        for axis, labels in (
            (plot.xaxis[0], across),
            (plot.yaxis[0], down),
            (plot.yaxis[1], names),
        ):
            axis.ticker = models.FixedTicker(ticks=list(labels))
            axis.major_label_overrides = labels

    def _hidden(self, i: int, j: int) -> bool:
        """Whether a replica has points, all of them held out."""
        _, _, row, replica, held = self._points
        cell_held = held[(row == i) & (replica == j)]
        return len(cell_held) > 0 and bool(cell_held.all())

    def _reading(self, grid: np.ndarray, mean: Curves, std_f: Curves, std_y: Curves) -> str:
        if not len(self.rows) or not np.isfinite(std_y).any():
            return tr("No curve yet.")
        spread = np.where(np.isfinite(std_f), std_f, std_y)
        scaled = spread / np.diff(self._y, axis=1)[:, :, None]  # rows may have different units
        i, j, k = np.unravel_index(int(np.nanargmax(scaled)), scaled.shape)
        reading = tr(
            "{cells}: the widest 95% interval, ± {half:.2g}, is that of {row}, {replica} at "
            "{x:.3g}.",
            cells=self._cell_reading(),
            half=Z_95 * spread[i, j, k],
            row=self.rows[i],
            replica=self.replicas[i][j],
            x=grid[k],
        )
        x, y, row, replica, held = self._points
        query = np.flatnonzero(held & np.isfinite(y) & (replica >= 0))
        if not len(query):
            return reading
        results = [
            [np.interp(x[n], grid, a[row[n], replica[n]]) for n in query] for a in (mean, std_y)
        ]
        inside = within_95(y[query], *np.asarray(results))
        return f"{self._coverage(inside, row[query])} {reading}"

    def _coverage(self, inside: Bool[np.ndarray, " n"], row: Indices) -> str:
        """Describe how many held-out points lie in their bands, by row if these share points."""
        if self.rows_are == "outputs":
            return tr(
                "{inside} of {n} held-out points (green rings) lie within the 95% band of new "
                "measurements.",
                inside=int(inside.sum()),
                n=len(inside),
            )
        count = np.bincount(row, minlength=len(self.rows))
        covered = np.bincount(row, weights=inside, minlength=len(self.rows))
        message = ", ".join(f"{name} {int(n)}" for name, n in zip(self.rows, covered))
        return tr(
            "Held-out points (green rings, the same {n} in each row) within the 95% band of new "
            "measurements: {counts}.",
            n=count.max(),
            counts=message,
        )

    def _cell_reading(self) -> str:
        n, n_replicas = len(self.rows), max(map(len, self.replicas))
        down = self.rows[0] if n == 1 else f"{n} {tr(self.rows_are)}"
        if n_replicas == 1:
            return tr("{rows}, one replica", rows=down)
        return tr("{rows}, up to {n} replicas", rows=down, n=n_replicas)


def ticks(low: float, high: float, min_count: int = 2) -> list[float]:
    """Return round numbers within a range, at least `min_count` if possible and not many more."""
    width = high - low
    for step in (s * 10.0**e for e in range(int(np.floor(np.log10(width))), -12, -1)
                 for s in (5.0, 2.0, 1.0)):  # fmt: skip
        result = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
        if len(result) >= min_count:
            return [float(f"{value:.10g}") for value in result]
    return [low]


def _band(mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the 95% band; it has zero width where the deviation is not finite."""
    half = Z_95 * np.nan_to_num(std)
    return mean - half, mean + half


def _range(y: np.ndarray) -> tuple[float, float]:
    low, high = (float(y.min()), float(y.max())) if len(y) else (-1.0, 1.0)
    margin = Y_MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _figure(grid: ReplicaGrid, legend: bool) -> Any:
    plot = new_figure("replicas", "x", "", x_range=models.Range1d(0, 1),
                      y_range=models.Range1d(0, 1))  # fmt: skip
    plot.add_layout(models.LinearAxis(), "left")
    names = plot.yaxis[1]
    names.update(axis_line_alpha=0, major_tick_line_color=None, minor_tick_line_color=None,
                 major_label_orientation="vertical", major_label_text_font_size="12px",
                 major_label_standoff=2)  # fmt: skip
    plot.yaxis[0].axis_line_alpha = plot.xaxis[0].axis_line_alpha = 0
    plot.grid.visible = False
    plot.quad("left", "right", "bottom", "top", source=grid.cells, fill_color=None,
              line_color=GRAY, line_alpha=0.35)  # fmt: skip
    bands = (("y", 0.14, BAND_Y), ("f", 0.30, BAND_F))
    for band, alpha, label in bands:
        plot.varea("u", f"{band}_lo", f"{band}_hi", source=grid.curves, color=BLUE,
                   fill_alpha=alpha, legend_label=tr(label))  # fmt: skip
    plot.line("u", "shared", source=grid.curves, color=VERMILION, line_width=1.6,
              line_dash=[5, 3], legend_label=tr(SHARED))  # fmt: skip
    plot.line("u", "mean", source=grid.curves, color=BLUE, line_width=2,
              legend_label=tr(MEAN))  # fmt: skip
    plot.scatter("u", "v", source=grid.points, size=4.5, color=GRAY, legend_label=tr(TRAINED))
    plot.scatter("u", "v", source=grid.held, size=6, fill_color=None, line_color=GREEN,
                 line_width=2, legend_label=tr(HELD))  # fmt: skip
    plot.quad("left", "right", "bottom", "top", source=grid.chosen, fill_color=None,
              line_color=GREEN, line_width=3)  # fmt: skip
    for y, field, color in (("top", "text", GRAY), ("bottom", "hidden", GREEN)):
        plot.text("u", y, field, source=grid.labels, text_font_size="11px", text_color=color,
                  text_baseline="bottom", x_offset=3 * (y == "bottom"), y_offset=-2)  # fmt: skip
    if legend:
        place_legend_above(plot)
    else:
        plot.legend[0].visible = False
    return plot
