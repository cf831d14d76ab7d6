"""A photograph with boxes around its patches, colored by their probabilities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bokeh.events import Tap
from jaxtyping import Float, Int, UInt8

from scant_dashboard.plots.base import Plot, columns, empty, update_source
from scant_dashboard.plots.images import rgba
from scant_dashboard.plots.theme import DEVIATION, models, new_figure
from scant_dashboard.translate import as_number, tr

# Insets that separate overlapping boxes, as fractions of the picture's width.
SHRINK = (0.0, 0.012, 0.024, 0.036)


class BoxesPlot(Plot):
    """A picture in its own aspect ratio, with each patch's probability at its center.

    Args:
        title: The heading.
        pick: Called with the row of a clicked patch and the offset of the click from its center, as
            shares of its width and height; of overlapping patches, the nearest center wins.
    """

    def __init__(
        self, title: str, pick: Callable[[int, Float[np.ndarray, " 2"]], None] | None = None
    ) -> None:
        self.picture = models.ColumnDataSource({n: [] for n in ("image", "x", "y", "dw", "dh")})
        self.boxes = columns("left", "top", "right", "bottom", "x", "y", "p", "row", "width")
        self.labels = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self._size = np.empty((0, 2))  # width and height of each box, in pixels
        plot = new_figure("picture", match_aspect=True, x_range=models.Range1d(0, 16),
                          y_range=models.Range1d(9, 0), tools="")  # fmt: skip
        plot.update(height=None, width=None, aspect_ratio=16 / 9, min_border_left=0)
        plot.axis.visible = False
        plot.grid.visible = False
        plot.image_rgba("image", "x", "y", "dw", "dh", source=self.picture)
        self.colors = models.LinearColorMapper(palette=list(DEVIATION), low=0, high=1)
        boxes = plot.quad("left", "right", "top", "bottom", source=self.boxes, fill_alpha=0.0,
                          line_color={"field": "p", "transform": self.colors},
                          line_width="width")  # fmt: skip
        plot.text("x", "y", "text", source=self.labels, text_align="center", text_color="#ffffff",
                  text_baseline="middle", text_font_size="13px", text_font_style="bold",
                  background_fill_color="#000000", background_fill_alpha=0.55,
                  padding=3)  # fmt: skip
        tips = [(tr("row"), "@row{0}"), ("p", "@p{0.00}")]
        plot.add_tools(models.HoverTool(renderers=[boxes], tooltips=tips))
        if pick:
            plot.on_event(Tap, lambda event: self._tapped(event, pick))
        super().__init__(title, plot)

    def _tapped(self, event: Tap, pick: Callable[[int, Float[np.ndarray, " 2"]], None]) -> None:
        if event.x is None or event.y is None or not len(self._size):
            return
        x, y = (np.asarray(self.boxes.data[n], float) for n in "xy")
        distance = np.array([event.x, event.y]) - np.column_stack([x, y])
        offset = distance / self._size
        inside = (np.abs(offset) <= 0.5).all(1)
        if inside.any():
            nearest = int(np.where(inside, np.hypot(*distance.T), np.inf).argmin())
            pick(int(self.boxes.data["row"][nearest]), offset[nearest])

    def show(
        self,
        image: UInt8[np.ndarray, "h w 3"],
        box: Float[np.ndarray, "b 4"],
        p: Float[np.ndarray, " b"],
        rows: Int[np.ndarray, " b"],
        reading: str,
    ) -> None:
        """Show a picture with b boxes.

        Args:
            image: The picture.
            box: Left, top, width and height of the boxes, as fractions of the picture.
            p: Probabilities of the class of interest.
            rows: Row of each box in the pool.
            reading: The text alternative.
        """
        h, w = image.shape[:2]
        plot = self.figures[0]
        plot.aspect_ratio = w / h
        plot.x_range.update(start=0, end=w)
        plot.y_range.update(start=h, end=0)
        self.picture.data = {"image": [rgba(image)], "x": [0.0], "y": [0.0], "dw": [float(w)],
                             "dh": [float(h)]}  # fmt: skip
        left, top, width, height = (box * np.array([w, h, w, h])).T
        self._size = np.column_stack([width, height])
        inset = w * np.array(SHRINK)[np.arange(len(p)) % len(SHRINK)]
        update_source(
            self.boxes,
            left=left + inset, top=top + inset, right=left + width - inset,
            bottom=top + height - inset, x=left + width / 2, y=top + height / 2, p=p, row=rows,
            width=np.where(p > 0.5, 4.0, 2.0),
        )  # fmt: skip
        order = np.argsort(p, kind="stable")  # the most probable on top
        self.labels.data = {
            "x": (left + width / 2)[order],
            "y": (top + height / 2)[order],
            "text": [as_number(f"{v:.2f}") for v in p[order]],
        }
        self.describe(reading)

    def clear(self) -> None:
        super().clear()
        self._size = np.empty((0, 2))
        empty(self.boxes)
