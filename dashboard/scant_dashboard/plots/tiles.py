"""Tiles of one figure, as many across as the page has room for.

A figure of its own for each tile would be forty Bokeh models a tile; here a tile is a place in one
figure's plane, and what is drawn in it is moved there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import Figure, models, new_figure

USUAL = 760  # pixels of a figure before the browser has sent its own
NARROWEST, WIDEST = 40, 10_000  # pixels of a figure that anybody looks at
SMALLEST, LARGEST = 0.25, 8.0  # type of the page, in times of the usual

# Of its figures a browser reports nothing (assets/upstream/early_changes.js); of this it must.
_TELL = """
const wide = cb_obj.inner_width
const type = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16
if (wide > 0 && (Math.abs(wide - sent.data.wide[0]) > 4 || type !== sent.data.type[0]))
  sent.data = {wide: [wide], type: [type]}
"""


class Tiled(Plot):
    """Tiles in rows; the figure tells how wide it is, and the tiles are laid out anew.

    Each is 1 wide in the figure's units, x to the right and y downwards. Where the page's type is
    larger, as it is projected, tiles and words grow with it.

    Args:
        title: The heading.
        name: What its saved files are called.
        least: Pixels of a tile's width that are enough to see what is in it.
        most: Pixels beyond which it does not grow.
        rows_of: Tiles of a row, where there is room for them; else an even part of them.
    """

    def __init__(self, title: str, name: str, least: int, most: int, rows_of: int = 0) -> None:
        self._least, self._most, self._ratio, self._rows_of = least, most, 1.0, rows_of
        self._n, self.across, self.side = 0, 1, float(least)
        self._wide, self._type = USUAL, 1.0
        plot = new_figure(name, x_range=models.Range1d(0, 1), y_range=models.Range1d(1, 0))
        plot.update(height=None, frame_height=80, min_border_left=0, min_border_right=0)
        plot.axis.visible = False
        plot.grid.visible = False
        self.sent = models.ColumnDataSource(
            {"wide": [USUAL], "type": [1.0]}
        )  # only the browser writes to it
        tell = models.CustomJS(args={"sent": self.sent}, code=_TELL)
        plot.js_on_change("inner_width", tell)
        self.sent.on_change(
            "data",
            lambda _attr, _old, new: self._resized(float(new["wide"][0]), float(new["type"][0])),
        )
        self._compose(plot)
        super().__init__(title, plot)

    def _compose(self, plot: Figure) -> None:
        """Add the glyphs."""
        raise NotImplementedError

    def _high(self, side: float) -> float:
        """A tile's height over its width, which takes `side` pixels."""
        raise NotImplementedError

    def _above(self) -> float:
        """Room above the first row of tiles, in tiles' widths."""
        return 0.0

    def _draw(self) -> None:
        """Put everything in its place."""
        raise NotImplementedError

    def _lay(self, n: int) -> None:
        """Make room for n tiles; for none the room stays, as the next run's come in a moment.

        A change of height has the browser lay out the whole page anew.
        """
        self._n = n
        if not n:
            return
        across = min(max(1, int(self._wide / (self._least * self._type))), n)
        if self._rows_of:
            across = max(k for k in range(1, across + 1) if self._rows_of % k == 0)
        side = min(self._wide / across, self._most * self._type)
        self.across, self.side = across, side
        self._ratio = self._high(side)
        down = self._above() + self._ratio * math.ceil(n / across)
        plot: Any = self.figures[0]
        plot.x_range.update(start=0, end=self._wide / side)
        plot.y_range.update(start=down, end=0)
        plot.frame_height = max(round(down * side), 40)

    def _corner(self, tile: Int[np.ndarray, " k"]) -> Float[np.ndarray, "2 k"]:
        """The upper left corners of some tiles."""
        down = self._above() + tile // self.across * self._ratio
        return np.stack([tile % self.across, down]).astype(float)

    def _resized(self, wide: float, type_: float = 1.0) -> None:
        """Lay the tiles out for another width; one that nobody can see leaves them as they are.

        A figure that is folded away or not laid out yet reports a fraction of a pixel. No tile can
        be that wide, and whatever a browser reports decides how large a picture is made here.
        """
        if not (NARROWEST <= wide <= WIDEST and SMALLEST <= type_ <= LARGEST):
            return
        self._wide, self._type = int(wide), type_
        if self._n:
            self._lay(self._n)
            self._draw()
