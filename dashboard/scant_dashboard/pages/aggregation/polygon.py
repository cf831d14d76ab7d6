"""The posterior of the average over a polygon that the visitor draws or types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import panel_material_ui as pmui

from scant.studies.aggregation.map_layers import Layer, layers, outlines
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.question_view import QuestionView
from scant_dashboard.page_parts.widgets import controls_row, stacked
from scant_dashboard.pages.aggregation.box import ENDS
from scant_dashboard.plots.density import DensityPlot
from scant_dashboard.plots.polygon_drawing import PolygonDrawing
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

HELP = later(
    "Draw a polygon on the map: click its corners, and double-click the last (or press Enter). "
    "Or type it: four bounds in degrees (west, south, east, north), or well-known text such as "
    "<code>POLYGON ((-79 35, -78 35, -78 36, -79 35))</code>."
)
AVERAGE = later(
    "{mean} (deviation {std:.2g}) is the average over the {area:,.0f} km² of the polygon; 95% "
    "interval {low:.4g} to {high:.4g}."
)
EXCEEDING = later(
    "{mean} (deviation {std:.2g}) is the average over the {area:,.0f} km² of the polygon; 95% "
    "interval {low:.4g} to {high:.4g}; it is more than {threshold:.4g} with probability "
    "{above:.2f}."
)
OUTSIDE = later(
    "{percent:.0f}% of the polygon lies outside the bounds of the training data: the model "
    "extrapolates there."
)
FURTHER = 2  # maximum number of dimensions besides the two of the map


class PolygonQuery(QuestionView):
    """Query of the average over a drawn or typed polygon, for any task."""

    title = later("Ask for a polygon of your own")
    prompt = later("Draw a polygon for its average.")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._layers: list[Layer] = []
        self._metadata: Mapping[str, Any] = {}
        self._mean = np.empty(0)  # posterior means of the polygons of all layers
        self._shape: dict[str, Any] = {}
        self._suspended = False
        self.map = PolygonDrawing(tr("Draw a polygon"), self._drawn)
        self.density = DensityPlot(tr("average"), title=tr("Its average"), before="")
        super().__init__(self.map, self.density)
        self.layer = pmui.Select(label=tr("Task"), options={}, disabled=True, width=260, margin=0)
        self.threshold = pmui.FloatInput(
            label=tr("Threshold"), width=160, margin=0, disabled=True, format="0.[00000000]"
        )
        self.bounds = [
            pmui.FloatInput(
                label=tr(ENDS[0], name=""), width=150, margin=0, visible=False, format="0.[0000]"
            )
            for _ in range(2 * FURTHER)
        ]
        self.polygon = pmui.TextInput(
            label=tr("Polygon: west, south, east, north in degrees, or well-known text"), margin=0,
            disabled=True, sizing_mode="stretch_width", max_width=640,
        )  # fmt: skip
        self.reading = text(f"<p>{tr(HELP)}</p>")
        self.layer.param.watch(lambda _: self._show_layer(), "value")
        self.polygon.param.watch(lambda _: self._typed(), "value")
        for field in (self.threshold, *self.bounds):
            field.param.watch(lambda _: self._ask(), "value")
        self.panel = stacked(
            controls_row(self.layer, self.threshold, *self.bounds), self.polygon, self.reading,
            self.map.panel, self.density.panel,
        )  # fmt: skip

    def open(self, run: RunState) -> None:
        """Offer the run's polygons; no query until a polygon is drawn or typed."""
        self._layers = layers(run.metadata)
        if not self._layers or run.report is None:
            return
        self._metadata = run.metadata
        self._mean = run.report.arrays.get("map_mean", np.empty(0))
        self._suspended = True
        named = {one.name: i for i, one in enumerate(self._layers)}
        self.layer.param.update(options=named, value=0, disabled=False)
        self.polygon.disabled = self.threshold.disabled = False
        self._suspended = False
        self._show_layer()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._layers, self._shape, self._suspended = [], {}, True
        self.map.clear()
        self.density.clear()
        self.reading.object = f"<p>{tr(HELP)}</p>"
        self.polygon.param.update(value="", disabled=True)
        self.layer.disabled = self.threshold.disabled = True
        self._suspended = False

    @property
    def _layer(self) -> Layer:
        return self._layers[int(self.layer.value or 0)]

    def _show_layer(self) -> None:
        """Show the polygons of the chosen layer, and repeat the query for it."""
        if self._suspended or not self._layers:
            return
        layer, shapes = self._layer, outlines(self._metadata)
        mean = layer.of(self._mean)
        mean = np.full(len(layer.shape), np.nan) if mean is None else mean
        self.map.lay_out([shapes[i] for i in layer.shape], layer.places, mean)
        self._suspended = True
        self.threshold.value = layer.threshold
        dims = self._metadata["dims"][2:]
        bounds = [end for pair in zip(layer.lo, layer.hi) for end in pair]
        for i, field in enumerate(self.bounds):
            if i < len(bounds):
                label = tr(ENDS[i % 2], name=dims[i // 2])
                field.param.update(visible=True, value=bounds[i], label=label)
            else:
                field.visible = False
        self._suspended = False
        self._ask()

    def _drawn(self, x: list[float], y: list[float]) -> None:
        self._suspended = True
        self.polygon.value = ""
        self._suspended = False
        self._shape = {"x": x, "y": y}
        self._ask()

    def _typed(self) -> None:
        if not self._suspended and self.polygon.value.strip():
            self._shape = {"text": self.polygon.value}
            self._ask()

    def _ask(self) -> None:
        bounds = [field.value for field in self.bounds if field.visible]
        if self._suspended or not self._shape or any(bound is None for bound in bounds):
            return
        c = self.threshold.value
        self._page.ask(
            "polygon",
            self._answered,
            **self._shape,
            task=self._layer.task,
            lo=bounds[::2],
            hi=bounds[1::2],
            threshold=float("nan") if c is None else float(c),
        )

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        self.map.mark(answer["outline"])
        self.density.show(answer["grid"], answer["density"])
        mean, std, _ = (float(v) for v in answer["moments"])
        low, high = (float(v) for v in answer["interval"])
        above, area = float(answer["exceedance"][0]), float(answer["area"][0])
        outside = float(answer["outside"][0])
        average = tr("{value:.4g}", value=mean)
        values: dict[str, Any] = {"std": std, "area": area, "low": low, "high": high}
        if math.isfinite(above):
            values |= {"threshold": self.threshold.value, "above": above}
        message = EXCEEDING if math.isfinite(above) else AVERAGE
        strong = tr(message, mean=f"<strong>{average}</strong>", **values)
        self.reading.object = f"<p role='note'>{strong}</p>"
        self.map.describe(tr(message, mean=average, **values))
        if outside > 0.005:
            warning = tr(OUTSIDE, percent=100 * outside)
            self.reading.object += f"<p class='message warning' role='note'>{warning}</p>"
