"""A function of two variables observed as averages over boxes: truth, posterior and deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bokeh.palettes import Cividis256
from jaxtyping import Float

from scant.metrics import within_95
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    DEVIATION,
    INK,
    PAPER,
    VERMILION,
    Figure,
    activate_box_select,
    color_bar,
    models,
    new_figure,
    tick_labels,
)
from scant_dashboard.translate import later, tr

Cells = Float[np.ndarray, "g"]
Edges = Float[np.ndarray, " _"]
NAMES = {
    "truth": later("truth"),
    "mean": later("mean"),
    "std": later("deviation"),
}  # narrow maps cut longer titles
HEIGHT = 340
NARROW = ":host { --least: 9.5rem; }"  # of a map, whose axes take little room
OUTLINE = ((PAPER, 1.8, 0.4), (INK, 0.6, 0.6))  # visible on any color


class SurfacePlot(Plot):
    """Cells in three linked figures, with outlines of the observed boxes.

    Truth and mean share a color scale.

    Args:
        title: The heading.
        select: Whether the visitor may draw boxes on the mean.
    """

    def __init__(self, title: str = later("Posterior surface"), select: bool = False) -> None:
        self.cells = columns("x", "y", "dw", "dh", *NAMES)
        self.observed = columns("left", "right", "bottom", "top")
        self.query = columns("left", "right", "bottom", "top")
        self.level = models.LinearColorMapper(palette=list(Cividis256), low=0, high=1)
        self.spread = models.LinearColorMapper(palette=list(DEVIATION), low=0, high=1)
        made: list[Figure] = []
        for name, message in NAMES.items():
            shared = {"x_range": made[0].x_range, "y_range": made[0].y_range} if made else {}
            tools = "box_select" if select and name == "mean" else ""
            plot = new_figure(f"surface_{name}", "", "", height=HEIGHT, tools=tools, **shared)
            if tools:
                activate_box_select(plot)
            mapper = self.spread if name == "std" else self.level
            image = plot.image(name, "x", "y", "dw", "dh", source=self.cells, color_mapper=mapper)
            for color, width, alpha in OUTLINE if name != "truth" else ():
                plot.quad("left", "right", "bottom", "top", source=self.observed, fill_color=None,
                          line_color=color, line_width=width, line_alpha=alpha)  # fmt: skip
            if select:
                plot.quad("left", "right", "bottom", "top", source=self.query, fill_alpha=0.12,
                          fill_color=VERMILION, line_color=VERMILION, line_width=2.5)  # fmt: skip
            color_bar(
                plot, mapper, tr(message), "below",
                ticker=models.BasicTicker(desired_num_ticks=3),
                formatter=tick_labels(),
            )  # fmt: skip
            tips = [
                (tr("here"), "$x{0.##}, $y{0.##}"),
                (tr("mean"), "@mean{0.0000} ± @std{0.0000}"),
                (tr("truth"), "@truth{0.0000}"),
            ]
            plot.add_tools(models.HoverTool(renderers=[image], tooltips=tips))
            plot.grid.visible = False
            plot.xaxis.major_label_policy = models.NoOverlap()  # cells may be narrow
            if made:
                plot.min_border_left = 8
                plot.yaxis.visible = False
            made.append(plot)
        super().__init__(title, *made)
        self.panel.stylesheets = [*self.panel.stylesheets, NARROW]

    def lay_out(self, edges: Sequence[Edges], truth: Cells | None, dims: Sequence[str]) -> None:
        """Set the cells.

        Args:
            edges: Edges of the cells along both dimensions.
            truth: True averages, the first dimension fastest; None if unknown.
            dims: Names of the dimensions.
        """
        self.edges = [np.asarray(e, float) for e in edges]
        extent = [e[0] for e in self.edges] + [e[-1] - e[0] for e in self.edges]
        blank = np.full(len(self.edges[0][1:]) * len(self.edges[1][1:]), np.nan)
        pictures = {"truth": blank if truth is None else truth, "mean": blank, "std": blank}
        self.cells.data = {
            **{name: [value] for name, value in zip(("x", "y", "dw", "dh"), extent)},
            **{name: [self._picture(values)] for name, values in pictures.items()},
        }
        self.figures[0].visible = truth is not None
        for plot in self.figures:
            plot.xaxis.axis_label, plot.yaxis.axis_label = dims
        self.figures[1].yaxis.visible = truth is None

    def _picture(self, values: Cells) -> Float[np.ndarray, "y x"]:
        n, m = len(self.edges[0]) - 1, len(self.edges[1]) - 1
        return np.asarray(values, np.float32).reshape(m, n)

    def observe(self, lo: Float[np.ndarray, "n 2"], hi: Float[np.ndarray, "n 2"]) -> None:
        """Outline the observed boxes; points are too small to be visible."""
        update_source(self.observed, left=lo[:, 0], right=hi[:, 0], bottom=lo[:, 1], top=hi[:, 1])

    def mark(self, lo: Sequence[float], hi: Sequence[float]) -> None:
        """Draw the queried box."""
        update_source(self.query, left=[lo[0]], right=[hi[0]], bottom=[lo[1]], top=[hi[1]])

    def show(self, mean: Cells, std: Cells) -> None:
        """Show posterior means and deviations of the cells, the first dimension fastest."""
        fresh = {"mean": [self._picture(mean)], "std": [self._picture(std)]}
        self.cells.data = {**self.cells.data, **fresh}
        truth = np.ravel(self.cells.data["truth"][0])
        finite = np.isfinite(truth)
        _span(self.level, np.concatenate([mean, truth[finite]]))
        _span(self.spread, std)
        lowest, highest = int(np.argmin(std)), int(np.argmax(std))
        reading = tr(
            "Most certain at {lowest} (± {low:.2g}), least certain at {highest} (± {high:.2g}).",
            lowest=self._coordinates(lowest),
            low=std[lowest],
            highest=self._coordinates(highest),
            high=std[highest],
        )
        if finite.any():
            inside = within_95(truth[finite], mean[finite], std[finite])
            covered = tr(
                "The truth lies within the 95% interval in {inside:,} of all {n:,} cells, "
                "including those learned from.",
                inside=inside.sum(),
                n=len(inside),
            )
            reading = f"{covered} {reading}"
        if len(self.observed.data["left"]):
            reading += " " + tr("Outlines are the observed boxes.")
        self.describe(reading)

    def _coordinates(self, cell: int) -> str:
        middles = [(e[:-1] + e[1:]) / 2 for e in self.edges]
        j, i = divmod(cell, len(middles[0]))
        return tr("({x:.4g}, {y:.4g})", x=middles[0][i], y=middles[1][j])


def _span(mapper: object, values: np.ndarray) -> None:
    low, high = np.nanquantile(values, [0.005, 0.995])
    mapper.update(low=float(low), high=float(max(high, low + 1e-12)))  # type: ignore[attr-defined]
