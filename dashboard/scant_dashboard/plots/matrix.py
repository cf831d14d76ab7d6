"""Covariances among the same rows as images, side by side and to one scale."""

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
HEAD = 20  # pixels of the words above an image
STRIP, GAP = 0.035, 0.06  # of a tile's width: the classes' colors, the margin


class MatrixPlot(Tiled):
    """Images of matrices to one scale; strips show the class of each row.

    Yellow is large, where entries are not below zero; else red is above zero, and blue below.
    Entries travel as bytes: shares of the largest entry of all of them, to 1 in 255.

    Args:
        title: The heading.
        least: Pixels of an image that are enough to see it.
        most: Pixels beyond which it does not grow.
    """

    def __init__(self, title: str, least: int = 190, most: int = 420) -> None:
        self._shown: tuple[UInt8[np.ndarray, "m k k"], list[str], list[int]] | None = None
        self.pictures = models.ColumnDataSource({n: [] for n in ("image", "x", "y", "dw", "dh")})
        self.heads = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.strips = models.ColumnDataSource(
            {n: [] for n in ("left", "right", "bottom", "top", "color", "name")}
        )
        self._classes: list[str] = []
        super().__init__(title, "covariance", least, most)

    def _high(self, side: float) -> float:
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
        """Show m matrices among k rows, which stand class by class.

        Args:
            matrices: Their entries.
            heads: A few words above each.
            label: The class of each row.
            classes: The classes' names.
            reading: What they show, in one or two sentences.
            signed: Whether entries below zero are shown; else they are shown as zero.
        """
        high = max(float(np.max(np.abs(matrices) if signed else matrices, initial=0.0)), 1e-300)
        share = (1 + matrices / high) / 2 if signed else matrices / high
        level = np.round(LEVELS * np.clip(share, 0, 1)).astype(np.uint8)
        palette = BOTH_WAYS if signed else ONE_WAY
        if self.level.palette != palette:
            self.level.palette = palette
            self.bar.color_mapper.update(palette=palette, low=-1 if signed else 0)
            self.bar.title = SIGNED if signed else COMMON
        self._shown, self._classes = (level, list(heads), label.tolist()), list(classes)
        self._lay(len(matrices))
        self._draw()
        strips = ", ".join(
            f"{HUES[c % len(HUES)]} {classes[c]}" for c in dict.fromkeys(label.tolist())
        )
        self.describe(f"{reading} Strips at the edges: {strips}.")

    def clear(self) -> None:
        super().clear()
        self._shown = None
        self._lay(0)

    def _draw(self) -> None:
        if self._shown is None:
            return
        level, heads, label = self._shown
        left, top = self._corner(np.arange(len(level)))
        wide = 1 - STRIP - GAP
        x, y = left + STRIP, top + self._head + STRIP
        whole = np.full(len(level), wide)
        self.pictures.data = {"image": list(level), "x": x, "y": y, "dw": whole, "dh": whole}
        written = {"x": x.tolist(), "y": (y - STRIP).tolist(), "text": heads}
        if self.heads.data != written:
            self.heads.data = written
        strips = self._strips(x, y, wide / max(len(label), 1), label)
        if self.strips.data != strips:
            self.strips.data = strips

    def _strips(self, x: np.ndarray, y: np.ndarray, cell: float, label: list[int]) -> dict:
        """Beside and above each image, a piece for each class."""
        runs = [(c, len(list(rows))) for c, rows in groupby(label)]
        last = np.cumsum([count for _, count in runs]) * cell
        first = last - np.array([count for _, count in runs]) * cell
        made: dict[str, list] = {n: [] for n in self.strips.data}
        thick = STRIP * 0.7
        for u, v in zip(x, y):
            for (c, count), a, b in zip(runs, first, last):
                message = f"{count} {'row' if count == 1 else 'rows'} of {self._classes[c]}"
                above = (u + a, u + b, v, v - thick)
                beside = (u - thick, u, v + b, v + a)
                for sides in (above, beside):
                    for n, value in zip(
                        made, (*map(float, sides), GROUPS[c % len(GROUPS)], message)
                    ):
                        made[n].append(value)
        return made
