"""The aggregation page's maps: polygons with data, posterior mean, interval and exceedance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import panel_material_ui as pmui

from scant.events import Report, Snapshot
from scant.studies.aggregation import mean_rate
from scant.studies.aggregation.map_layers import Layer, layers, outlines
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import controls_row, stacked
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.choropleth import ChoroplethPlot
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

TITLE = later("Maps")
HELP = later("Select a polygon in any map, or by its name, to read its figures.")
MAX_NAMED = 500  # maximum number of polygons in the list
NONE = later("none")


class Maps(PlotView):
    """Four linked maps of one task, updated during training."""

    title = TITLE

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: Mapping[str, Any] | None = None
        self._layers: list[Layer] = []
        self._arrays: Mapping[str, np.ndarray] = {}
        self._suspended = False
        self.plot = ChoroplethPlot(TITLE, self._selected)
        self.figures = self.plot.figures
        self.layer = pmui.Select(label=tr("Task"), options={}, width=260, margin=0)
        self.threshold = pmui.FloatInput(
            label=tr("Threshold of exceedance"), width=200, margin=0, format="0.[00000000]"
        )
        self.polygon = pmui.Select(
            label=tr("Polygon"), options={tr(NONE): -1}, value=-1, width=240, margin=0
        )
        self.reading = text(f"<p class='quiet'>{tr(HELP)}</p>")
        self.layer.param.watch(lambda _: self._show_layer(), "value")
        self.threshold.param.watch(lambda _: self._exceed(), "value")
        self.polygon.param.watch(lambda _: self._chosen(), "value")
        self.panel = stacked(
            controls_row(self.layer, self.threshold, self.polygon), self.reading, self.plot.panel
        )

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._metadata, self._layers, self._arrays = None, [], {}
        self.plot.clear()
        self.reading.object = f"<p class='quiet'>{tr(HELP)}</p>"

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the posterior of a snapshot or report."""
        self._arrays = data.arrays
        if self._metadata is not metadata:
            self._metadata, self._layers = metadata, layers(metadata)
            if not self._layers:
                return
            self._suspended = True
            self.layer.param.update(
                options={one.name: i for i, one in enumerate(self._layers)}, value=0
            )
            self._suspended = False
            self._show_layer()
        elif self._layers:
            self._show()

    @property
    def _layer(self) -> Layer:
        return self._layers[int(self.layer.value or 0)]

    def _show_layer(self) -> None:
        """Show the chosen layer."""
        if self._suspended or not self._layers or self._metadata is None:
            return
        layer, shapes = self._layer, outlines(self._metadata)
        self._suspended = True
        self.threshold.value = layer.threshold
        named = len(layer.places) <= MAX_NAMED
        options = {tr(NONE): -1, **(_numbered(layer.places) if named else {})}
        self.polygon.param.update(options=options, value=-1, visible=named)
        self._suspended = False
        self.plot.lay_out(
            [shapes[i] for i in layer.shape], layer.y, layer.places, layer.test.tolist(),
            tr("{value:.4g}", value=layer.threshold),
        )  # fmt: skip
        self._show()
        self._describe_selection([])

    def _posterior(self) -> tuple[np.ndarray, np.ndarray] | None:
        own = [self._layer.of(self._arrays.get(f"map_{n}", np.empty(0))) for n in ("mean", "std")]
        mean, std = own
        return None if mean is None or std is None or not len(mean) else (mean, std)

    def _above(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        c = self.threshold.value
        if c is None or not math.isfinite(c):
            return np.full(len(mean), np.nan)
        return mean_rate.exceedance(self._layer.kind, mean, std, float(c))

    def _show(self) -> None:
        posterior = self._posterior()
        if posterior is None:
            return
        mean, std = posterior
        low, high = mean_rate.interval(self._layer.kind, mean, std)
        self.plot.show(mean, high - low, self._above(mean, std))
        if self.plot.shapes.selected.indices:
            self._describe_selection(self.plot.shapes.selected.indices)

    def _exceed(self) -> None:
        if self._suspended or not self._layers:
            return
        self.plot.name_threshold(self._named_threshold())
        self._show()
        self._page.read(at_once=True)

    def _named_threshold(self) -> str:
        c = self.threshold.value
        return "–" if c is None else tr("{value:.4g}", value=c)

    def _chosen(self) -> None:
        if not self._suspended:
            self.plot.select([] if self.polygon.value == -1 else [int(self.polygon.value)])

    def _selected(self, rows: list[int]) -> None:
        """Handle a selection in one of the maps, or by name."""
        self._suspended = True
        listed = len(rows) == 1 and rows[0] in self.polygon.options.values()
        self.polygon.value = rows[0] if listed else -1
        self._suspended = False
        self._describe_selection(rows)

    def _describe_selection(self, rows: list[int]) -> None:
        """Show the values of the selected polygons."""
        posterior = self._posterior() if rows and self._layers else None
        if posterior is None:
            self.reading.object = f"<p class='quiet'>{tr(HELP)}</p>"
            return
        layer, (mean, std) = self._layer, posterior
        at = np.array(rows)[:5]
        low, high = mean_rate.interval(layer.kind, mean[at], std[at])
        above = self._above(mean[at], std[at])
        lines = [
            tr(
                "<strong>{place}</strong>: {observed}; posterior mean {mean:.4g} (deviation "
                "{std:.2g}), 95% interval {low:.4g} to {high:.4g}; more than {threshold} with "
                "probability {p:.2f}.",
                place=escape(layer.places[i]), observed=_observed(layer, i), mean=mean[i],
                std=std[i], low=a, high=b, threshold=self._named_threshold(), p=p,
            )
            for i, a, b, p in zip(at, low, high, above)
        ]  # fmt: skip
        more = f" {tr('And {n} more.', n=len(rows) - 5)}" if len(rows) > 5 else ""
        self.reading.object = f"<p role='note'>{'<br>'.join(lines)}{more}</p>"


def _observed(layer: Layer, i: int) -> str:
    if not math.isfinite(layer.y[i]):
        return tr("no observation")
    if layer.test[i]:
        return tr("held-out value {value:.4g}", value=layer.y[i])
    return tr("observed {value:.4g}", value=layer.y[i])


def _numbered(names: list[str]) -> dict[str, int]:
    """Map unique names of the polygons to their indices; repeated names get numbers."""
    made: dict[str, int] = {}
    for i, polygon in enumerate(names):
        name = polygon if polygon not in made and polygon != tr(NONE) else f"{polygon} ({i + 1})"
        made[name] = i
    return made


def on_map(run: RunState) -> bool:
    """Whether a run has polygons."""
    return bool(layers(run.metadata)) if run.metadata else False
