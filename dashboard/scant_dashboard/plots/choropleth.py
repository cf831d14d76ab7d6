"""Maps of one layer of polygons: data, posterior mean, interval width, exceedance probability.

The four figures share one source, so hovering and selection are linked in the browser without
messages to the server. The glyph is `multi_polygons`, as for HoloViews' `Polygons`, which handles
holes and islands in hit testing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bokeh.palettes import Cividis256
from jaxtyping import Float

from scant_dashboard.plots.base import SIDE_BY_SIDE, Plot, empty, encode
from scant_dashboard.plots.theme import (
    DEVIATION,
    GRAY,
    PAPER,
    VERMILION,
    Figure,
    color_bar,
    models,
    new_figure,
    tick_labels,
)
from scant_dashboard.translate import later, tr

Rows = Float[np.ndarray, " n"]
Outline = Sequence[Sequence[tuple[np.ndarray, np.ndarray]]]

VALUES = ("data", "mean", "width", "above")
TITLES = {
    "data": later("observed"),
    "mean": later("posterior mean"),
    "width": later("width of the 95% interval"),
    "above": later("probability of more than {threshold}"),
}
# Diverging, from certainly below to certainly above, of constant lightness like `DEVIATION`.
PROBABILITY = (
    "#00796b", "#3a7c72", "#587f79", "#708080", "#808282", "#957a86", "#a76d8a", "#b75c8e",
    "#c54592",
)  # fmt: skip
HEIGHT = 340
MAP_WIDTH, AROUND = 400, 80  # pixels: width of a map (two per row), height of bar and scale
MARKED = {"line_color": VERMILION, "line_width": 3.0, "line_alpha": 1.0, "fill_alpha": 1.0}
POINTED = {"line_color": VERMILION, "line_width": 1.6, "line_alpha": 1.0, "fill_alpha": 1.0}


class ChoroplethPlot(Plot):
    """Polygons in four linked maps; data and mean share a color scale.

    Args:
        title: The heading.
        selected: Called with the indices of the selected polygons.
    """

    def __init__(self, title: str, selected: Callable[[list[int]], None]) -> None:
        self._held = 0
        self.shapes = models.ColumnDataSource(
            {name: [] for name in ("xs", "ys", "place", "held", "stripes", *VALUES)}
        )
        self.level = models.LinearColorMapper(palette=list(Cividis256), low=0, high=1)
        self.spread = models.LinearColorMapper(palette=list(DEVIATION), low=0, high=1)
        self.probability = models.LinearColorMapper(palette=list(PROBABILITY), low=0, high=1)
        mappers = (self.level, self.level, self.spread, self.probability)
        made: list[Figure] = []
        self.bars = {}
        for name, mapper in zip(VALUES, mappers):
            shared = {"x_range": made[0].x_range, "y_range": made[0].y_range} if made else {}
            plot = new_figure(
                f"map_{name}", height=HEIGHT, tools="tap", match_aspect=True,
                **{"min_border_left": 8, **shared},
            )  # fmt: skip
            polygons = plot.multi_polygons(
                "xs", "ys", source=self.shapes, line_color=GRAY, line_width=0.7,
                fill_color={"field": name, "transform": mapper},
                hover_fill_color={"field": name, "transform": mapper},
                selection_fill_color={"field": name, "transform": mapper},
                nonselection_fill_color={"field": name, "transform": mapper},
                nonselection_fill_alpha=1.0, nonselection_line_alpha=1.0, **_striped(name),
                **{f"hover_{k}": v for k, v in POINTED.items()},
                **{f"selection_{k}": v for k, v in MARKED.items()},
            )  # fmt: skip
            self.bars[name] = color_bar(
                plot, mapper, tr(TITLES[name], threshold=""), "below",
                ticker=models.BasicTicker(desired_num_ticks=3),
                formatter=tick_labels(),
            )  # fmt: skip
            tips = [
                (tr("place"), "@place @held"),
                (tr("observed"), "@data{0.[00000]}"),
                (tr("mean"), "@mean{0.[00000]}"),
                (tr("95% wide"), "@width{0.[00000]}"),
                (tr("above"), "@above{0.[00]}"),
            ]
            plot.add_tools(models.HoverTool(renderers=[polygons], tooltips=tips))
            plot.axis.visible = plot.grid.visible = False
            made.append(plot)
        made[0].add_layout(scale_bar(), "above")
        self.shapes.selected.on_change("indices", lambda _a, _o, new: selected(list(new)))
        super().__init__(title, *made)
        self.panel.stylesheets = [SIDE_BY_SIDE.replace("13.75rem", "26rem")]  # two a row

    def lay_out(
        self,
        outlines: Sequence[Outline],
        data: Rows,
        names: Sequence[str],
        held: Sequence[bool],
        threshold: str,
    ) -> None:
        """Set the polygons and their observed values.

        Args:
            outlines: For each row its polygons, each an outer ring and holes, in meters.
            data: Observed values; NaN if unknown.
            names: Names of the polygons.
            held: Whether a row was held out.
            threshold: The threshold of the exceedance, as text.
        """
        unknown = np.full(len(data), np.nan, np.float32)
        self.shapes.selected.indices = []
        self.shapes.data = {
            "xs": [[[x.tolist() for x, _ in rings] for rings in shape] for shape in outlines],
            "ys": [[[y.tolist() for _, y in rings] for rings in shape] for shape in outlines],
            "place": list(names),
            "held": [tr("(held out)") if h else "" for h in held],
            "stripes": ["right_diagonal_line" if h else "blank" for h in held],
            "data": np.asarray(data, np.float32),
            **{name: unknown.copy() for name in ("mean", "width", "above")},
        }
        self._held = sum(map(bool, held))
        for plot in self.figures:
            plot.height = height_of(outlines, MAP_WIDTH, AROUND)
        self.name_threshold(threshold)
        span(self.level, data)
        observed = np.isfinite(data)
        self.describe(
            tr(
                "Observed values are between {low:.3g} and {high:.3g}.",
                low=data[observed].min(),
                high=data[observed].max(),
            )
            if observed.any()
            else tr("No data.")
        )

    def name_threshold(self, threshold: str) -> None:
        """Set the threshold in the title of the exceedance map."""
        self.bars["above"].title = tr(TITLES["above"], threshold=threshold)

    def show(self, mean: Rows, width: Rows, above: Rows) -> None:
        """Show the posterior of the polygons."""
        self._patch(mean=mean, width=width, above=above)
        data = np.asarray(self.shapes.data["data"], float)
        span(self.level, np.concatenate([mean, data[np.isfinite(data)]]))
        span(self.spread, width)
        self.spread.low = min(0.0, self.spread.low)
        place = self.shapes.data["place"]
        low, high = int(np.argmin(width)), int(np.argmax(width))
        n_above, n_below = int((above > 0.95).sum()), int((above < 0.05).sum())
        threshold = self.bars["above"].title
        self.describe(
            tr(
                "{n:,} polygons. Posterior means are between {low:.3g} and {high:.3g}; 95% "
                "intervals are {narrow:.3g} wide ({narrow_place}) to {wide:.3g} ({wide_place}). "
                "The {threshold} is over 95% in {above} of them and under 5% in {below}.",
                n=len(mean),
                low=mean.min(),
                high=mean.max(),
                narrow=width[low],
                narrow_place=place[low],
                wide=width[high],
                wide_place=place[high],
                threshold=threshold,
                above=n_above,
                below=n_below,
            )
            + (
                " " + tr("Held-out polygons are striped: {n:,}.", n=self._held)
                if self._held
                else ""
            )
        )

    def exceed(self, above: Rows) -> None:
        """Show other exceedance probabilities."""
        self._patch(above=above)

    def select(self, rows: Sequence[int]) -> None:
        """Select polygons by index."""
        self.shapes.selected.indices = list(rows)

    def clear(self) -> None:
        """Remove the polygons."""
        self.shapes.selected.indices = []
        empty(self.shapes)
        super().clear()

    def _patch(self, **columns: Rows) -> None:
        """Update values only, without sending the polygons again."""
        light = {k: np.asarray(v, np.float32) for k, v in columns.items()}
        changed = {
            k: [(slice(0, len(v)), encode(v))]
            for k, v in light.items()
            if len(v) and not np.array_equal(v, self.shapes.data[k], equal_nan=True)
        }
        if changed:
            self.shapes.patch(changed)


def _striped(name: str) -> dict[str, Any]:
    """Return hatch properties that stripe held-out polygons on the map of the data."""
    if name != "data":
        return {}
    properties = {"hatch_pattern": "stripes", "hatch_color": PAPER, "hatch_alpha": 0.55,
             "hatch_scale": 9.0, "hatch_weight": 1.0}  # fmt: skip
    states = ("", "hover_", "selection_", "nonselection_")
    return {f"{state}{key}": value for state in states for key, value in properties.items()}


def height_of(outlines: Sequence[Outline], width: int, around: int) -> int:
    """Return the height in pixels of a figure whose map is `width` pixels wide."""
    rings = [ring for shape in outlines for part in shape for ring in part]
    if not rings:
        return HEIGHT
    across, up = (np.ptp(np.concatenate([ring[i] for ring in rings])) for i in (0, 1))
    return int(np.clip(width * up / max(across, 1e-9) + around, 200, 460))


def span(mapper: object, values: np.ndarray) -> None:
    """Set the range of a color mapper to the central 99% of the values."""
    values = values[np.isfinite(values)]
    if len(values):
        low, high = np.quantile(values, [0.005, 0.995])
        mapper.update(low=float(low), high=float(max(high, low + 1e-12)))  # type: ignore[attr-defined]


def scale_bar() -> object:
    """Return a scale bar in metric units."""
    return models.ScaleBar(
        unit="m", location="bottom_left", bar_line_color=GRAY, label_text_color=GRAY,
        background_fill_alpha=0, border_line_alpha=0, title="", label_text_font_size="11px",
        margin=2, padding=2, length_sizing="adaptive", bar_length=0.2,
    )  # fmt: skip
