"""The aggregation study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
    if made.has("test_y"):
        drawn["Held-out values"] = made.against("test_y", "test_mean", "test_std")
    if len(tasks) > 1:
        drawn["How the tasks go together"] = made.matrix(a["B"], tasks, tasks, "B")
    return drawn
