"""Common figures of studies as HoloViews elements from the arrays of a report.

The only module of the engine that imports HoloViews, imported by `scant.plot` on demand. Axes have
the names and units of the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray

from scant.metrics import Z_95

Ring = tuple[Float[ndarray, " v"], Float[ndarray, " v"]]
Outline = Sequence[Sequence[Ring]]
GRAY = "#808791"
SIZE = {"width": 420, "height": 320}
LEGEND = {"legend_position": "bottom", "legend_cols": 2}
READABLE = 20  # maximum number of names along an axis

# Panel loads the backend without the options of its elements.
if "bokeh" not in hv.Store.loaded_backends() or not hasattr(hv.opts, "Curve"):
    hv.extension("bokeh", logo=False)


def side_by_side(elements: Iterable[Any]) -> Any:
    """Arrange elements in two columns with separate axes."""
    return hv.Layout(list(elements)).cols(2).opts(shared_axes=False)


class Elements:
    """Factory of elements for the arrays of a report.

    Args:
        arrays: Arrays of the report by name.
        units: Units of the arrays by name.
        objective: Name of the objective with its unit.
        metadata: Labels of the arrays (`events.Started.metadata`).
        steps: Training curve with the rows step, restart and objective.
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
        """Return True if the report has these arrays and none is empty."""
        return all(np.size(self.arrays.get(name, ())) for name in names)

    def axis(self, name: str) -> Any:
        """Return the HoloViews dimension of an array with its unit."""
        unit = self._units.get(name, "1")
        return hv.Dimension(name, unit=None if unit == "1" else unit)

    def elbo(self) -> Any:
        """Plot the objective by step, with a curve for each restart."""
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
        """Plot predictive means against true values, with 95% intervals and the diagonal.

        `deviations` are independent parts of the predictive standard deviation.
        """
        x, y = self.arrays[true], self.arrays[mean]
        axes = [self.axis(true)], [self.axis(mean)]
        points = hv.Scatter((x, y), *axes).opts(size=4, alpha=0.7, **SIZE, tools=["hover"])
        limits = np.array([x.min(), x.max()])
        diagonal = hv.Curve((limits, limits), *axes).opts(color=GRAY)
        if not deviations:
            return diagonal * points
        spread = Z_95 * np.sqrt(sum(self.arrays[name] ** 2 for name in deviations))
        bands = hv.ErrorBars((x, y, spread), axes[0], [*axes[1], "spread"]).opts(
            alpha=0.25, lower_head=None, upper_head=None
        )
        return diagonal * bands * points

    def band(
        self,
        x: Float[ndarray, " g"],
        mean: Float[ndarray, " g"],
        deviation: Float[ndarray, " g"],
        names: tuple[str, str],
        label: str = "",
    ) -> Any:
        """Plot a mean with its 95% band over x; `names` are the arrays of both axes."""
        axes = [self.axis(names[0])], self.axis(names[1])
        low, high = mean - Z_95 * deviation, mean + Z_95 * deviation
        area = hv.Area((x, low, high), axes[0], [axes[1], "upper"]).opts(alpha=0.25, line_width=0)
        return area * hv.Curve((x, mean), axes[0], axes[1], label=label).opts(**SIZE)

    def points(
        self, x: Float[ndarray, " n"], y: Float[ndarray, " n"], names: tuple[str, str]
    ) -> Any:
        """Plot observations in gray; `names` are the arrays of both axes."""
        axes = self.axis(names[0]), self.axis(names[1])
        return hv.Scatter((x, y), *axes).opts(color=GRAY, size=4)

    def overlay(self, parts: Sequence[Any]) -> Any:
        """Overlay elements on common axes."""
        return hv.Overlay(parts).collate().opts(hv.opts.Overlay(**LEGEND))

    def matrix(
        self, values: Float[ndarray, "r c"], rows: Sequence[str], columns: Sequence[str], name: str
    ) -> Any:
        """Plot a heat map with the first row on top."""
        cells = [(c, r, v) for r, line in zip(rows, values) for c, v in zip(columns, line)]
        maximum = float(np.nanmax(np.abs(values), initial=1e-12))
        low = -maximum if np.nanmin(values, initial=0) < 0 else 0.0
        heat_map = hv.HeatMap(cells, ["column", "row"], self.axis(name))
        if max(values.shape) > READABLE:
            heat_map = heat_map.opts(xaxis=None, yaxis=None)
        return heat_map.opts(
            invert_yaxis=True, colorbar=True, clim=(low, maximum), xrotation=60, tools=["hover"],
            cmap="RdBu_r" if low < 0 else "Blues", xlabel="", ylabel="", **SIZE,
        )  # fmt: skip

    def surface(self, edges: Sequence[Sequence[float]], name: str, dims: Sequence[str]) -> Any:
        """Plot an array on a grid of two dimensions; the first one varies fastest."""
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
        """Plot a map with areas colored by value.

        Args:
            outlines: Polygons of each area, each with an outer ring and holes, in meters.
            values: Values of the areas.
            names: Names of the areas for the hover tool.
            name: Name of the values.
            limits: Limits of the color scale; None for those of the values.
            colors: Color map.
        """
        rows = []
        for outline, value, place in zip(outlines, values, names):
            rings = [np.column_stack(part[0]) for part in outline]
            separator = np.full((1, 2), np.nan)
            path = np.vstack([np.vstack([r, separator]) for r in rings])[:-1]
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
        """Plot a bar for each name."""
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
        """Plot a curve for each name over a common or separate x."""
        x_rows = np.broadcast_to(x, values.shape)
        curves = {str(n): hv.Curve((a, b), *labels) for n, a, b in zip(names, x_rows, values)}
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
        """Plot points colored by group, an index into `names`."""
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
        """Plot a normalized histogram over [0, 1] for each group of an array."""
        histograms = {}
        for i, name in enumerate(names):
            count, edges = np.histogram(self.arrays[values][group == i], bins, (0, 1))
            share = count / max(count.sum(), 1)
            histograms[str(name)] = hv.Histogram(
                (edges, share), kdims=[self.axis(values)], vdims=["share of its rows"]
            )
        return hv.NdOverlay(histograms, "class", sort=False).opts(
            hv.opts.Histogram(alpha=0.6, **SIZE), hv.opts.NdOverlay(**LEGEND)
        )

    def coverage(self) -> Any:
        """Plot observed against nominal coverage of intervals, with the diagonal."""
        nominal, observed = self.arrays["coverage"]
        axes = "nominal coverage", "observed coverage"
        points = hv.Scatter((nominal, observed), *axes).opts(size=8, **SIZE, tools=["hover"])
        return hv.Curve(([0, 1], [0, 1]), *axes).opts(color=GRAY) * points

    def reliability(self) -> Any:
        """Plot the observed frequency of a class against its mean probability, by bin."""
        mean, share, rows = self.arrays["reliability"]
        axes = "mean probability", ["observed share", "rows"]
        points = hv.Scatter((mean, share, rows), *axes).opts(size=8, **SIZE, tools=["hover"])
        return hv.Curve(([0, 1], [0, 1]), axes[0], axes[1][0]).opts(color=GRAY) * points
