"""The replica that a page offers first to be hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

MIN_POINTS = 3  # of a replica; the deviation of fewer says little


def typical_replica(observed: Mapping[str, Sequence[float]]) -> tuple[int, int] | None:
    """Return output and replica whose points vary as much as those of the median replica.

    The NMSE of a hidden replica is relative to the variance of its points, so it is large for flat
    replicas and small for steep ones. Variation is the standard deviation of a replica's points,
    relative to the root mean square of these deviations over the output's replicas.

    Args:
        observed: Points of the displayed outputs, as in the metadata of a run: `y`, `output`,
            `replica` and `test` (True if held out).

    Returns:
        Numbers of output and replica; None if each replica is held out or has too few points.
    """
    y, output, replica = (np.asarray(observed[name], float) for name in ("y", "output", "replica"))
    held = np.asarray(observed["test"], bool) | ~np.isfinite(y)
    cells = sorted({(int(d), int(r)) for d, r in zip(output[~held], replica[~held])})
    points = {(d, r): y[(output == d) & (replica == r) & ~held] for d, r in cells}
    deviation = {cell: float(v.std()) for cell, v in points.items() if len(v) >= MIN_POINTS}
    scale = {
        d: float(np.sqrt(np.mean([v**2 for (o, _), v in deviation.items() if o == d])))
        for d, _ in deviation
    }
    variation = {cell: v / scale[cell[0]] for cell, v in deviation.items() if scale[cell[0]]}
    ranked = sorted(variation, key=lambda cell: (variation[cell], cell))
    return ranked[(len(ranked) - 1) // 2] if ranked else None
