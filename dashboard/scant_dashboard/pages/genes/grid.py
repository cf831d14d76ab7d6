"""Posterior of the genes page: outputs in rows, replicas in columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scant.events import Report, Snapshot
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.base import PlotView, header
from scant_dashboard.plots.replicas import ROW, ReplicaGrid

FIELDS = ("x", "y", "output", "replica", "test")


class Grid(PlotView):
    """The replicas of the selected outputs, with their data.

    Args:
        title: The heading.
        pick: Called with the names of the output and replica of a clicked cell.
        row_height: Pixels of a cell.
    """

    def __init__(
        self, title: str, pick: Callable[[str, str], None] | None = None, row_height: int = ROW
    ) -> None:
        self.title = title
        self._current: Mapping[str, Any] | None = None
        self._pick = pick
        self.plot = ReplicaGrid(title, row_height, self._picked if pick else None)
        self.figures, self.panel = self.plot.figures, self.plot.panel

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._current = None
        self.plot.clear()

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the curves of a snapshot or report."""
        self.show(data.arrays, metadata)

    def show(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
        """Show the curves of the outputs listed in `metadata`."""
        if self._current is not metadata:
            self._current = metadata
            outputs, observed = metadata["shown"], metadata["observed"]
            name_input(self.plot, metadata)
            lay_out(self.plot, outputs, replicas_of(metadata, outputs), observed, arrays["grid"])
        draw(self.plot, arrays)

    def _picked(self, row: int, replica: int) -> None:
        assert self._pick is not None
        self._pick(self.plot.rows[row], self.plot.replicas[row][replica])


def name_input(plot: ReplicaGrid, metadata: Mapping[str, Any]) -> None:
    """Label the axis of the input by its name in the user's table."""
    plot.figures[0].xaxis[0].axis_label = header(metadata, "x") or "x"


def replicas_of(metadata: Mapping[str, Any], outputs: list[str]) -> list[list[str]]:
    """Return the names of the replicas of each output."""
    index = {name: d for d, name in enumerate(metadata["outputs"])}
    return [list(metadata["replicas"][index[name]]) for name in outputs]


def lay_out(
    plot: ReplicaGrid,
    outputs: list[str],
    replicas: list[list[str]],
    observed: Mapping[str, Any],
    grid: np.ndarray,
) -> None:
    """Lay out outputs and data; `observed["output"]` indexes `outputs`."""
    x, y = (np.asarray(observed[name], float) for name in FIELDS[:2])
    output, replica = (np.asarray(observed[name], int) for name in FIELDS[2:4])
    held = np.asarray(observed["test"], bool)
    plot.lay_out(outputs, replicas, x, y, output, replica, held, (float(grid[0]), float(grid[-1])))


def draw(plot: ReplicaGrid, arrays: Mapping[str, np.ndarray]) -> None:
    """Show the curves of a snapshot, report or answer."""
    grid, mean, std_f, std_y, shared = (
        np.asarray(arrays[name], float)
        for name in ("grid", "mean", "std_f", "std_y", "shared_mean")
    )
    plot.show(grid, mean, std_f, std_y, shared)
