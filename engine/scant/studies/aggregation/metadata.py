"""Metadata of a run: labels of its arrays, cells of its figure, observations to plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from scant.studies.aggregation.supports import Supports
from scant.studies.split import evenly_spaced
from scant.tables.schema import COVARIATE

MAX_CELLS = {1: 700, 2: 3000}  # of the figure, by its dimensions
COUNTS = (5, 10, 20, 50, 100, 200, 500)  # fine rows on the error curve
MAX_OBSERVATIONS = 1500  # observations sent to the page


def edges(observed: Supports, scarce: str) -> list[Float[np.ndarray, " _"]]:
    """Edges of the figure's cells over the range of the data in one or two dimensions; else none.

    Cells are as wide as the scarce task's smallest support (a hundredth of the range for points);
    the width doubles until there are few enough.
    """
    d = len(observed.dims)
    if d not in MAX_CELLS or observed.inside is not None:  # a map is drawn as its polygons
        return []
    low, high = observed.lo.min(0), observed.hi.max(0)
    span = np.maximum(high - low, 1e-12)
    widths = observed.width[observed.is_task(scarce)]
    width = np.array([w[w > 0].min() if (w > 0).any() else s / 100 for w, s in zip(widths.T, span)])
    while np.prod(np.ceil(span / width - 1e-9)) > MAX_CELLS[d]:
        widest = int(np.argmax(span / width))
        width[widest] *= 2
    counts = np.maximum(np.ceil(span / width - 1e-9).astype(int), 1)
    return [lo + w * np.arange(n + 1) for lo, w, n in zip(low, width, counts)]


def cells(sides: Sequence[np.ndarray | list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the cells with these edges, first dimension fastest; none without edges."""
    if not sides:
        return np.empty((0, 1)), np.empty((0, 1))
    lows = np.meshgrid(*(e[:-1] for e in sides), indexing="ij")
    highs = np.meshgrid(*(e[1:] for e in sides), indexing="ij")
    low, high = (
        np.stack([part.ravel(order="F") for part in side], axis=1) for side in (lows, highs)
    )
    return low, high


def counts(fine: int) -> list[int]:
    """Numbers of fine rows on the error curve, below the number available."""
    return [n for n in COUNTS if n < fine]


def metadata_of(
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    scarce: str,
    kinds: list[str],
    whole: Supports,
) -> dict[str, Any]:
    """Metadata of a run (`events.Started`): tasks, dimensions, cells, observations.

    Args:
        observed: Rows of the model's tasks.
        rows: Mask of the training rows.
        scarce: Name of the scarce task.
        kinds: Likelihood of each task.
        whole: All rows of the table, for the range of the cells and the truth there.
    """
    sides, is_scarce = edges(whole, scarce), whole.is_task(scarce)
    plotted = evenly_spaced(np.flatnonzero(rows | observed.test), MAX_OBSERVATIONS)
    return {
        "tasks": list(observed.tasks),
        "likelihoods": kinds,
        "scarce": scarce,
        "dims": list(observed.dims),
        **({"system": observed.system} if observed.system else {}),
        **({"covariates": [list(c) for c in observed.named]} if observed.named else {}),
        "range": [[float(a), float(b)] for a, b in zip(whole.lo.min(0), whole.hi.max(0))],
        "edges": [side.tolist() for side in sides],
        "truth": truth_of(whole, sides, scarce),
        "rows": {"training": int(rows.sum()), "test": int(observed.test.sum())},
        "counts": counts(int((is_scarce & ~whole.test & np.isfinite(whole.y)).sum())),
        "observed": {
            "task": observed.task[plotted].tolist(),
            "lo": observed.lo[plotted].tolist(),
            "hi": observed.hi[plotted].tolist(),
            "y": [float(v) if np.isfinite(v) else None for v in observed.y[plotted]],
            "test": observed.test[plotted].tolist(),
        },
    }


def truth_of(observed: Supports, sides: list[np.ndarray], scarce: str) -> list[float | None] | None:
    """Truth of the scarce task on the cells, if these are boxes of the table."""
    is_scarce = observed.is_task(scarce) & np.isfinite(observed.truth)
    if not sides or not is_scarce.any():
        return None
    lo, _ = cells(sides)
    by_corner = {
        tuple(np.round(a, 9)): float(v)
        for a, v, w in zip(
            observed.lo[is_scarce], observed.truth[is_scarce], observed.width[is_scarce]
        )
        if np.allclose(w, [side[1] - side[0] for side in sides])
    }
    results = [by_corner.get(tuple(np.round(corner, 9))) for corner in lo]
    return results if any(v is not None for v in results) else None


def input_columns(metadata: Mapping[str, Any]) -> list[str]:
    """Numeric columns that predictions read."""
    bound_columns = [f"{dim}{end}" for dim in metadata["dims"] for end in ("", "_lo", "_hi")]
    linear = [column for column, *_ in metadata.get("covariates", ())]
    if metadata.get("system"):  # attributes of a map are looked up in the map
        linear = [name for name in linear if name.startswith(COVARIATE)]
    return [*bound_columns, *linear]
