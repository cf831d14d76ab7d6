"""The genes study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(made: Elements) -> dict[str, Any]:
    """The replicas of each shown output with their bands and data, and how outputs go together."""
    a, metadata = made.arrays, made.metadata
    outputs, shown = list(metadata["outputs"]), list(metadata["shown"])
    drawn = {name: _replicas(made, i, name) for i, name in enumerate(shown)}
    if made.has("test_y"):
        drawn["Held-out values"] = made.against("test_y", "test_mean", "test_std_y")
    names = outputs[: len(a["K"])]
    drawn["How the outputs go together"] = made.matrix(a["K"], names, names, "K")
    return drawn


def _replicas(made: Elements, output: int, name: str) -> Any:
    """Curves of one output's replicas, its data on them."""
    a, observed = made.arrays, made.metadata["observed"]
    names = made.metadata["replicas"][list(made.metadata["outputs"]).index(name)]
    axes = ("grid", "mean")
    parts = [
        made.band(a["grid"], a["mean"][output, r], a["std_y"][output, r], axes, label=str(replica))
        for r, replica in enumerate(names)
    ]
    mine = np.asarray(observed["output"]) == output
    x, y = (np.asarray(observed[k], float)[mine] for k in ("x", "y"))
    parts.append(made.points(x, y, axes))
    return made.overlay(parts)
