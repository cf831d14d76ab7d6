"""The aggregation page's picture of a posterior: a surface or a band, as the data's space asks."""

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

DEEPER = (
    "These data lie in {} dimensions, too many for a picture; the held-out values below show how "
    "the model does."
)


class Field(View):
    """The posterior of the scarce task on small cells, with what was observed.

    Args:
        title: The heading.
        select: Whether a box may be drawn.
    """

    def __init__(self, title: str, select: bool = False) -> None:
        self.title = title
        self.surface = SurfacePlot(title, select)
        self.intervals = IntervalPlot(title, select)
        self.figures = (*self.surface.figures, *self.intervals.figures)
        self._laid: Mapping[str, Any] | None = None
        self._deep = 0
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)
        self._choose(0)

    @property
    def alt(self) -> str:
        """The reading of the picture that is shown."""
        if self._deep > 2:
            return DEEPER.format(self._deep)
        return (self.surface if self._deep == 2 else self.intervals).alt

    def say(self) -> None:
        """Tell the reading to a screen reader."""
        self.surface.say()
        self.intervals.say()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self._laid = None
        self.surface.clear()
        self.intervals.clear()

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the cells of a snapshot or report."""
        self.show(data.arrays, metadata)

    def show(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
        """Show `mean`, `std_f` and `std_y` of the cells that `metadata` tell."""
        self.panel.visible = bool(metadata.get("edges"))
        if not self.panel.visible:  # no empty axes, nor a color bar of nothing
            self._deep = len(metadata.get("dims", ())) or 0
            return
        if self._laid is not metadata:
            self._lay(metadata)
        mean, std = arrays["mean"], arrays["std_f"]
        if self._deep == 2:
            self.surface.show(mean, std)
        else:
            edges = np.asarray(metadata["edges"][0], float)
            truth = np.asarray(metadata["truth"] or np.full(len(mean), np.nan), float)
            self.intervals.show((edges[:-1] + edges[1:]) / 2, mean, std, arrays["std_y"], truth)

    def _lay(self, metadata: Mapping[str, Any]) -> None:
        """Axes, cells and observations, which stay the same throughout a run."""
        self._laid = metadata
        dims, observed = metadata["dims"], metadata["observed"]
        self._choose(len(dims))
        lo, hi = np.asarray(observed["lo"], float), np.asarray(observed["hi"], float)
        y, held = np.asarray(observed["y"], float), np.asarray(observed["test"], bool)
        mine = np.asarray(observed["task"]) == metadata["tasks"].index(metadata["scarce"])
        if len(dims) == 2:
            known = metadata["truth"]
            truth = None if known is None else np.asarray(known, float)
            self.surface.lay([np.asarray(e, float) for e in metadata["edges"]], truth, dims)
            self.surface.observe(lo[~held], hi[~held])
        else:
            alone = metadata["tasks"] == ["all"]  # of a table without a column of tasks
            self.intervals.name(dims[0], (alone and target_name(metadata)) or metadata["scarce"])
            self.intervals.observe(lo[mine, 0], hi[mine, 0], y[mine], held[mine])
            rest = ~mine & ~held
            self.intervals.beside((lo[rest, 0] + hi[rest, 0]) / 2, on_scale(metadata, y)[rest])

    def mark(self, lo: Sequence[float], hi: Sequence[float]) -> None:
        """Draw the box that is asked about."""
        (self.surface if self._deep == 2 else self.intervals).mark(lo, hi)

    def _choose(self, dimensions: int) -> None:
        if dimensions != self._deep or not len(self.panel):
            self._deep = dimensions
            self.panel.objects = [(self.surface if dimensions == 2 else self.intervals).panel]


def on_scale(metadata: Mapping[str, Any], y: np.ndarray) -> np.ndarray:
    """Observations of all tasks on the scale of the scarce one (an instrument has its own)."""
    scale = np.asarray(metadata["scale"], float)[np.asarray(metadata["observed"]["task"])]
    offset, factor = metadata["scale"][metadata["tasks"].index(metadata["scarce"])]
    return offset + factor * (y - scale[:, 0]) / scale[:, 1]
