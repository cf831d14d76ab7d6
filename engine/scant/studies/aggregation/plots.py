"""The aggregation study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scant.studies.aggregation import mean_rate
from scant.studies.aggregation.map_layers import Layer, layers, outlines

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(made: Elements) -> dict[str, Any]:
    """The posterior of the scarce task over its cells, the held-out values, the tasks' B."""
    a, metadata = made.arrays, made.metadata
    edges, dims, tasks = metadata.get("edges") or (), metadata["dims"], metadata["tasks"]
    drawn: dict[str, Any] = {}
    if len(edges) == 2:
        drawn["Posterior mean"] = made.surface(edges, "mean", dims)
        drawn["Posterior deviation"] = made.surface(edges, "std_f", dims)
    elif edges:
        x = np.asarray(edges[0], float)
        centers = (x[:-1] + x[1:]) / 2
        drawn["Posterior"] = made.band(centers, a["mean"], a["std_f"], (dims[0], "mean"))
    for layer in layers(metadata)[:1]:
        drawn |= maps(made, layer)
    if made.has("test_y"):
        drawn["Held-out values"] = made.against("test_y", "test_mean", "test_std")
    if len(tasks) > 1:
        drawn["How the tasks go together"] = made.matrix(a["B"], tasks, tasks, "B")
    return drawn


def maps(made: Elements, layer: Layer) -> dict[str, Any]:
    """Data, posterior mean, width of the interval and exceedance of a layer of polygons."""
    mean, std = (layer.of(made.arrays[f"map_{name}"]) for name in ("mean", "std"))
    if mean is None or std is None:
        return {}
    every = outlines(made.metadata)
    shapes = [every[i] for i in layer.shape]
    low, high = mean_rate.interval(layer.kind, mean, std)
    above = mean_rate.exceedance(layer.kind, mean, std, layer.threshold)
    both = np.concatenate([mean, layer.y[np.isfinite(layer.y)]])
    limits = (float(both.min()), float(both.max()))
    drawn = {
        "Observed": (layer.y, "observed", limits, "Cividis"),
        "Posterior mean": (mean, "mean", limits, "Cividis"),
        "Width of the 95% interval": (high - low, "width", None, "Plasma"),
        f"Probability of more than {layer.threshold:.4g}": (above, "probability", (0, 1), "PRGn"),
    }
    return {
        title: made.polygons(shapes, values, layer.places, name, ends, colors)
        for title, (values, name, ends, colors) in drawn.items()
    }
