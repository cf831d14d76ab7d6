"""The genes study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(elements: Elements) -> dict[str, Any]:
    """Replicas of each shown output with their bands and data, and the outputs' correlation."""
    a, metadata = elements.arrays, elements.metadata
    outputs, visible = list(metadata["outputs"]), list(metadata["shown"])
    result = {name: _replicas(elements, i, name) for i, name in enumerate(visible)}
    if elements.has("test_y"):
        result["Held-out values"] = elements.against("test_y", "test_mean", "test_std_y")
    names = outputs[: len(a["K"])]
    result["How the outputs go together"] = elements.matrix(a["K"], names, names, "K")
    return result


def _replicas(elements: Elements, output: int, name: str) -> Any:
    """Curves of one output's replicas, with its data."""
    a, observed = elements.arrays, elements.metadata["observed"]
    names = elements.metadata["replicas"][list(elements.metadata["outputs"]).index(name)]
    axes = ("grid", "mean")
    parts = [
        elements.band(
            a["grid"], a["mean"][output, r], a["std_y"][output, r], axes, label=str(replica)
        )
        for r, replica in enumerate(names)
    ]
    in_output = np.asarray(observed["output"]) == output
    x, y = (np.asarray(observed[k], float)[in_output] for k in ("x", "y"))
    parts.append(elements.points(x, y, axes))
    return elements.overlay(parts)
