"""A photograph with the boxes of its patches, each in the color of its probability."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bokeh.events import Tap
from jaxtyping import Float, Int, UInt8

from scant_dashboard.plots.base import Plot, columns, empty, update_source
from scant_dashboard.plots.images import rgba
from scant_dashboard.plots.theme import DEVIATION, models, new_figure

SHRINK = (0.0, 0.012, 0.024, 0.036)  # of the picture's width: boxes that overlap stay apart


class BoxesPlot(Plot):
    """A picture in its own proportions; probabilities stand in the middle of their patches.

    Args:
        title: The heading.
        pick: Called with the row of the patch that the visitor clicked: of several under the click
            the one whose middle is nearest.
    """

    def __init__(self, title: str, pick: Callable[[int], None] | None = None) -> None:
        self.picture = models.ColumnDataSource({n: [] for n in ("image", "x", "y", "dw", "dh")})
        self.boxes = columns("left", "top", "right", "bottom", "x", "y", "p", "row", "width")
        self.labels = models.ColumnDataSource({"x": [], "y": [], "text": []})
        plot = new_figure("picture", match_aspect=True, x_range=models.Range1d(0, 16),
                          y_range=models.Range1d(9, 0), tools="")  # fmt: skip
        plot.update(height=None, width=None, aspect_ratio=16 / 9, min_border_left=0)
        plot.axis.visible = False
        plot.grid.visible = False
        plot.image_rgba("image", "x", "y", "dw", "dh", source=self.picture)
        self.colors = models.LinearColorMapper(palette=list(DEVIATION), low=0, high=1)
        drawn = plot.quad("left", "right", "top", "bottom", source=self.boxes, fill_alpha=0.0,
                          line_color={"field": "p", "transform": self.colors},
                          line_width="width")  # fmt: skip
        plot.text("x", "y", "text", source=self.labels, text_align="center", text_color="#ffffff",
                  text_baseline="middle", text_font_size="13px", text_font_style="bold",
                  background_fill_color="#000000", background_fill_alpha=0.55,
                  padding=3)  # fmt: skip
        tips = [("row", "@row{0}"), ("p", "@p{0.00}")]
        plot.add_tools(models.HoverTool(renderers=[drawn], tooltips=tips))
        if pick:
            plot.on_event(Tap, lambda event: self._tapped(event, pick))
        super().__init__(title, plot)

    def _tapped(self, event: Tap, pick: Callable[[int], None]) -> None:
        if event.x is None or event.y is None or not len(self.boxes.data["row"]):
            return
        names = ("left", "right", "top", "bottom", "x", "y")
        left, right, top, bottom, x, y = (np.asarray(self.boxes.data[n], float) for n in names)
        inside = (left <= event.x) & (event.x <= right) & (top <= event.y) & (event.y <= bottom)
        if inside.any():
            far = np.where(inside, np.hypot(x - event.x, y - event.y), np.inf)
            pick(int(self.boxes.data["row"][int(far.argmin())]))

    def show(
        self,
        image: UInt8[np.ndarray, "h w 3"],
        box: Float[np.ndarray, "b 4"],
        p: Float[np.ndarray, " b"],
        rows: Int[np.ndarray, " b"],
        reading: str,
    ) -> None:
        """Show a picture and b boxes: left, top, width and height as shares of the picture."""
        h, w = image.shape[:2]
        plot = self.figures[0]
        plot.aspect_ratio = w / h
        plot.x_range.update(start=0, end=w)
        plot.y_range.update(start=h, end=0)
        self.picture.data = {"image": [rgba(image)], "x": [0.0], "y": [0.0], "dw": [float(w)],
                             "dh": [float(h)]}  # fmt: skip
        left, top, wide, high = (box * np.array([w, h, w, h])).T
        inset = w * np.array(SHRINK)[np.arange(len(p)) % len(SHRINK)]
        update_source(
            self.boxes,
            left=left + inset, top=top + inset, right=left + wide - inset,
            bottom=top + high - inset, x=left + wide / 2, y=top + high / 2, p=p, row=rows,
            width=np.where(p > 0.5, 4.0, 2.0),
        )  # fmt: skip
        order = np.argsort(p, kind="stable")  # the likeliest on top
        self.labels.data = {
            "x": (left + wide / 2)[order],
            "y": (top + high / 2)[order],
            "text": [f"{v:.2f}" for v in p[order]],
        }
        self.describe(reading)

    def clear(self) -> None:
        super().clear()
        empty(self.boxes)
