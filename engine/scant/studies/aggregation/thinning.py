"""Conversion of a table of boxes to larger boxes, fewer observations, or fewer rows."""

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
        table: Long form, all boxes; rows without a `y` are ignored.
        width: Width of the new boxes by dimension.
        origin: Start of the first new box by dimension; by default the smallest bound.
        covered: Minimum share of a new box that the table covers; others are left out. Averages
            are over the covered part.

    Returns:
        Long form: task, bounds, `y`, and `y_err` (of independent noise) and `truth` where known for
        all rows of a box. Sorted by task, then dimension by dimension.

    Raises:
        BadInput: There are points, boxes that cross into the next one, or overlapping boxes.
    """
    s = of(table[table["y"].notna()].reset_index(drop=True))
    step = np.array([float(width[d]) for d in s.dims])
    smallest = s.lo.min(axis=0, initial=np.inf)
    start = np.array([(origin or {}).get(d, v) for d, v in zip(s.dims, smallest)])
    volume = s.width.prod(axis=1)
    if (volume <= 0).any():
        raise BadInput("Points cannot be averaged over boxes; give bounds in every dimension.")
    cell = np.floor((s.lo - start) / step + 1e-9).astype(np.int64)
    if (s.hi > start + (cell + 1 + 1e-9) * step).any():
        raise BadInput(f"A box of the table crosses into the next of width {dict(width)}.")
    boxes, box = np.unique(np.column_stack([s.task, cell]), axis=0, return_inverse=True)
    box = box.ravel()
    total = np.bincount(box, volume, len(boxes))
    share = total / step.prod()
    if (share > 1 + 1e-6).any():
        raise BadInput("Boxes of one task overlap, so that their average counts some parts twice.")

    def averaged(values: np.ndarray) -> np.ndarray:
        return np.bincount(box, volume * values, len(boxes)) / total

    result = pd.DataFrame({"task": np.array(s.tasks, dtype=object)[boxes[:, 0]]})
    for d, dim in enumerate(s.dims):
        result[f"{dim}_lo"] = start[d] + boxes[:, 1 + d] * step[d]
        result[f"{dim}_hi"] = start[d] + (boxes[:, 1 + d] + 1) * step[d]
    result["y"] = averaged(s.y)
    noise = np.sqrt(np.bincount(box, (volume * s.y_err) ** 2, len(boxes))) / total
    for column, values in (("y_err", noise), ("truth", averaged(s.truth))):
        if not np.isnan(values).all():
            result[column] = values
    return result[share >= covered - 1e-9].reset_index(drop=True)


def scarce(table: pd.DataFrame, task: str, n: int, seed: int = 0) -> pd.DataFrame:
    """Keep only n of a task's training rows (nested in n).

    None are dropped if n is 0.
    """
    return table.iloc[scarce_places(table, task, n, seed)].reset_index(drop=True)


def scarce_places(table: pd.DataFrame, task: str, n: int, seed: int = 0) -> Int[np.ndarray, " m"]:
    """Positions in the table of the rows that `scarce` keeps."""
    if not n:
        return np.arange(len(table))
    held_out = (table["split"] == TEST) if "split" in table else pd.Series(False, table.index)
    candidates = np.flatnonzero(((table["task"] == task) & ~held_out).to_numpy())
    dropped = np.random.default_rng(seed).permutation(candidates)[n:]
    return np.delete(np.arange(len(table)), dropped)


def thinned(table: pd.DataFrame, rows: int | None) -> pd.DataFrame:
    """Select at most `rows` rows, evenly spread over the table; None keeps all."""
    if rows is None or rows >= len(table):
        return table
    selected = np.linspace(0, len(table) - 1, rows).round().astype(int)
    return table.iloc[selected].reset_index(drop=True)


@runtime_checkable
class Seeded(Protocol):
    """Settings of a demonstration."""

    data_seed: int
