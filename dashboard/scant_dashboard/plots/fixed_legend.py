"""A legend that is independent of a plot's data."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

from scant_dashboard.plots.base import PERMANENT
from scant_dashboard.plots.theme import DASHES, GROUPS, MARKERS, Figure, models, place_legend_above

GROUP_STYLES = tuple(zip(GROUPS, MARKERS, DASHES))


class FixedLegend:
    """Names of groups with their styles, for as many groups as there are colors.

    Args:
        plot: The figure, above which the legend is placed.
        lines: Whether groups are lines with markers, the first one bold, or markers only.
        stacked: Whether names are stacked vertically.
    """

    def __init__(self, plot: Figure, lines: bool = False, stacked: bool = False) -> None:
        none = models.ColumnDataSource({"x": [nan], "y": [nan]}, tags=[PERMANENT])
        self.items: list[Any] = []
        self.names = [""] * len(GROUP_STYLES)
        for k, (color, marker, dash) in enumerate(GROUP_STYLES):
            glyphs = [plot.scatter("x", "y", source=none, color=color, marker=marker, size=8)]
            if lines:
                glyphs.append(plot.line("x", "y", source=none, color=color, line_dash=dash,
                                       line_width=width(k)))  # fmt: skip
            item = models.LegendItem(label={"value": ""}, renderers=glyphs, visible=False)
            self.items.append(item)
        plot.add_layout(models.Legend(items=self.items))
        place_legend_above(plot, stacked)
        plot.legend[0].click_policy = "none"  # all groups share one glyph

    def name(self, names: Sequence[str]) -> None:
        """Set the names of the groups."""
        fresh = [*map(str, names), *[""] * len(GROUP_STYLES)][: len(GROUP_STYLES)]
        for item, message, before in zip(self.items, fresh, self.names):
            if message != before:
                item.update(label={"value": message}, visible=bool(message))
        self.names = fresh


def group_style(group: int) -> tuple[str, str, str]:
    """Return color, marker and dash of a group."""
    return GROUP_STYLES[group % len(GROUP_STYLES)]


def width(group: int) -> float:
    """Return the line width of a group in pixels; the first, the plot's subject, is bold."""
    return 3.0 if group == 0 else 1.8
