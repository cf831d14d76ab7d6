"""Tiles in one figure, in as many columns as the page has room for.

A separate figure per tile would need some forty Bokeh models each; here a tile is a square in one
figure's plane. `assets/tiles.js` places the tiles in the browser, on all pages with and without a
session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import Figure, models, new_figure

# Length of a part of a tile: tile widths, pixels, and pixels that it gets if names fit (`names`).
Part = tuple[float, float, float]

_ARRANGE = "Tiles.arrange(plot)"


class Tiled(Plot):
    """Tiles in rows, rearranged by the browser when the figure's width changes.

    In both directions, tile k lies between k and k + 1, and is divided into parts; `at` returns
    coordinates by part, and the transforms `x` and `y` map them to the figure's plane, in which a
    tile is 1 wide; `size` maps shares of the second part's width. Pixels grow with the page's font
    size, as in present mode.

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
        self._sides = [min_side, max_side, rows_of]
        self.x, self.y, self.size = (models.LinearInterpolator(x=[0, 1], y=[0, 1]) for _ in "xys")
        # All images in one array, which the browser cuts: each array takes two messages.
        self.sheet = models.ColumnDataSource({"sheet": []})
        self.images = models.ColumnDataSource({"image": [], "x": [], "y": []})
        plot = new_figure(name, x_range=models.Range1d(0, 1), y_range=models.Range1d(1, 0))
        plot.update(height=None, frame_height=80, min_border_left=0, min_border_right=0)
        plot.axis.visible = False
        plot.grid.visible = False
        arrange = models.CustomJS(args={"plot": plot}, code=_ARRANGE)
        plot.js_on_change("inner_width", arrange)
        plot.js_on_change("tags", arrange)
        self.sheet.js_on_change("data", arrange)
        self._compose(plot)
        super().__init__(title, plot)

    def _compose(self, plot: Figure) -> None:
        """Add the glyphs."""
        raise NotImplementedError

    def _box(self) -> dict[str, Any]:
        """Return the sides of a box, from columns with their names."""
        x, y = (
            {name: {"field": name, "transform": axis} for name in names}
            for axis, names in ((self.x, ("left", "right")), (self.y, ("bottom", "top")))
        )
        return {**x, **y}

    def _point(self) -> dict[str, Any]:
        """Return the coordinates of a point, from columns x and y."""
        return {n: {"field": n, "transform": axis} for n, axis in (("x", self.x), ("y", self.y))}

    def _arrange(
        self,
        n: int,
        across: Sequence[Part],
        down: Sequence[Part],
        names: tuple[float, Sequence[Any]] = (0.0, ()),
    ) -> None:
        """Arrange n tiles; with none, the size is kept, since a new run's tiles follow soon.

        A change of height would make the browser lay out the whole page again.

        Args:
            n: Number of tiles.
            across: Parts of a tile from left to right.
            down: Parts of a tile from top to bottom.
            names: Pixels that the parts with names need, and the names' renderers, which are hidden
                in smaller tiles.
        """
        if n:
            tags = [n, *self._sides, [*map(list, across)], [*map(list, down)], self.x, self.y,
                    self.size, names[0], list(names[1]), self.sheet, self.images,
                    "sheet"]  # fmt: skip
            if self.figures[0].tags != tags:
                self.figures[0].tags = tags


def at(tile: Any, part: int, share: Any, parts: int) -> Any:
    """Return coordinates within tiles.

    Args:
        tile: Index of the tile.
        part: Index of the part.
        share: Place within the part, from 0 to 1.
        parts: Number of parts.
    """
    return np.asarray(tile) + (part + np.asarray(share)) / (parts + 1)
