"""Columns of a table as finite numbers, or a sentence that names the cell that is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from scant.errors import BadInput
from scant.tables.column_matching import listed


def finite(
    frame: pd.DataFrame,
    columns: Sequence[str],
    name: str,
    at: Int[np.ndarray, " n"],
    gaps: bool = False,
) -> Float[np.ndarray, "n v"]:
    """A copy of some columns, float64.

    Args:
        frame: The table.
        columns: Of it, as a model learns or has learned from them.
        name: What messages call it.
        at: What messages call its rows.
        gaps: Whether cells may be empty; they become NaN.

    Raises:
        BadInput: A column is absent; a cell is no number or infinite, or empty without `gaps`.
    """
    absent = [c for c in columns if c not in frame]
    if absent:
        raise BadInput(
            f"{name} lacks the column {absent[0]!r} that the model was trained on; it has "
            f"{listed(list(map(str, frame.columns)))}: rename or add it."
        )
    cells = frame[list(columns)]
    try:
        x = cells.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    except (TypeError, ValueError):
        coerced = cells.apply(pd.to_numeric, errors="coerce")
        x = coerced.to_numpy(dtype=np.float64, na_value=np.nan)
    lost = ~np.isfinite(x)
    if gaps and lost.any():
        lost &= cells.notna().to_numpy() | np.isinf(x)
    if lost.any():
        row, column = np.argwhere(lost)[0]
        got, end = "there is no finite number", "give one or drop the row."
        if gaps:
            got = f"got {str(cells.iat[row, column])[:40]!r}, which is no finite number"
            end = "give one, or leave the cell empty."
        raise BadInput(f"{name}, column {columns[column]!r}, row {at[row]}: {got}; {end}")
    return x
