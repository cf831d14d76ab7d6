"""Covariance matrices over the same rows as images, side by side and on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from bokeh.palettes import Cividis256, interp_palette
from jaxtyping import Float, Int

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
    tick_labels,
)
from scant_dashboard.plots.tiles import Tiled, at
from scant_dashboard.translate import later, ntr, tr

LEVELS = 255
COMMON = later("covariance, share of the largest")
SIGNED = later("covariance beyond the common part, share of the largest")
ONE_WAY, BOTH_WAYS = list(Cividis256), list(interp_palette((BLUE, PAPER, VERMILION), LEVELS + 1))
HEAD = 20  # pixels of the text above an image
STRIP, MARGIN = 0.035, 0.06  # as fractions of a tile's width: strip of class colors, margin
WIDTH = 1 - STRIP - MARGIN


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
        self.pictures = models.ColumnDataSource({n: [] for n in ("image", "x", "y")})
        self.heads = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.strips = models.ColumnDataSource(
            {n: [] for n in ("left", "right", "bottom", "top", "color", "name")}
        )
        super().__init__(title, "covariance", min_side, max_side)

    def _compose(self, plot: Figure) -> None:
        self.level = models.LinearColorMapper(palette=ONE_WAY, low=0, high=LEVELS)
        plot.image("image", **self._point(), dw=WIDTH, dh=WIDTH, source=self.pictures,
                   color_mapper=self.level)  # fmt: skip
        strips = plot.quad(**self._box(), source=self.strips, color="color", line_width=0)
        plot.text(**self._point(), text="text", source=self.heads, text_color=GRAY,
                  text_font_size="12px", text_baseline="bottom")  # fmt: skip
        plot.add_tools(models.HoverTool(renderers=[strips], tooltips="@name"))
        self.bar = color_bar(
            plot,
            models.LinearColorMapper(palette=ONE_WAY, low=0, high=1),
            tr(COMMON),
            "below",
            ticker=models.FixedTicker(ticks=[-1, -0.5, 0, 0.5, 1]),
            formatter=tick_labels("0%"),
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
            self.bar.title = tr(SIGNED if signed else COMMON)
        across = [(STRIP, 0, 0), (WIDTH, 0, 0), (MARGIN, 0, 0)]
        self._arrange(len(matrices), across, [(0, HEAD, 0), *across])
        tile = np.arange(len(matrices))
        x, y = at(tile, 1, 0, 3), at(tile, 2, 0, 4)
        self.pictures.data = {"image": list(level), "x": x, "y": y}
        for source, data in (
            (self.heads, {"x": x.tolist(), "y": at(tile, 1, 0, 4).tolist(), "text": list(heads)}),
            (self.strips, self._strips(len(matrices), label.tolist(), classes)),
        ):
            if source.data != data:
                source.data = data
        strips = ", ".join(
            f"{tr(HUES[c % len(HUES)])} {classes[c]}" for c in dict.fromkeys(label.tolist())
        )
        edges = tr("Strips at the edges: {strips}.", strips=strips)
        self.describe(f"{reading} {edges}")

    def _strips(self, n: int, label: list[int], classes: Sequence[str]) -> dict[str, list[Any]]:
        """Return the strips at the edges of each of n images, one piece per class."""
        runs = [(c, len(list(rows))) for c, rows in groupby(label)]
        last = np.cumsum([count for _, count in runs]) / max(len(label), 1)
        first = last - np.array([count for _, count in runs]) / max(len(label), 1)
        made: dict[str, list[Any]] = {name: [] for name in self.strips.data}
        thin = 0.3  # of a strip's width, left empty
        for tile in range(n):
            for (c, count), a, b in zip(runs, first, last):
                message = ntr("{n} row of {name}", "{n} rows of {name}", count, name=classes[c])
                top_edge = (at(tile, 1, a, 3), at(tile, 1, b, 3), at(tile, 1, 1, 4),
                            at(tile, 1, thin, 4))  # fmt: skip
                left_edge = (at(tile, 0, thin, 3), at(tile, 0, 1, 3), at(tile, 2, b, 4),
                             at(tile, 2, a, 4))  # fmt: skip
                for sides in (top_edge, left_edge):
                    for name, value in zip(
                        made, (*map(float, sides), GROUPS[c % len(GROUPS)], message)
                    ):
                        made[name].append(value)
        return made
