"""The replica that a page offers first to be hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

MIN_POINTS = 3  # of a replica; the deviation of fewer says little


def typical_replica(observed: Mapping[str, Sequence[float]]) -> tuple[int, int] | None:
    """Return output and replica whose points vary as much as those of the median replica.

    The NMSE of a hidden replica is relative to the variance of its points, so it is large for flat
    replicas and small for steep ones: of the demonstration's, this one has about the median NMSE.

    Args:
        observed: Points of the displayed outputs, as in the metadata of a run: `y`, `output`,
            `replica` and `test` (True if held out).

    Returns:
        Numbers of output and replica; None if each replica is held out or has too few points.
    """
    y, output, replica = (np.asarray(observed[name], float) for name in ("y", "output", "replica"))
    usable = np.isfinite(y) & ~np.asarray(observed["test"], bool)
    deviation = {}
    for d, r in {(int(d), int(r)) for d, r in zip(output[usable], replica[usable])}:
        points = y[usable & (output == d) & (replica == r)]
        if len(points) >= MIN_POINTS:
            deviation[d, r] = float(points.std())
    ranked = sorted(deviation, key=lambda cell: (deviation[cell], cell))
    return ranked[(len(ranked) - 1) // 2] if ranked else None
