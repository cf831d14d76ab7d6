"""Grids of small images with captions, and an image with a map of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, UInt8, UInt32

from scant_dashboard.plots.base import columns, empty, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    DEVIATION,
    GRAY,
    INK,
    PAPER,
    Figure,
    color_bar,
    models,
)
from scant_dashboard.plots.tiles import Tiled

Images = Float[np.ndarray, "k h w"]
Colored = Float[np.ndarray, "k h w 3"]

LEVELS = 255  # gray levels; one more encodes "no image"
FINE = 24  # minimum pixels of a tile, so that margins are whole pixels
MARGIN = 0.12  # fraction of a tile's width, to the right of its image
LINE = 15  # pixels of a line of text
BAR = 4  # pixels of a bar


def shades(low: str = PAPER, high: str = INK, n: int = LEVELS) -> list[str]:
    """Return n colors from paper to ink."""
    first, last = (np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in (low, high))
    mixed = np.round(np.linspace(first, last, n)).astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in mixed]


class GalleryPlot(Tiled):
    """Images of one size, dark ink on white paper on light and dark pages alike.

    All images are sent as one picture, because each array takes two messages.

    Args:
        title: The heading.
        name: Name of saved files.
        min_side: Minimum width of an image in pixels.
        max_side: Maximum width of an image in pixels.
        lines: Number of caption lines.
        pick: Called with the index of a clicked image.
        rows_of: Images per row, if there is room for them.
    """

    def __init__(
        self,
        title: str,
        name: str = "gallery",
        min_side: int = 88,
        max_side: int = 112,
        lines: int = 2,
        pick: Callable[[int], None] | None = None,
        rows_of: int = 0,
    ) -> None:
        self._pick, self._lines = pick, lines
        self._images: Images | Colored = np.empty((0, 1, 1))
        self._captions: list[list[str]] = []
        self._marks: list[str] = []
        self._bars: np.ndarray | None = None
        self.picture = models.ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []})
        self.caption_source = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.frames = models.ColumnDataSource(
            {"left": [], "right": [], "bottom": [], "top": [], "color": [], "tip": []}
        )
        self.bars = columns("left", "right", "bottom", "top")
        super().__init__(title, name, min_side, max_side, rows_of)

    def _aspect(self, side: float) -> float:
        """Return the aspect ratio with room for image, bar and caption, in whole picture pixels."""
        h, w = self._images.shape[1:3]
        self._scale = -(-FINE // w)
        self._step = round(w * self._scale * (1 + MARGIN))
        self._size = np.array([w, h]) * self._scale / self._step
        below = (self._lines * LINE * self._type + BAR + 8) / side
        return round((self._size[1] + below) * self._step) / self._step

    def _sheet(self, plot: Figure) -> None:
        """Add the glyph of the picture that contains all images."""
        ink = models.LinearColorMapper(
            palette=shades(), low=0, high=LEVELS - 1, high_color="#00000000"
        )
        plot.image("image", "x", "y", "dw", "dh", source=self.picture, color_mapper=ink)

    def _pixels(self) -> tuple[UInt8[np.ndarray, "k h w"] | UInt32[np.ndarray, "k h w"], int]:
        """Return the images as encoded for that glyph, and the code for "no image"."""
        return np.round(self._images * (LEVELS - 1)).astype(np.uint8), LEVELS

    def _compose(self, plot: Figure) -> None:
        self._sheet(plot)
        box = ("left", "right", "bottom", "top")
        plot.quad(*box, source=self.bars, color=BLUE, line_width=0)
        frames = plot.quad(*box, source=self.frames, fill_alpha=0, line_color="color",
                           line_width=2, nonselection_line_alpha=1)  # fmt: skip
        plot.text("x", "y", "text", source=self.caption_source, text_color=GRAY,
                  text_font_size="12px", text_baseline="top")  # fmt: skip
        plot.add_tools(models.HoverTool(renderers=[frames], tooltips="@tip"))
        if self._pick is not None:
            plot.add_tools(models.TapTool(renderers=[frames]))
            self.frames.selected.on_change("indices", self._tapped)

    def _tapped(self, _attr: str, _old: list[int], new: list[int]) -> None:
        if new and self._pick is not None:
            self._pick(new[0])
            self.frames.selected.indices = []

    def show(
        self,
        images: Images | Colored,
        captions: Sequence[Sequence[str]],
        reading: str,
        marks: Sequence[str] | None = None,
        bars: Float[np.ndarray, " k"] | None = None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        """Show k images.

        Args:
            images: The images; 1 is full ink, or values in `span`.
            captions: Lines of text under each.
            reading: The text alternative.
            marks: Frame color of each; None for gray.
            bars: Fraction shown as a bar under each.
            span: Values of paper and of full ink.
        """
        low, high = span
        fresh = np.clip((np.asarray(images, float) - low) / max(high - low, 1e-12), 0, 1)
        k = len(fresh)
        self._images = fresh
        self._captions = [list(lines)[: self._lines] for lines in captions]
        self._marks = list(marks) if marks is not None else [GRAY] * k
        self._bars = None if bars is None else np.clip(np.nan_to_num(bars), 0, 1)
        self._arrange(k)
        self._draw()
        self.describe(reading)

    def clear(self) -> None:
        super().clear()
        self._images = np.empty((0, 1, 1))
        self._arrange(0)

    def _draw(self) -> None:
        k = len(self._images)
        if not k:
            return
        left, top = self._corner(np.arange(k))
        right, bottom = left + self._size[0], top + self._size[1]
        self._paint(left, top)
        pixel = 1 / self.side  # a CSS pixel in data units
        tips = [", ".join(lines) for lines in self._captions]
        framed = {"left": left, "right": right, "bottom": bottom, "top": top,
                  "color": self._marks, "tip": tips}  # fmt: skip
        if any(list(self.frames.data[n]) != list(v) for n, v in framed.items()):
            self.frames.data = framed
        line = bottom + (BAR + 4) * pixel
        rows = range(self._lines)
        text = [lines[r] if r < len(lines) else "" for r in rows for lines in self._captions]
        self.caption_source.data = {
            "x": np.tile(left, self._lines),
            "y": np.concatenate([line + r * LINE * self._type * pixel for r in rows])
            if rows
            else [],
            "text": text,
        }
        if self._bars is None:
            empty(self.bars)
        else:
            at = bottom + 2 * pixel
            update_source(self.bars, left=left, right=left + self._bars * self._size[0],
                bottom=at + BAR * pixel, top=at)  # fmt: skip

    def _paint(self, left: np.ndarray, top: np.ndarray) -> None:
        """Draw all images into one picture, sent only if it has changed."""
        pixels, none = self._pixels()
        k, h, w = pixels.shape
        level = np.repeat(np.repeat(pixels, self._scale, 1), self._scale, 2)
        down = round(self._ratio * self._step)
        shape = (down * (1 + int(top.max() / self._ratio + 0.5)), self._step * self.across)
        sheet = np.full(shape, none, level.dtype)
        for image, x, y in zip(level, np.arange(k) % self.across, np.arange(k) // self.across):
            sheet[y * down : y * down + h * self._scale, x * self._step : x * self._step
                  + w * self._scale] = image  # fmt: skip
        previous = self.picture.data["image"]
        if len(previous) and np.array_equal(previous[0], sheet):
            return
        self.picture.data = {
            "image": [sheet],
            "x": [0.0],
            "y": [0.0],
            "dw": [float(self.across)],
            "dh": [shape[0] / down * self._ratio],
        }


class PhotographsPlot(GalleryPlot):
    """Gallery of color images, with channels red, green and blue from 0 to 1 by default."""

    def _sheet(self, plot: Figure) -> None:
        plot.image_rgba("image", "x", "y", "dw", "dh", source=self.picture)

    def _pixels(self) -> tuple[UInt32[np.ndarray, "k h w"], int]:
        return rgba(np.round(self._images * 255).astype(np.uint8)), 0


def rgba(image: UInt8[np.ndarray, "... h w 3"]) -> UInt32[np.ndarray, "... h w"]:
    """Pack RGB pixels into Bokeh's 32-bit RGBA format."""
    opaque = np.full((*image.shape[:-1], 1), 255, np.uint8)
    four = np.ascontiguousarray(np.concatenate([image, opaque], axis=-1))
    pixels: np.ndarray = four.view(np.uint32)[..., 0]
    return pixels


class ResponsePlot(Tiled):
    """An image, and beside it a map of its patches' contributions to a value.

    Blue lowers the value and vermilion raises it; the image's ink is drawn over the map.
    """

    def __init__(self, title: str) -> None:
        self._image: Float[np.ndarray, "h w"] | None = None
        self._map: Float[np.ndarray, "a b"] = np.empty((0, 0))
        self.pictures = [
            models.ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []})
            for _ in range(3)
        ]
        self.level = models.LinearColorMapper(palette=list(DEVIATION), low=-1, high=1)
        super().__init__(title, "response", 130, 240)

    def _aspect(self, side: float) -> float:
        h, w = self._image.shape if self._image is not None else (1, 1)
        return h / w

    def _compose(self, plot: Figure) -> None:
        paper = models.LinearColorMapper(palette=shades(), low=0, high=1)
        veil = [f"{INK}{round(200 * i / 32):02x}" for i in range(33)]
        over = models.LinearColorMapper(palette=veil, low=0, high=1)
        for source, mapper in zip(self.pictures, (paper, self.level, over)):
            plot.image("image", "x", "y", "dw", "dh", source=source, color_mapper=mapper)
        ticker = models.BasicTicker(desired_num_ticks=3)
        color_bar(plot, self.level, "adds to the mean (nats)", "below", ticker=ticker)

    def show(
        self,
        image: Float[np.ndarray, "h w"],
        response: Float[np.ndarray, "a b"],
        reading: str,
    ) -> None:
        """Show an image (1 is ink) and the responses of its patches; an empty map is omitted."""
        self._image, self._map = np.asarray(image, float), np.asarray(response, float)
        size = float(np.abs(self._map).max(initial=0)) or 1.0
        self.level.update(low=-size, high=size)
        self._arrange(2 if self._map.size else 1)
        self._draw()
        self.describe(reading)

    def clear(self) -> None:
        super().clear()
        self._image = None
        self._arrange(0)

    def _draw(self) -> None:
        if self._image is None:
            return
        h, w = self._image.shape
        width = 1 - MARGIN / 2
        left, top = self._corner(np.arange(2))
        whole = {"dw": [width], "dh": [width * h / w]}
        ink = self._image.astype(np.float32)
        self._set_picture(0, ink, left[0], top[0], **whole)
        for source in self.pictures[1:]:
            if not self._map.size:
                empty(source)
        if self._map.size:
            a, b = self._map.shape  # one response per position of a patch
            inside = np.array([(w - b) / 2, (h - a) / 2]) * width / w
            self._set_picture(1, self._map.astype(np.float32), left[1] + inside[0],
                              top[1] + inside[1], dw=[width * b / w],
                              dh=[width * a / w])  # fmt: skip
            self._set_picture(2, ink, left[1], top[1], **whole)

    def _set_picture(
        self, k: int, image: np.ndarray, x: float, y: float, **size: list[float]
    ) -> None:
        self.pictures[k].data = {"image": [image], "x": [float(x)], "y": [float(y)], **size}
