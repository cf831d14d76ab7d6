"""A legend that is independent of a plot's data and never draws from deleted data."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

from scant_dashboard.plots.base import KEPT
from scant_dashboard.plots.theme import DASHES, GROUPS, MARKERS, Figure, models, quiet_legend

LOOKS = tuple(zip(GROUPS, MARKERS, DASHES))


class Key:
    """Names of groups beside their looks, as many as there are colors; more go unnamed.

    Args:
        plot: The figure, above which it stands.
        lines: Whether groups are lines with marks, the first of them bold, or marks alone.
        stacked: One name below another.
    """

    def __init__(self, plot: Figure, lines: bool = False, stacked: bool = False) -> None:
        none = models.ColumnDataSource({"x": [nan], "y": [nan]}, tags=[KEPT])
        self.items: list[Any] = []
        self.names = [""] * len(LOOKS)
        for k, (color, marker, dash) in enumerate(LOOKS):
            looks = [plot.scatter("x", "y", source=none, color=color, marker=marker, size=8)]
            if lines:
                looks.append(plot.line("x", "y", source=none, color=color, line_dash=dash,
                                       line_width=width(k)))  # fmt: skip
            item = models.LegendItem(label={"value": ""}, renderers=looks, visible=False)
            self.items.append(item)
        plot.add_layout(models.Legend(items=self.items))
        quiet_legend(plot, stacked)
        plot.legend[0].click_policy = "none"  # all groups are one glyph

    def name(self, names: Sequence[str]) -> None:
        """Name the groups there are."""
        fresh = [*map(str, names), *[""] * len(LOOKS)][: len(LOOKS)]
        for item, message, before in zip(self.items, fresh, self.names):
            if message != before:
                item.update(label={"value": message}, visible=bool(message))
        self.names = fresh


def look(group: int) -> tuple[str, str, str]:
    """Color, marker and dash of a group."""
    return LOOKS[group % len(LOOKS)]


def width(group: int) -> float:
    """Pixels of a group's line: the first is the one that a plot is about."""
    return 3.0 if group == 0 else 1.8
