"""Covariance matrices over the same rows as images, side by side and on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from bokeh.palettes import Cividis256, interp_palette
from jaxtyping import Float, Int, UInt8

from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    GROUPS,
    HUES,
    PAPER,
    VERMILION,
    Figure,
    color_bar,
    models,
)
from scant_dashboard.plots.tiles import Tiled

LEVELS = 255
COMMON = "covariance, share of the largest"
SIGNED = "covariance beyond the common part, share of the largest"
ONE_WAY, BOTH_WAYS = list(Cividis256), list(interp_palette((BLUE, PAPER, VERMILION), LEVELS + 1))
HEAD = 20  # pixels of the text above an image
STRIP, MARGIN = 0.035, 0.06  # as fractions of a tile's width: strip of class colors, margin


class MatrixPlot(Tiled):
    """Images of matrices on one scale; strips show the class of each row.

    Without negative entries, yellow is large; otherwise red is positive and blue is negative.
    Entries are sent as bytes, relative to the largest entry of all matrices.

    Args:
        title: The heading.
        min_side: Minimum width of an image in pixels.
        max_side: Maximum width of an image in pixels.
    """

    def __init__(self, title: str, min_side: int = 190, max_side: int = 420) -> None:
        self._content: tuple[UInt8[np.ndarray, "m k k"], list[str], list[int]] | None = None
        self.pictures = models.ColumnDataSource({n: [] for n in ("image", "x", "y", "dw", "dh")})
        self.heads = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.strips = models.ColumnDataSource(
            {n: [] for n in ("left", "right", "bottom", "top", "color", "name")}
        )
        self._classes: list[str] = []
        super().__init__(title, "covariance", min_side, max_side)

    def _aspect(self, side: float) -> float:
        self._head = HEAD * self._type / side
        return 1 + self._head

    def _compose(self, plot: Figure) -> None:
        self.level = models.LinearColorMapper(palette=ONE_WAY, low=0, high=LEVELS)
        plot.image("image", "x", "y", "dw", "dh", source=self.pictures, color_mapper=self.level)
        strips = plot.quad("left", "right", "bottom", "top", source=self.strips, color="color",
                           line_width=0)  # fmt: skip
        plot.text("x", "y", "text", source=self.heads, text_color=GRAY, text_font_size="12px",
                  text_baseline="bottom")  # fmt: skip
        plot.add_tools(models.HoverTool(renderers=[strips], tooltips="@name"))
        self.bar = color_bar(
            plot,
            models.LinearColorMapper(palette=ONE_WAY, low=0, high=1),
            COMMON,
            "below",
            ticker=models.FixedTicker(ticks=[-1, -0.5, 0, 0.5, 1]),
            formatter=models.NumeralTickFormatter(format="0%"),
        )

    def show(
        self,
        matrices: Float[np.ndarray, "m k k"],
        heads: Sequence[str],
        label: Int[np.ndarray, " k"],
        classes: Sequence[str],
        reading: str,
        signed: bool = False,
    ) -> None:
        """Show m matrices over k rows, which are sorted by class.

        Args:
            matrices: Their entries.
            heads: A short text above each.
            label: Index of each row's class.
            classes: Names of the classes.
            reading: The text alternative.
            signed: Whether negative entries are shown; otherwise they are shown as zero.
        """
        high = max(float(np.max(np.abs(matrices) if signed else matrices, initial=0.0)), 1e-300)
        share = (1 + matrices / high) / 2 if signed else matrices / high
        level = np.round(LEVELS * np.clip(share, 0, 1)).astype(np.uint8)
        palette = BOTH_WAYS if signed else ONE_WAY
        if self.level.palette != palette:
            self.level.palette = palette
            self.bar.color_mapper.update(palette=palette, low=-1 if signed else 0)
            self.bar.title = SIGNED if signed else COMMON
        self._content, self._classes = (level, list(heads), label.tolist()), list(classes)
        self._arrange(len(matrices))
        self._draw()
        strips = ", ".join(
            f"{HUES[c % len(HUES)]} {classes[c]}" for c in dict.fromkeys(label.tolist())
        )
        self.describe(f"{reading} Strips at the edges: {strips}.")

    def clear(self) -> None:
        super().clear()
        self._content = None
        self._arrange(0)

    def _draw(self) -> None:
        if self._content is None:
            return
        level, heads, label = self._content
        left, top = self._corner(np.arange(len(level)))
        width = 1 - STRIP - MARGIN
        x, y = left + STRIP, top + self._head + STRIP
        whole = np.full(len(level), width)
        self.pictures.data = {"image": list(level), "x": x, "y": y, "dw": whole, "dh": whole}
        written = {"x": x.tolist(), "y": (y - STRIP).tolist(), "text": heads}
        if self.heads.data != written:
            self.heads.data = written
        strips = self._strips(x, y, width / max(len(label), 1), label)
        if self.strips.data != strips:
            self.strips.data = strips

    def _strips(self, x: np.ndarray, y: np.ndarray, cell: float, label: list[int]) -> dict:
        """Return the strips at the edges of each image, one piece per class."""
        runs = [(c, len(list(rows))) for c, rows in groupby(label)]
        last = np.cumsum([count for _, count in runs]) * cell
        first = last - np.array([count for _, count in runs]) * cell
        made: dict[str, list] = {n: [] for n in self.strips.data}
        thick = STRIP * 0.7
        for u, v in zip(x, y):
            for (c, count), a, b in zip(runs, first, last):
                message = f"{count} {'row' if count == 1 else 'rows'} of {self._classes[c]}"
                top_edge = (u + a, u + b, v, v - thick)
                left_edge = (u - thick, u, v + b, v + a)
                for sides in (top_edge, left_edge):
                    for n, value in zip(
                        made, (*map(float, sides), GROUPS[c % len(GROUPS)], message)
                    ):
                        made[n].append(value)
        return made
