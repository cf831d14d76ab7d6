"""Scores of several methods against the amount of data: labels, examples, rows or features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scant_dashboard.plots.base import Plot, columns, empty, update_source
from scant_dashboard.plots.fixed_legend import GROUP_STYLES, FixedLegend, width
from scant_dashboard.plots.theme import BLUE, VERMILION, models, new_figure, place_legend_above
from scant_dashboard.translate import tr

PAIR = ((BLUE, "circle"), (VERMILION, "circle"))  # this model, the other method
Line = tuple[Any, ...]  # arrays x and score and, with a band, low and high


class ScoreCurve(Plot):
    """One line with markers per method, with a band if the score has a spread.

    A page configures it and converts its study's answer into lines and a text alternative. Each
    line has a source in `sources` (columns `x`, `score`, `low`, `high`, `method`), those of the
    first figure first.

    Args:
        title: The heading.
        scores: Axis labels of the score by figure name; figures are placed side by side.
        x: Label of the x axis.
        methods: Names of two fixed methods, which the legend can hide; if empty, `draw` sets up to
            six names in a `FixedLegend`.
        styles: Color and marker of each of `methods`.
        tips: Rows of the marks' tooltips; an empty label is replaced by the method's name.
        size: Size of the marks in pixels.
        band: Whether lines have bands.
        every: Whether the marks are a separate set of points, in `marks`.
        **options: Passed on to `theme.new_figure`.
    """

    def __init__(
        self,
        title: str,
        scores: Mapping[str, str],
        x: str = "",
        methods: Sequence[str] = (),
        *,
        styles: Sequence[tuple[str, str]] = PAIR,
        tips: Sequence[tuple[str, str]] = (),
        size: int = 8,
        band: bool = False,
        every: bool = False,
        **options: Any,
    ) -> None:
        self.sources: list[Any] = []
        self.marks: list[Any] = []
        parts = ("x", "score", *(("low", "high") if band else ()), "method")
        line_styles = [(*style, "solid", 2.5) for style in styles] if methods else [
            (*style, width(k)) for k, style in enumerate(GROUP_STYLES)]  # fmt: skip
        figures = [new_figure(name, x, y, **options) for name, y in scores.items()]
        for plot in figures:
            dots = []
            for k, (color, marker, dash, line_width) in enumerate(line_styles):
                line = columns(*parts)
                self.sources.append(line)
                if every:
                    self.marks.append(columns(*parts))
                named = {"legend_label": methods[k]} if methods else {}
                if band:
                    plot.varea("x", "low", "high", source=line, color=color, fill_alpha=0.15)
                plot.line("x", "score", source=line, color=color, line_dash=dash,
                          line_width=line_width, **named)  # fmt: skip
                dots.append(
                    plot.scatter("x", "score", source=self.marks[-1] if every else line, size=size,
                                 color=color, marker=marker, alpha=0.8 if every else 1, **named)
                )  # fmt: skip
            for name, pointed in zip(methods, ([d] for d in dots)) if methods else [("", dots)]:
                messages = [(label or name, value) for label, value in tips]
                if messages:
                    plot.add_tools(models.HoverTool(renderers=pointed, tooltips=messages))
            if methods:
                place_legend_above(plot)
        self.legend = None if methods else FixedLegend(figures[0], lines=True, stacked=True)
        super().__init__(title, *figures)

    def draw(
        self,
        reading: str,
        lines: Sequence[Line],
        methods: Sequence[str] = (),
        marks: Sequence[Line] = (),
    ) -> None:
        """Replace the lines.

        Args:
            reading: The text alternative.
            lines: Lines of the first figure, then those of the next; empty ones are not drawn.
            methods: Names of the methods, if not fixed.
            marks: Points of each line to mark, if `every`.
        """
        names = [*(tr(str(name)) for name in methods), *[""] * len(self.sources)]
        for sources, points in ((self.sources, lines), (self.marks, marks)):
            for k, source in enumerate(sources):
                if k >= len(points) or not len(points[k][0]):
                    empty(source)
                    continue
                data = dict(zip(("x", "score", "low", "high"), points[k], strict=False))
                update_source(source, **data, method=np.repeat(names[k], len(points[k][0])))
        if self.legend is not None:
            self.legend.name([n if len(line[0]) else "" for n, line in zip(names, lines)])
        self.describe(reading)


def abridged(messages: Sequence[str]) -> str:
    """Join at most four sentences, to keep a text alternative short."""
    return "; ".join(messages if len(messages) <= 4 else [*messages[:2], "…", messages[-1]])
