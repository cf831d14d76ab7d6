"""The figures that studies share, as HoloViews elements drawn from a report's own arrays.

The only module of the engine that imports HoloViews; `scant.plot` imports it when it is called.
Axes bear the names and units of the arrays, so that a figure takes one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray

Ring = tuple[Float[ndarray, " v"], Float[ndarray, " v"]]
Outline = Sequence[Sequence[Ring]]
WIDE = 1.96  # deviations to either side of a mean that hold 95% of a Gaussian
GRAY = "#808791"
SIZE = {"width": 420, "height": 320}
LEGEND = {"legend_position": "bottom", "legend_cols": 2}
READABLE = 20  # names along an axis; of more, the hover tool tells them

if "bokeh" not in hv.Store.loaded_backends():
    hv.extension("bokeh", logo=False)


def side_by_side(elements: Iterable[Any]) -> Any:
    """Elements two in a row, each with axes of its own."""
    return hv.Layout(list(elements)).cols(2).opts(shared_axes=False)


class Elements:
    """Makes elements of the arrays of one report.

    Args:
        arrays: Those of the report.
        units: The unit of each by its name.
        objective: What is maximized, with its unit.
        metadata: Names that label the arrays (`events.Started.metadata`).
        steps: The curve: step, restart, objective; a row each.
    """

    def __init__(
        self,
        arrays: Mapping[str, ndarray],
        units: Mapping[str, str],
        objective: str,
        metadata: Mapping[str, Any],
        steps: Float[ndarray, "3 t"],
    ) -> None:
        self.arrays, self.metadata, self.steps = arrays, metadata, steps
        self._units, self._objective = units, objective

    def has(self, *names: str) -> bool:
        """Whether the report has these arrays, each with something in it."""
        return all(np.size(self.arrays.get(name, ())) for name in names)

    def axis(self, name: str) -> Any:
        """The dimension of an array, with its unit."""
        unit = self._units.get(name, "1")
        return hv.Dimension(name, unit=None if unit == "1" else unit)

    def elbo(self) -> Any:
        """The objective by step, a curve for each restart."""
        step, restart, value = self.steps
        curves = {
            int(r): hv.Curve((step[restart == r], value[restart == r]), "step", self._objective)
            for r in np.unique(restart)
        }
        return hv.NdOverlay(curves, "restart").opts(
            hv.opts.Curve(**SIZE, tools=["hover"]),
            hv.opts.NdOverlay(show_legend=len(curves) > 1, **LEGEND),
        )

    def against(self, true: str, mean: str, *deviations: str) -> Any:
        """Predictive means against true values, with 95% bands; the diagonal is a perfect one.

        `deviations` are independent parts of the predictive deviation: their squares add up.
        """
        x, y = self.arrays[true], self.arrays[mean]
        axes = [self.axis(true)], [self.axis(mean)]
        points = hv.Scatter((x, y), *axes).opts(size=4, alpha=0.7, **SIZE, tools=["hover"])
        ends = np.array([x.min(), x.max()])
        whole = hv.Curve((ends, ends), *axes).opts(color=GRAY)
        if not deviations:
            return whole * points
        spread = WIDE * np.sqrt(sum(self.arrays[name] ** 2 for name in deviations))
        bands = hv.ErrorBars((x, y, spread), axes[0], [*axes[1], "spread"]).opts(
            alpha=0.25, lower_head=None, upper_head=None
        )
        return whole * bands * points

    def band(
        self,
        x: Float[ndarray, " g"],
        mean: Float[ndarray, " g"],
        deviation: Float[ndarray, " g"],
        names: tuple[str, str],
        label: str = "",
    ) -> Any:
        """A mean with its 95% band over x; `names` are those of both axes' arrays."""
        axes = [self.axis(names[0])], self.axis(names[1])
        low, high = mean - WIDE * deviation, mean + WIDE * deviation
        area = hv.Area((x, low, high), axes[0], [axes[1], "upper"]).opts(alpha=0.25, line_width=0)
        return area * hv.Curve((x, mean), axes[0], axes[1], label=label).opts(**SIZE)

    def points(
        self, x: Float[ndarray, " n"], y: Float[ndarray, " n"], names: tuple[str, str]
    ) -> Any:
        """Observations, in the color of the text; `names` are those of both axes' arrays."""
        axes = self.axis(names[0]), self.axis(names[1])
        return hv.Scatter((x, y), *axes).opts(color=GRAY, size=4)

    def overlay(self, parts: Sequence[Any]) -> Any:
        """Elements on one pair of axes."""
        return hv.Overlay(parts).collate().opts(hv.opts.Overlay(**LEGEND))

    def matrix(
        self, values: Float[ndarray, "r c"], rows: Sequence[str], columns: Sequence[str], name: str
    ) -> Any:
        """A heat map, the first row on top."""
        cells = [(c, r, v) for r, line in zip(rows, values) for c, v in zip(columns, line)]
        most = float(np.nanmax(np.abs(values), initial=1e-12))
        low = -most if np.nanmin(values, initial=0) < 0 else 0.0
        drawn = hv.HeatMap(cells, ["column", "row"], self.axis(name))
        if max(values.shape) > READABLE:
            drawn = drawn.opts(xaxis=None, yaxis=None)
        return drawn.opts(
            invert_yaxis=True, colorbar=True, clim=(low, most), xrotation=60, tools=["hover"],
            cmap="RdBu_r" if low < 0 else "Blues", xlabel="", ylabel="", **SIZE,
        )  # fmt: skip

    def surface(self, edges: Sequence[Sequence[float]], name: str, dims: Sequence[str]) -> Any:
        """Cells of two dimensions, of which the first runs fastest in the array."""
        (x, y), values = (np.asarray(e, float) for e in edges), self.arrays[name]
        cells = values.reshape(len(y) - 1, len(x) - 1)
        return hv.QuadMesh((x, y, cells), list(dims), self.axis(name)).opts(
            colorbar=True, cmap="Viridis", tools=["hover"], **SIZE
        )

    def polygons(
        self,
        outlines: Sequence[Outline],
        values: Float[ndarray, " n"],
        names: Sequence[str],
        name: str,
        limits: tuple[float, float] | None = None,
        colors: str = "Cividis",
    ) -> Any:
        """A map: each polygon, with its holes and islands, in the color of its value.

        Args:
            outlines: Of each value its polygons, each an outer ring and holes, in meters.
            values: What is drawn.
            names: Of the polygons, for the hover tool.
            name: What the values are called.
            limits: The ends of the color scale; None: those of the values.
            colors: The color map.
        """
        rows = []
        for outline, value, place in zip(outlines, values, names):
            rings = [np.column_stack(part[0]) for part in outline]
            gap = np.full((1, 2), np.nan)
            path = np.vstack([np.vstack([r, gap]) for r in rings])[:-1]
            holes = [[np.column_stack(hole) for hole in part[1:]] for part in outline]
            rows.append(
                {"x": path[:, 0], "y": path[:, 1], "holes": holes, name: value, "place": place}
            )
        clim = {} if limits is None else {"clim": limits}
        return hv.Polygons(rows, vdims=[name, "place"]).opts(
            color=name, cmap=colors, colorbar=True, tools=["hover"], line_color=GRAY, aspect=1,
            frame_width=340, xaxis=None, yaxis=None, **clim,
        )  # fmt: skip

    def bars(self, names: Sequence[str], values: Float[ndarray, " n"], value: str) -> Any:
        """A bar for each name."""
        return hv.Bars((list(names), values), "name", self.axis(value)).opts(
            invert_axes=True, xlabel="", tools=["hover"], **SIZE
        )

    def lines(
        self,
        x: Float[ndarray, " t"] | Float[ndarray, "m t"],
        values: Float[ndarray, "m t"],
        names: Sequence[str],
        labels: tuple[str, str],
    ) -> Any:
        """A curve for each name, of y over x (common to all, or one for each)."""
        every = np.broadcast_to(x, values.shape)
        curves = {str(n): hv.Curve((a, b), *labels) for n, a, b in zip(names, every, values)}
        return hv.NdOverlay(curves, "method", sort=False).opts(
            hv.opts.Curve(**SIZE, tools=["hover"]), hv.opts.NdOverlay(**LEGEND)
        )

    def groups(
        self,
        x: Float[ndarray, " n"],
        y: Float[ndarray, " n"],
        group: Shaped[ndarray, " n"],
        names: Sequence[str],
        labels: tuple[str, str],
    ) -> Any:
        """Points in a colour for each group, which is an index into `names`."""
        points = {
            str(name): hv.Points((x[group == i], y[group == i]), list(labels))
            for i, name in enumerate(names)
        }
        return hv.NdOverlay(points, "class", sort=False).opts(
            hv.opts.Points(size=5, alpha=0.7, **SIZE), hv.opts.NdOverlay(**LEGEND)
        )

    def densities(
        self, values: str, group: Shaped[ndarray, " n"], names: Sequence[str], bins: int = 20
    ) -> Any:
        """A histogram of an array for each group, in shares of its rows, over [0, 1]."""
        drawn = {}
        for i, name in enumerate(names):
            count, edges = np.histogram(self.arrays[values][group == i], bins, (0, 1))
            share = count / max(count.sum(), 1)
            drawn[str(name)] = hv.Histogram(
                (edges, share), kdims=[self.axis(values)], vdims=["share of its rows"]
            )
        return hv.NdOverlay(drawn, "class", sort=False).opts(
            hv.opts.Histogram(alpha=0.6, **SIZE), hv.opts.NdOverlay(**LEGEND)
        )

    def coverage(self) -> Any:
        """Observed against nominal coverage of intervals; on the diagonal they are calibrated."""
        nominal, observed = self.arrays["coverage"]
        axes = "nominal coverage", "observed coverage"
        points = hv.Scatter((nominal, observed), *axes).opts(size=8, **SIZE, tools=["hover"])
        return hv.Curve(([0, 1], [0, 1]), *axes).opts(color=GRAY) * points

    def reliability(self) -> Any:
        """Observed share of the class against its mean probability, by bin."""
        mean, share, rows = self.arrays["reliability"]
        axes = "mean probability", ["observed share", "rows"]
        points = hv.Scatter((mean, share, rows), *axes).opts(size=8, **SIZE, tools=["hover"])
        return hv.Curve(([0, 1], [0, 1]), axes[0], axes[1][0]).opts(color=GRAY) * points
