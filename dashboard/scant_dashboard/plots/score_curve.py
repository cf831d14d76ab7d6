"""Scores of several methods against how much each had: labels, examples, rows or features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scant_dashboard.plots.base import Plot, columns, empty, update_source
from scant_dashboard.plots.fixed_legend import LOOKS, Key, width
from scant_dashboard.plots.theme import BLUE, VERMILION, models, new_figure, quiet_legend

PAIR = ((BLUE, "circle"), (VERMILION, "circle"))  # this model, what it is compared with
Line = tuple[Any, ...]  # x and score of each point, and where the line has a band, low and high


class ScoreCurve(Plot):
    """A line a method with marks; a band around it where the score has a spread.

    A page configures it and turns its study's answer into lines and the reading in words. Each
    line is a source of its own (`sources`, with columns `x`, `score`, `low`, `high`, `method`),
    first those of the first figure.

    Args:
        title: The heading above it.
        scores: Axis titles of the score by figure name; a figure each, side by side.
        x: Axis title of what the methods had.
        methods: Names of two methods known from the start, which a legend can hide; without,
            `draw` names up to six in a legend that stays in place.
        looks: Color and marker of each of `methods`.
        tips: What the marks say when pointed at; an empty label is the method's name.
        size: Of the marks in pixels.
        band: Whether lines have bands.
        every: Whether the marks (`marks`) are other points than those that a line goes through.
        **options: Passed on to `theme.new_figure`.
    """

    def __init__(
        self,
        title: str,
        scores: Mapping[str, str],
        x: str = "",
        methods: Sequence[str] = (),
        *,
        looks: Sequence[tuple[str, str]] = PAIR,
        tips: Sequence[tuple[str, str]] = (),
        size: int = 8,
        band: bool = False,
        every: bool = False,
        **options: Any,
    ) -> None:
        self.sources: list[Any] = []
        self.marks: list[Any] = []
        parts = ("x", "score", *(("low", "high") if band else ()), "method")
        dressed = [(*look, "solid", 2.5) for look in looks] if methods else [
            (*look, width(k)) for k, look in enumerate(LOOKS)]  # fmt: skip
        figures = [new_figure(name, x, y, **options) for name, y in scores.items()]
        for plot in figures:
            dots = []
            for k, (color, marker, dash, wide) in enumerate(dressed):
                line = columns(*parts)
                self.sources.append(line)
                if every:
                    self.marks.append(columns(*parts))
                named = {"legend_label": methods[k]} if methods else {}
                if band:
                    plot.varea("x", "low", "high", source=line, color=color, fill_alpha=0.15)
                plot.line("x", "score", source=line, color=color, line_dash=dash,
                          line_width=wide, **named)  # fmt: skip
                dots.append(
                    plot.scatter("x", "score", source=self.marks[-1] if every else line, size=size,
                                 color=color, marker=marker, alpha=0.8 if every else 1, **named)
                )  # fmt: skip
            for name, pointed in zip(methods, ([d] for d in dots)) if methods else [("", dots)]:
                messages = [(label or name, value) for label, value in tips]
                if messages:
                    plot.add_tools(models.HoverTool(renderers=pointed, tooltips=messages))
            if methods:
                quiet_legend(plot)
        self.key = None if methods else Key(figures[0], lines=True, stacked=True)
        super().__init__(title, *figures)

    def draw(
        self,
        reading: str,
        lines: Sequence[Line],
        methods: Sequence[str] = (),
        marks: Sequence[Line] = (),
    ) -> None:
        """Show these lines in place of those before.

        Args:
            reading: What they show, in words.
            lines: Those of the first figure, then those of the next; one without points is not
                drawn, and not named.
            methods: Their names, unless they are known from the start.
            marks: Points of each to mark, if these are not the lines' own.
        """
        names = [*map(str, methods), *[""] * len(self.sources)]
        for sources, drawn in ((self.sources, lines), (self.marks, marks)):
            for k, source in enumerate(sources):
                if k >= len(drawn) or not len(drawn[k][0]):
                    empty(source)
                    continue
                points = dict(zip(("x", "score", "low", "high"), drawn[k], strict=False))
                update_source(source, **points, method=np.repeat(names[k], len(drawn[k][0])))
        if self.key is not None:
            self.key.name([n if len(line[0]) else "" for n, line in zip(names, lines)])
        self.describe(reading)


def abridged(messages: Sequence[str]) -> str:
    """At most four of these, so that a reading stays short enough to listen to."""
    return "; ".join(messages if len(messages) <= 4 else [*messages[:2], "…", messages[-1]])
