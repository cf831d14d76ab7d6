"""Hinton diagram: a matrix of signed numbers as squares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, update_source
from scant_dashboard.plots.theme import models, new_figure
from scant_dashboard.translate import later, tr

SIDE = 204  # pixels of the longer side, which fits a phone together with the names
LETTER = 8  # pixels per letter of a name, spacing included
FIELD = "#808080"  # gray, equally far from white and black
DIAGONAL = later("The largest entry is {entry:.3g}, on the diagonal, for {row} {name}.")
PAIR = later("The largest entry is {entry:.3g}, for {row} {name} and {column} {other}.")


class HintonPlot(Plot):
    """White squares are positive, black negative, on gray; area is relative magnitude.

    The gray is a glyph beneath the grid, because the page's theme replaces figure backgrounds.

    Args:
        title: The heading.
        row: Label of the rows.
        column: Label of the columns.
        what: Plural noun for the entries.
    """

    def __init__(
        self,
        title: str,
        row: str = later("row"),
        column: str = later("column"),
        what: str = later("numbers"),
    ) -> None:
        self.row, self.column, self.what = row, column, what
        across, down = tr(column), tr(row)
        self.names: list[str] = []
        self._axes_state: tuple[object, ...] = ()
        self.field = models.ColumnDataSource({"left": [0], "right": [1], "bottom": [0], "top": [1]})
        self.squares = models.ColumnDataSource(
            {"x": [], "y": [], "side": [], "color": [], "value": []}
        )
        plot = new_figure("hinton", across, down, x_range=models.Range1d(0, 1),
                          y_range=models.Range1d(1, 0))  # fmt: skip
        plot.update(sizing_mode="fixed", width=None, height=None, frame_width=1, frame_height=1)
        plot.quad(left="left", right="right", bottom="bottom", top="top", source=self.field,
                  color=FIELD, level="underlay", line_width=0)  # fmt: skip
        glyph = plot.rect("x", "y", "side", "side", source=self.squares, color="color",
                          line_width=0)  # fmt: skip
        tips = [(down, "@y{0}"), (across, "@x{0}"), (tr("value"), "@value{0.0000}")]
        plot.add_tools(models.HoverTool(renderers=[glyph], tooltips=tips))
        plot.grid.visible = False
        super().__init__(title, plot)

    def show(self, matrix: Float[np.ndarray, "r c"], names: Sequence[str] = ()) -> None:
        """Show a matrix; entries that are not finite are left gray.

        Args:
            matrix: Signed entries.
            names: Names of rows and columns of a square matrix; if empty, they are numbered.
        """
        self.names = [str(name) for name in names]
        rows, cols = matrix.shape
        finite = np.where(np.isfinite(matrix), matrix, 0.0)
        greatest = np.abs(finite).max()
        x, y = np.meshgrid(np.arange(1, cols + 1), np.arange(1, rows + 1))
        side = 0.95 * np.sqrt(np.abs(finite) / greatest) if greatest > 0 else np.zeros_like(finite)
        self.squares.data = {
            "x": x.ravel().astype(np.float32),
            "y": y.ravel().astype(np.float32),
            "side": side.ravel().astype(np.float32),
            "value": finite.ravel().astype(np.float32),
            "color": np.where(finite.ravel() >= 0, "#ffffff", "#000000").tolist(),
        }
        self._frame(rows, cols)
        if greatest == 0:
            self.describe(tr("A {rows} by {columns} matrix of zeros.", rows=rows, columns=cols))
            return
        i, j = np.unravel_index(np.argmax(np.abs(finite)), matrix.shape)
        named = [self.names[k] if k < len(self.names) else str(k + 1) for k in (int(i), int(j))]
        where = DIAGONAL if i == j and self.row == self.column else PAIR
        reading = [
            tr("A {rows} by {columns} matrix of {entries}; the larger a square, the larger its "
               "entry.", rows=rows, columns=cols, entries=tr(self.what)),
            tr("White is positive, black negative.")
            if finite.min() < 0
            else tr("All entries are positive."),
            tr(where, entry=finite[i, j], name=named[0], other=named[1], row=tr(self.row),
               column=tr(self.column)),
            self._most_alike(finite),
        ]  # fmt: skip
        self.describe(" ".join(filter(None, reading)))

    def _most_alike(self, matrix: Float[np.ndarray, "r c"]) -> str:
        """Name the pair with the largest correlation, if these are covariances or correlations."""
        kinds = {tr(kind) for kind in (later("covariances"), later("correlations"))}
        if tr(self.what) not in kinds or len(matrix) < 2:
            return ""
        deviation = np.sqrt(np.diag(matrix))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.triu(matrix / np.outer(deviation, deviation), 1)
        i, j = np.unravel_index(np.nanargmax(np.abs(correlation)), matrix.shape)
        if i == j:  # nothing off the diagonal
            return ""
        names = [self.names[k] if k < len(self.names) else str(k + 1) for k in (int(i), int(j))]
        return tr(
            "Most alike are {name} and {other}, with a correlation of {value:.2f} (1: one "
            "function up to its scale; 0: nothing in common).",
            name=names[0],
            other=names[1],
            value=correlation[i, j],
        )

    def clear(self) -> None:
        super().clear()
        self._axes_state = ()  # the gray was removed with the squares

    def _frame(self, rows: int, cols: int) -> None:
        """Set the axes if changed: for a new ticker, Bokeh traverses all models of the page."""
        if self._axes_state == (rows, cols, *self.names):
            return
        self._axes_state = (rows, cols, *self.names)
        update_source(self.field, left=[0.5], right=[cols + 0.5], bottom=[0.5], top=[rows + 0.5])
        plot = self.figures[0]
        plot.x_range.update(start=0.5, end=cols + 0.5)
        plot.y_range.update(start=rows + 0.5, end=0.5)
        longer = max(rows, cols)
        plot.update(frame_width=SIDE * cols // longer, frame_height=SIDE * rows // longer)
        for axis, n in ((plot.xaxis[0], cols), (plot.yaxis[0], rows)):
            axis.ticker = (
                models.FixedTicker(ticks=list(range(1, n + 1))) if n <= 20 else models.BasicTicker()
            )
            axis.major_label_overrides = {k + 1: shortened(n) for k, n in enumerate(self.names)}
        ticks = min(cols, len(self.names), 20 if cols <= 20 else 6)
        label_width = ticks * max((len(shortened(n)) for n in self.names), default=0) * LETTER
        plot.xaxis[0].major_label_orientation = "vertical" if label_width > SIDE else "horizontal"


def shortened(name: str, max_length: int = 22) -> str:
    """Truncate a name to `max_length` characters, the last an ellipsis."""
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"
