"""A map on which the visitor can draw a polygon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bokeh.events import DoubleTap, SelectionGeometry
from bokeh.palettes import Cividis256
from jaxtyping import Float

from scant_dashboard.plots.base import NOTHING, Plot, columns
from scant_dashboard.plots.choropleth import (
    AROUND,
    HEIGHT,
    MAP_WIDTH,
    Outline,
    height_of,
    scale_bar,
    span,
)
from scant_dashboard.plots.theme import GRAY, VERMILION, color_bar, models, new_figure, tick_labels
from scant_dashboard.translate import tr

_END = """
ended.data = {x: [...drawn.xs], y: [...drawn.ys]}
drawn.update({xs: [], ys: []})
"""


class PolygonDrawing(Plot):
    """The posterior means of a map's polygons, beneath a polygon drawn by the visitor.

    Args:
        title: The heading.
        finished: Called with the corners of a finished polygon, in meters.
    """

    def __init__(self, title: str, finished: Callable[[list[float], list[float]], None]) -> None:
        self.shapes = models.ColumnDataSource({name: [] for name in ("xs", "ys", "place", "mean")})
        self.query = columns("x", "y")
        self._on_finished = finished
        self.level = models.LinearColorMapper(palette=list(Cividis256), low=0, high=1)
        plot = new_figure("map_polygon", height=HEIGHT + 60, match_aspect=True, min_border_left=8)
        base = plot.multi_polygons(
            "xs", "ys", source=self.shapes, line_color=GRAY, line_width=0.7,
            fill_color={"field": "mean", "transform": self.level},
        )  # fmt: skip
        own = plot.line("x", "y", source=self.query, line_color=VERMILION, line_width=2.5)
        color_bar(
            plot, self.level, tr("posterior mean"), "below",
            ticker=models.BasicTicker(desired_num_ticks=3),
            formatter=tick_labels(),
        )  # fmt: skip
        # The tool selects within its renderers; the outline has nothing to select.
        tool = models.PolySelectTool(renderers=[own], description=tr("Draw a polygon"))
        tool.overlay.update(line_color=VERMILION, fill_color=VERMILION, fill_alpha=0.12)
        tips = [(tr("place"), "@place"), (tr("mean"), "@mean{0.[00000]}")]
        plot.add_tools(tool, models.HoverTool(renderers=[base], tooltips=tips))
        plot.toolbar.active_tap = tool
        plot.axis.visible = plot.grid.visible = False
        plot.add_layout(scale_bar(), "above")
        plot.on_event(SelectionGeometry, self._on_geometry)
        # A double click also ends a polygon, as in most drawing programs.
        self.ended = columns("x", "y")
        plot.js_on_event(
            DoubleTap, models.CustomJS(args={"drawn": tool.overlay, "ended": self.ended}, code=_END)
        )
        self.ended.on_change("data", self._on_double_tap)
        super().__init__(title, plot)

    def lay_out(
        self, outlines: Sequence[Outline], names: Sequence[str], mean: Float[np.ndarray, " n"]
    ) -> None:
        """Set the polygons of the run, in meters, with their names and posterior means."""
        self.forget()
        self.figures[0].height = height_of(outlines, 2 * MAP_WIDTH, AROUND)
        self.shapes.data = {
            "xs": [[[x.tolist() for x, _ in rings] for rings in shape] for shape in outlines],
            "ys": [[[y.tolist() for _, y in rings] for rings in shape] for shape in outlines],
            "place": list(names),
            "mean": np.asarray(mean, np.float32),
        }
        span(self.level, mean)
        self.describe(
            tr("The posterior means of {n:,} polygons; no polygon is drawn yet.", n=len(names))
        )

    def mark(self, outline: Float[np.ndarray, "2 v"]) -> None:
        """Outline the queried polygon."""
        x, y = np.asarray(outline, np.float64)
        self.query.data = {"x": x, "y": y}

    def forget(self) -> None:
        """Remove the visitor's polygon."""
        self.query.data = {"x": [], "y": []}

    def clear(self) -> None:
        """Remove all polygons."""
        self.forget()
        self.shapes.data = {name: [] for name in self.shapes.data}
        self.level.update(low=0, high=1)
        super().clear()
        self.describe(NOTHING)

    def _on_geometry(self, event: Any) -> None:
        shape = event.geometry
        if event.final and shape.get("type") == "poly":
            self._finish(shape["x"], shape["y"])

    def _on_double_tap(self, _attribute: str, _before: Any, corners: Any) -> None:
        if len(corners["x"]):
            self._finish(corners["x"], corners["y"])

    def _finish(self, x: Sequence[float], y: Sequence[float]) -> None:
        corners = list(dict.fromkeys(zip(map(float, x), map(float, y))))
        if len(corners) >= 3:
            self._on_finished([a for a, _ in corners], [b for _, b in corners])
