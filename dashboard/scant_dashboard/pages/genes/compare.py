"""Comparison of models on one output's replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scant.events import Report
from scant_dashboard.pages.genes.grid import name_input, replicas_of
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.replicas import ReplicaGrid
from scant_dashboard.translate import later, tr


class Compare(PlotView):
    """Models in rows, replicas of one output in columns, with bands of new measurements."""

    title = later("The same rows, by each model")

    def __init__(self) -> None:
        self.plot = ReplicaGrid(self.title, rows="models")
        self.figures, self.panel = self.plot.figures, self.plot.panel

    def update(self, data: Report, metadata: Mapping[str, Any]) -> None:
        """Show the curves of the first selected output for each model."""
        a = data.arrays
        mean = np.concatenate([a["mean"][:1], a["compare_mean"]])
        std = np.concatenate([a["std_y"][:1], a["compare_std"]])
        models = list(dict.fromkeys(m.method for m in data.metrics if m.source != "published"))
        output = metadata["shown"][0]
        names = replicas_of(metadata, [output])[0]
        observed = {name: np.asarray(values) for name, values in metadata["observed"].items()}
        rows = np.flatnonzero(observed["output"] == 0)
        k, n = len(mean), len(rows)
        name_input(self.plot, metadata)
        self.plot.lay_out(
            [tr(name) for name in models[:k]],
            [names] * k,
            np.tile(observed["x"][rows].astype(float), k),
            np.tile(observed["y"][rows].astype(float), k),
            np.repeat(np.arange(k), n),
            np.tile(observed["replica"][rows].astype(int), k),
            np.tile(observed["test"][rows].astype(bool), k),
            (float(a["grid"][0]), float(a["grid"][-1])),
        )
        self.plot.show(a["grid"], mean, np.full_like(std, np.nan), std)
        alt = self.plot.alt
        self.plot.describe(f"{tr('All rows are {output}.', output=output)} {alt}")
