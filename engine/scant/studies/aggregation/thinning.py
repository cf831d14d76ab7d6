"""From a table of boxes to one of larger boxes, of fewer observations, of fewer rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Int

from scant.errors import BadInput
from scant.studies.aggregation.table import of
from scant.studies.split import TEST


def coarsen(
    table: pd.DataFrame,
    width: Mapping[str, float],
    *,
    origin: Mapping[str, float] | None = None,
    covered: float = 1.0,
) -> pd.DataFrame:
    """Averages over larger boxes, each task on its own.

    Args:
        table: Long form, all boxes; rows without a `y` are passed over.
        width: Of the new boxes, each dimension's own.
        origin: Where the first of them begins in a dimension; by default at the least bound.
        covered: Boxes that the table covers to a smaller share are left out. What covers a box in
            part is averaged as if it were the whole.

    Returns:
        Long form: task, bounds, `y`, and `y_err` (of independent noise) and `truth` where known of
        all rows of a box. Sorted by task, then dimension by dimension.

    Raises:
        BadInput: Points, a box that crosses into the next one, boxes that overlap.
    """
    s = of(table[table["y"].notna()].reset_index(drop=True))
    step = np.array([float(width[d]) for d in s.dims])
    least = s.lo.min(axis=0, initial=np.inf)
    start = np.array([(origin or {}).get(d, v) for d, v in zip(s.dims, least)])
    volume = s.width.prod(axis=1)
    if (volume <= 0).any():
        raise BadInput("Points cannot be averaged over boxes; give bounds in every dimension.")
    cell = np.floor((s.lo - start) / step + 1e-9).astype(np.int64)
    if (s.hi > start + (cell + 1 + 1e-9) * step).any():
        raise BadInput(f"A box of the table crosses into the next of width {dict(width)}.")
    key, place = np.unique(np.column_stack([s.task, cell]), axis=0, return_inverse=True)
    place = place.ravel()
    total = np.bincount(place, volume, len(key))
    share = total / step.prod()
    if (share > 1 + 1e-6).any():
        raise BadInput("Boxes of one task overlap, so that their average counts some parts twice.")

    def averaged(values: np.ndarray) -> np.ndarray:
        return np.bincount(place, volume * values, len(key)) / total

    made = pd.DataFrame({"task": np.array(s.tasks, dtype=object)[key[:, 0]]})
    for d, dim in enumerate(s.dims):
        made[f"{dim}_lo"] = start[d] + key[:, 1 + d] * step[d]
        made[f"{dim}_hi"] = start[d] + (key[:, 1 + d] + 1) * step[d]
    made["y"] = averaged(s.y)
    noise = np.sqrt(np.bincount(place, (volume * s.y_err) ** 2, len(key))) / total
    for column, values in (("y_err", noise), ("truth", averaged(s.truth))):
        if not np.isnan(values).all():
            made[column] = values
    return made[share >= covered - 1e-9].reset_index(drop=True)


def scarce(table: pd.DataFrame, task: str, n: int, seed: int = 0) -> pd.DataFrame:
    """The table with only n of a task's training rows; those of a smaller n are among them.

    None are dropped where n is 0.
    """
    return table.iloc[scarce_places(table, task, n, seed)].reset_index(drop=True)


def scarce_places(table: pd.DataFrame, task: str, n: int, seed: int = 0) -> Int[np.ndarray, " m"]:
    """The places in the table of the rows that `scarce` keeps."""
    if not n:
        return np.arange(len(table))
    held = (table["split"] == TEST) if "split" in table else pd.Series(False, table.index)
    mine = np.flatnonzero(((table["task"] == task) & ~held).to_numpy())
    dropped = np.random.default_rng(seed).permutation(mine)[n:]
    return np.delete(np.arange(len(table)), dropped)


def thinned(table: pd.DataFrame, rows: int | None) -> pd.DataFrame:
    """At most that many rows, evenly spread over the table; None keeps all."""
    if rows is None or rows >= len(table):
        return table
    kept = np.linspace(0, len(table) - 1, rows).round().astype(int)
    return table.iloc[kept].reset_index(drop=True)


@runtime_checkable
class Seeded(Protocol):
    """What a demonstration of this page needs of the settings."""

    data_seed: int
