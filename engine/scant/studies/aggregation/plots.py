"""The aggregation study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scant.studies.aggregation import mean_rate
from scant.studies.aggregation.map_layers import Layer, layers, outlines

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(elements: Elements) -> dict[str, Any]:
    """Posterior of the scarce task over its cells, held-out values, and the tasks' B."""
    a, metadata = elements.arrays, elements.metadata
    edges, dims, tasks = metadata.get("edges") or (), metadata["dims"], metadata["tasks"]
    result: dict[str, Any] = {}
    if len(edges) == 2:
        result["Posterior mean"] = elements.surface(edges, "mean", dims)
        result["Posterior deviation"] = elements.surface(edges, "std_f", dims)
    elif edges:
        x = np.asarray(edges[0], float)
        centers = (x[:-1] + x[1:]) / 2
        result["Posterior"] = elements.band(centers, a["mean"], a["std_f"], (dims[0], "mean"))
    for layer in layers(metadata)[:1]:
        result |= maps(elements, layer)
    if elements.has("test_y"):
        result["Held-out values"] = elements.against("test_y", "test_mean", "test_std")
    if len(tasks) > 1:
        result["How the tasks go together"] = elements.matrix(a["B"], tasks, tasks, "B")
    return result


def maps(elements: Elements, layer: Layer) -> dict[str, Any]:
    """Data, posterior mean, width of the interval and exceedance of a layer of polygons."""
    mean, std = (layer.of(elements.arrays[f"map_{name}"]) for name in ("mean", "std"))
    if mean is None or std is None:
        return {}
    all_shapes = outlines(elements.metadata)
    shapes = [all_shapes[i] for i in layer.shape]
    low, high = mean_rate.interval(layer.kind, mean, std)
    above = mean_rate.exceedance(layer.kind, mean, std, layer.threshold)
    both = np.concatenate([mean, layer.y[np.isfinite(layer.y)]])
    limits = (float(both.min()), float(both.max()))
    panels = {
        "Observed": (layer.y, "observed", limits, "Cividis"),
        "Posterior mean": (mean, "mean", limits, "Cividis"),
        "Width of the 95% interval": (high - low, "width", None, "Plasma"),
        f"Probability of more than {layer.threshold:.4g}": (above, "probability", (0, 1), "PRGn"),
    }
    return {
        title: elements.polygons(shapes, values, layer.places, name, bounds, colors)
        for title, (values, name, bounds, colors) in panels.items()
    }
