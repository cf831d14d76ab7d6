"""Tiles in one figure, in as many columns as the page has room for.

A separate figure per tile would need some forty Bokeh models each; here a tile is a square in one
figure's plane, to which its contents are shifted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import Figure, models, new_figure

USUAL = 760  # width in pixels until the browser reports it
NARROWEST, WIDEST = 40, 10_000  # plausible widths in pixels
SMALLEST, LARGEST = 0.25, 8.0  # plausible font sizes relative to the default

# Browsers do not report figures' sizes (assets/upstream/early_changes.js), so a script does.
_REPORT_SIZE = """
const width = cb_obj.inner_width
// On a projector, tiles are as large as its height allows.
const projected = new URLSearchParams(location.search).has('present')
const size = parseFloat(getComputedStyle(document.documentElement).fontSize)
const type = projected ? innerHeight / 500 : size / 16
if (width > 0 && (Math.abs(width - sent.data.wide[0]) > 4 || type !== sent.data.type[0]))
  sent.data = {wide: [width], type: [type]}
"""


class Tiled(Plot):
    """Tiles in rows, rearranged when the browser reports another width.

    Each tile is 1 wide in the figure's units, x to the right and y downwards. Tiles and text grow
    with the page's font size, as in present mode.

    Args:
        title: The heading.
        name: Name of saved files.
        min_side: Minimum width of a tile in pixels.
        max_side: Maximum width of a tile in pixels.
        rows_of: Tiles per row, if there is room for them; otherwise a divisor of this number.
    """

    def __init__(
        self, title: str, name: str, min_side: int, max_side: int, rows_of: int = 0
    ) -> None:
        self._min_side, self._max_side = min_side, max_side
        self._ratio, self._rows_of = 1.0, rows_of
        self._n, self.across, self.side = 0, 1, float(min_side)
        self._width, self._type = USUAL, 1.0
        plot = new_figure(name, x_range=models.Range1d(0, 1), y_range=models.Range1d(1, 0))
        plot.update(height=None, frame_height=80, min_border_left=0, min_border_right=0)
        plot.axis.visible = False
        plot.grid.visible = False
        # Written by the browser only.
        self.sent = models.ColumnDataSource({"wide": [USUAL], "type": [1.0]})
        report = models.CustomJS(args={"sent": self.sent}, code=_REPORT_SIZE)
        plot.js_on_change("inner_width", report)
        self.sent.on_change(
            "data",
            lambda _attr, _old, new: self._resized(float(new["wide"][0]), float(new["type"][0])),
        )
        self._compose(plot)
        super().__init__(title, plot)

    def _compose(self, plot: Figure) -> None:
        """Add the glyphs."""
        raise NotImplementedError

    def _aspect(self, side: float) -> float:
        """Return height over width of a tile that is `side` pixels wide."""
        raise NotImplementedError

    def _head_room(self) -> float:
        """Return the space above the first row, in tile widths."""
        return 0.0

    def _draw(self) -> None:
        """Draw the contents of all tiles at their positions."""
        raise NotImplementedError

    def _arrange(self, n: int) -> None:
        """Arrange n tiles; with none, the size is kept, since a new run's tiles follow soon.

        A change of height would make the browser lay out the whole page again.
        """
        self._n = n
        if not n:
            return
        n_columns = min(max(1, int(self._width / (self._min_side * self._type))), n)
        if self._rows_of:
            n_columns = max(k for k in range(1, n_columns + 1) if self._rows_of % k == 0)
        side = min(self._width / n_columns, self._max_side * self._type)
        self.across, self.side = n_columns, side
        self._ratio = self._aspect(side)
        height = self._head_room() + self._ratio * math.ceil(n / n_columns)
        plot: Any = self.figures[0]
        plot.x_range.update(start=0, end=self._width / side)
        plot.y_range.update(start=height, end=0)
        plot.frame_height = max(round(height * side), 40)

    def _corner(self, tile: Int[np.ndarray, " k"]) -> Float[np.ndarray, "2 k"]:
        """Return the upper left corners of tiles."""
        y = self._head_room() + tile // self.across * self._ratio
        return np.stack([tile % self.across, y]).astype(float)

    def _resized(self, width: float, type_: float = 1.0) -> None:
        """Rearrange the tiles for another width; implausible values are ignored.

        Collapsed figures report fractions of a pixel, which is too narrow for a tile, and the
        reported width determines the size of pictures made here, so it must be bounded.
        """
        if not (NARROWEST <= width <= WIDEST and SMALLEST <= type_ <= LARGEST):
            return
        self._width, self._type = int(width), type_
        if self._n:
            self._arrange(self._n)
            self._draw()
