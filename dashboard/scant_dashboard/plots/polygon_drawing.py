"""A map on which a polygon can be drawn."""

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
from scant_dashboard.plots.theme import GRAY, VERMILION, color_bar, models, new_figure

_END = """
ended.data = {x: [...drawn.xs], y: [...drawn.ys]}
drawn.update({xs: [], ys: []})
"""


class PolygonDrawing(Plot):
    """The posterior means of a map's polygons, under a polygon of the visitor's own.

    Args:
        title: The heading.
        drawn: Called with the corners of a polygon that was drawn, in metres.
    """

    def __init__(self, title: str, drawn: Callable[[list[float], list[float]], None]) -> None:
        self.shapes = models.ColumnDataSource({name: [] for name in ("xs", "ys", "place", "mean")})
        self.asked = columns("x", "y")
        self._drawn = drawn
        self.level = models.LinearColorMapper(palette=list(Cividis256), low=0, high=1)
        plot = new_figure("map_polygon", height=HEIGHT + 60, match_aspect=True, min_border_left=8)
        base = plot.multi_polygons(
            "xs", "ys", source=self.shapes, line_color=GRAY, line_width=0.7,
            fill_color={"field": "mean", "transform": self.level},
        )  # fmt: skip
        own = plot.line("x", "y", source=self.asked, line_color=VERMILION, line_width=2.5)
        color_bar(
            plot, self.level, "posterior mean", "below",
            ticker=models.BasicTicker(desired_num_ticks=3),
            formatter=models.BasicTickFormatter(use_scientific=False),
        )  # fmt: skip
        # Its renderer is what it selects in: nothing that is to be selected.
        tool = models.PolySelectTool(renderers=[own], description="Draw a polygon")
        tool.overlay.update(line_color=VERMILION, fill_color=VERMILION, fill_alpha=0.12)
        tips = [("place", "@place"), ("mean", "@mean{0.[00000]}")]
        plot.add_tools(tool, models.HoverTool(renderers=[base], tooltips=tips))
        plot.toolbar.active_tap = tool
        plot.axis.visible = plot.grid.visible = False
        plot.add_layout(scale_bar(), "above")
        plot.on_event(SelectionGeometry, self._heard)
        # A double click ends a polygon, too, as it does in every program for drawing.
        self.ended = columns("x", "y")
        plot.js_on_event(
            DoubleTap, models.CustomJS(args={"drawn": tool.overlay, "ended": self.ended}, code=_END)
        )
        self.ended.on_change("data", self._ended)
        super().__init__(title, plot)

    def lay(
        self, outlines: Sequence[Outline], places: Sequence[str], mean: Float[np.ndarray, " n"]
    ) -> None:
        """Set out the polygons of the run, in metres, with their posterior means."""
        self.forget()
        self.figures[0].height = height_of(outlines, 2 * MAP_WIDTH, AROUND)
        self.shapes.data = {
            "xs": [[[x.tolist() for x, _ in rings] for rings in shape] for shape in outlines],
            "ys": [[[y.tolist() for _, y in rings] for rings in shape] for shape in outlines],
            "place": list(places),
            "mean": np.asarray(mean, np.float32),
        }
        span(self.level, mean)
        self.describe(f"The posterior means of {len(places):,} polygons; none is asked about yet.")

    def mark(self, outline: Float[np.ndarray, "2 v"]) -> None:
        """Outline the polygon that is asked about."""
        x, y = np.asarray(outline, np.float64)
        self.asked.data = {"x": x, "y": y}

    def forget(self) -> None:
        """Take the visitor's polygon off the map."""
        self.asked.data = {"x": [], "y": []}

    def clear(self) -> None:
        """Forget what is shown."""
        self.forget()
        self.shapes.data = {name: [] for name in self.shapes.data}
        self.level.update(low=0, high=1)
        super().clear()
        self.describe(NOTHING)

    def _heard(self, event: Any) -> None:
        shape = event.geometry
        if event.final and shape.get("type") == "poly":
            self._finish(shape["x"], shape["y"])

    def _ended(self, _attribute: str, _before: Any, corners: Any) -> None:
        if len(corners["x"]):
            self._finish(corners["x"], corners["y"])

    def _finish(self, x: Sequence[float], y: Sequence[float]) -> None:
        corners = list(dict.fromkeys(zip(map(float, x), map(float, y))))
        if len(corners) >= 3:
            self._drawn([a for a, _ in corners], [b for _, b in corners])
