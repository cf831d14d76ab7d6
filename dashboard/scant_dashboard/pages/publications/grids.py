"""Figures of publications in one Bokeh figure: curves of replicas, and Hinton diagrams."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scant.reproduce.figure_files import matrices, pairs, read, replica_curves
from scant.reproduce.figures import HINTON, PAIRS, REPLICAS, definitions_of, results_of
from scant.reproduce.items import Item
from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.coregionalization_grid import HintonGrid
from scant_dashboard.plots.hinton import HintonPlot
from scant_dashboard.plots.replicas import ReplicaGrid
from scant_dashboard.plots.theme import models
from scant_dashboard.translate import tr

ROW = 64  # pixels of the cells of an output


def grid(item: Item, scale: float = 1.0) -> Plot:
    """Return a figure that is defined as one of `scant.reproduce.figures.GRIDS`.

    Args:
        item: The figure.
        scale: Size of type, relative to the usual one.
    """
    plot = DRAWN[definitions_of(item)[0].kind](item, scale)
    for axis in plot.figures[0].axis:  # a page without a session cannot compile ours
        axis.formatter = models.BasicTickFormatter()
    plot.say()
    return plot


def _replicas(item: Item, scale: float) -> ReplicaGrid:
    data = replica_curves(read(item.full_name))
    plot = ReplicaGrid(item.title, round(ROW * scale))
    points = (data.x, data.y, data.output, data.replica, data.held_out)
    plot.lay_out(data.outputs, data.replicas, *points)
    plot.show(data.grid, data.mean, data.std_f, data.std_y)
    return plot


def _diagrams(item: Item, _: float) -> HintonGrid:
    data = matrices(read(item.full_name))
    plot = HintonGrid(item.title, min_side=240, max_side=400)
    names = [f"{group} {name}" for group, name in zip(data.groups, data.names)]
    plot.show(data.entries, data.heads, names, data.groups)
    # Names in the data, in place of a formatter that a page without a session cannot compile.
    cells, hover = plot.cells, plot.figures[0].select_one(models.HoverTool)
    cells.data = {
        **cells.data,
        **{side: [names[int(k)] for k in np.asarray(cells.data[side])] for side in "ij"},
    }
    hover.update(
        formatters={},
        tooltips=[(tr("class"), "@i"), (tr("with"), "@j"), (tr("value"), "@value{0.0000}")],
    )
    return plot


def _coupling(item: Item, scale: float) -> HintonPlot:
    data = pairs(results_of(item))
    output = tr("output")
    plot = HintonPlot(item.title, output, output, tr("mean absolute covariances"))
    plot.show(data.entries[0], data.names)
    figure = plot.figures[0]
    figure.update(
        frame_width=round(figure.frame_width * scale),
        frame_height=round(figure.frame_height * scale),
    )
    return plot


DRAWN: dict[str, Callable[[Item, float], Plot]] = {
    REPLICAS: _replicas,
    HINTON: _diagrams,
    PAIRS: _coupling,
}
