"""Posterior of the aggregation page: a surface in two dimensions, a band in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import panel as pn

from scant.events import Report, Snapshot
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.base import View, target_name
from scant_dashboard.plots.intervals import IntervalPlot
from scant_dashboard.plots.surface import SurfacePlot
from scant_dashboard.translate import later, tr

DEEPER = later(
    "These data lie in {n} dimensions, too many for a picture; the held-out values below show how "
    "the model does."
)


class Field(View):
    """The posterior of the scarce task on small cells, with the observations.

    Args:
        title: The heading.
        select: Whether the visitor may draw a box.
    """

    def __init__(self, title: str, select: bool = False) -> None:
        self.title = title
        self.surface = SurfacePlot(title, select)
        self.intervals = IntervalPlot(title, select)
        self.figures = (*self.surface.figures, *self.intervals.figures)
        self._current: Mapping[str, Any] | None = None
        self._n_dims = 0
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)
        self._choose(0)

    @property
    def alt(self) -> str:
        """The text alternative of the visible plot."""
        if self._n_dims > 2:
            return tr(DEEPER, n=self._n_dims)
        return (self.surface if self._n_dims == 2 else self.intervals).alt

    def say(self) -> None:
        """Put the text alternatives on the figures."""
        self.surface.say()
        self.intervals.say()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._current = None
        self.surface.clear()
        self.intervals.clear()

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the cells of a snapshot or report."""
        self.show(data.arrays, metadata)

    def show(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
        """Show `mean`, `std_f` and `std_y` of the cells in `metadata`."""
        self.panel.visible = bool(metadata.get("edges"))
        if not self.panel.visible:  # hide empty axes and color bars
            self._n_dims = len(metadata.get("dims", ())) or 0
            return
        if self._current is not metadata:
            self._set_data(metadata)
        mean, std = arrays["mean"], arrays["std_f"]
        if self._n_dims == 2:
            self.surface.show(mean, std)
        else:
            edges = np.asarray(metadata["edges"][0], float)
            truth = np.asarray(metadata["truth"] or np.full(len(mean), np.nan), float)
            self.intervals.show((edges[:-1] + edges[1:]) / 2, mean, std, arrays["std_y"], truth)

    def _set_data(self, metadata: Mapping[str, Any]) -> None:
        """Set axes, cells and observations, which are constant during a run."""
        self._current = metadata
        dims, observed = metadata["dims"], metadata["observed"]
        self._choose(len(dims))
        lo, hi = np.asarray(observed["lo"], float), np.asarray(observed["hi"], float)
        y, held = np.asarray(observed["y"], float), np.asarray(observed["test"], bool)
        in_task = np.asarray(observed["task"]) == metadata["tasks"].index(metadata["scarce"])
        if len(dims) == 2:
            values = metadata["truth"]
            truth = None if values is None else np.asarray(values, float)
            self.surface.lay_out([np.asarray(e, float) for e in metadata["edges"]], truth, dims)
            self.surface.observe(lo[~held], hi[~held])
        else:
            alone = metadata["tasks"] == ["all"]  # a table without a column of tasks
            self.intervals.name(dims[0], (alone and target_name(metadata)) or metadata["scarce"])
            self.intervals.observe(lo[in_task, 0], hi[in_task, 0], y[in_task], held[in_task])
            rest = ~in_task & ~held
            self.intervals.show_others((lo[rest, 0] + hi[rest, 0]) / 2, on_scale(metadata, y)[rest])

    def mark(self, lo: Sequence[float], hi: Sequence[float]) -> None:
        """Draw the queried box."""
        (self.surface if self._n_dims == 2 else self.intervals).mark(lo, hi)

    def _choose(self, dimensions: int) -> None:
        if dimensions != self._n_dims or not len(self.panel):
            self._n_dims = dimensions
            self.panel.objects = [(self.surface if dimensions == 2 else self.intervals).panel]


def on_scale(metadata: Mapping[str, Any], y: np.ndarray) -> np.ndarray:
    """Transform observations of all tasks to the location and scale of the scarce one."""
    scale = np.asarray(metadata["scale"], float)[np.asarray(metadata["observed"]["task"])]
    offset, factor = metadata["scale"][metadata["tasks"].index(metadata["scarce"])]
    return offset + factor * (y - scale[:, 0]) / scale[:, 1]
