"""Grids of small images with captions, and an image with a map of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
from scant_dashboard.plots.tiles import Tiled, at
from scant_dashboard.translate import tr

Images = Float[np.ndarray, "k h w"]
Colored = Float[np.ndarray, "k h w 3"]

LEVELS = 255  # gray levels
MARGIN = 0.12  # of an image's width, to its right
SHARE = 1 / (1 + MARGIN)  # of a tile's width, for its image
LINE = 15  # pixels of a line of text
BAR = 4  # pixels of a bar


def shades(low: str = PAPER, high: str = INK, n: int = LEVELS) -> list[str]:
    """Return n colors from paper to ink."""
    first, last = (np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in (low, high))
    mixed = np.round(np.linspace(first, last, n)).astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in mixed]


class GalleryPlot(Tiled):
    """Images of one size, dark ink on white paper on light and dark pages alike.

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
        self.caption_source = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.frames = models.ColumnDataSource(
            {"left": [], "right": [], "bottom": [], "top": [], "color": [], "tip": []}
        )
        self.bars = columns("left", "right", "bottom", "top")
        super().__init__(title, name, min_side, max_side, rows_of)

    def _glyph(self, plot: Figure, **place: Any) -> Any:
        """Add the images, and return their renderer."""
        ink = models.LinearColorMapper(palette=shades(), low=0, high=LEVELS - 1)
        return plot.image("image", color_mapper=ink, **place)

    def _pixels(self, images: Images) -> UInt8[np.ndarray, "k h w"] | UInt32[np.ndarray, "k h w"]:
        """Return images from 0 to 1 as encoded for that glyph."""
        return np.round(images * (LEVELS - 1)).astype(np.uint8)

    def _compose(self, plot: Figure) -> None:
        place = {**self._point(), "dw": SHARE, "dh": SHARE, "source": self.images}
        self._image = self._glyph(plot, **place).glyph
        plot.quad(**self._box(), source=self.bars, color=BLUE, line_width=0)
        frames = plot.quad(**self._box(), source=self.frames, fill_alpha=0, line_color="color",
                           line_width=2, nonselection_line_alpha=1)  # fmt: skip
        plot.text(**self._point(), text="text", source=self.caption_source, text_color=GRAY,
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
        k, h, w = fresh.shape[:3]
        self.describe(reading)
        if not k:
            return
        tall, below = SHARE * h / w, BAR + 8 + LINE * self._lines  # tile widths; pixels
        self._arrange(k, [(SHARE, 0, 0), (1 - SHARE, 0, 0)], [(tall, 0, 0), (0, below, 0)])
        self._image.dh = tall
        sheet, previous = self._pixels(fresh), self.sheet.data["sheet"]
        if not (len(previous) and np.array_equal(previous[0], sheet)):
            self.sheet.data = {"sheet": [sheet]}
        texts = [list(lines)[: self._lines] for lines in captions]
        tile, rows = np.arange(k), range(self._lines)
        left, right = at(tile, 0, 0, 2), at(tile, 0, 1, 2)
        framed = {"left": left, "right": right, "bottom": right, "top": left,
                  "color": list(marks) if marks is not None else [GRAY] * k,
                  "tip": [", ".join(lines) for lines in texts]}  # fmt: skip
        if any(list(self.frames.data[n]) != list(v) for n, v in framed.items()):
            self.frames.data = framed
        y = [at(tile, 1, (BAR + 4 + r * LINE) / below, 2) for r in rows]
        self.caption_source.data = {
            "x": np.tile(left, self._lines),
            "y": np.ravel(y),
            "text": [lines[r] if r < len(lines) else "" for r in rows for lines in texts],
        }
        if bars is None:
            empty(self.bars)
        else:
            low, high = (at(tile, 1, pixels / below, 2) for pixels in (BAR + 2, 2))
            right = at(tile, 0, np.clip(np.nan_to_num(bars), 0, 1), 2)
            update_source(self.bars, left=left, right=right, bottom=low, top=high)

    def clear(self) -> None:
        super().clear()
        empty(self.sheet)


class PhotographsPlot(GalleryPlot):
    """Gallery of color images, with channels red, green and blue from 0 to 1 by default."""

    def _glyph(self, plot: Figure, **place: Any) -> Any:
        return plot.image_rgba("image", **place)

    def _pixels(self, images: Colored) -> UInt32[np.ndarray, "k h w"]:
        return rgba(np.round(images * 255).astype(np.uint8))


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
        self.pictures = [
            models.ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []})
            for _ in range(3)
        ]
        self.level = models.LinearColorMapper(palette=list(DEVIATION), low=-1, high=1)
        super().__init__(title, "response", 130, 240)

    def _compose(self, plot: Figure) -> None:
        paper = models.LinearColorMapper(palette=shades(), low=0, high=1)
        veil = [f"{INK}{round(200 * i / 32):02x}" for i in range(33)]
        over = models.LinearColorMapper(palette=veil, low=0, high=1)
        for source, mapper in zip(self.pictures, (paper, self.level, over)):
            plot.image("image", **self._point(), dw="dw", dh="dh", source=source,
                       color_mapper=mapper)  # fmt: skip
        ticker = models.BasicTicker(desired_num_ticks=3)
        color_bar(plot, self.level, tr("adds to the mean (nats)"), "below", ticker=ticker)

    def show(
        self,
        image: Float[np.ndarray, "h w"],
        response: Float[np.ndarray, "a b"],
        reading: str,
    ) -> None:
        """Show an image (1 is ink) and the responses of its patches; an empty map is omitted."""
        image, response = np.asarray(image, np.float32), np.asarray(response, np.float32)
        size = float(np.abs(response).max(initial=0)) or 1.0
        self.level.update(low=-size, high=size)
        h, w = image.shape
        width = 1 - MARGIN / 2
        tile = [(width, 0, 0), (1 - width, 0, 0)]
        self._arrange(2 if response.size else 1, tile, [(h / w, 0, 0)])
        whole = {"dw": [width], "dh": [width * h / w]}
        self._set_picture(0, image, at(0, 0, 0, 2), at(0, 0, 0, 1), **whole)
        if response.size:
            a, b = response.shape  # one response per position of a patch
            x, y = (w - b) / 2 / w, (h - a) / 2 / h * width
            self._set_picture(1, response, at(1, 0, x, 2), at(1, 0, y, 1), dw=[width * b / w],
                              dh=[width * a / w])  # fmt: skip
            self._set_picture(2, image, at(1, 0, 0, 2), at(1, 0, 0, 1), **whole)
        else:
            for source in self.pictures[1:]:
                empty(source)
        self.describe(reading)

    def _set_picture(
        self, k: int, image: np.ndarray, x: float, y: float, **size: list[float]
    ) -> None:
        self.pictures[k].data = {"image": [image], "x": [float(x)], "y": [float(y)], **size}
