"""Conversion of table columns to finite numbers, with errors that name the invalid cell."""

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
    """Copy columns of a data frame to float64.

    Args:
        frame: The table.
        columns: Columns that a model uses.
        name: Name of the table for messages.
        at: Row numbers for messages.
        gaps: True to convert empty cells to NaN.

    Raises:
        BadInput: A column is absent, or a cell is not a finite number (or empty without `gaps`).
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
    invalid = ~np.isfinite(x)
    if gaps and invalid.any():
        invalid &= cells.notna().to_numpy() | np.isinf(x)
    if invalid.any():
        row, column = np.argwhere(invalid)[0]
        problem, advice = "the cell has no finite number", "give one or drop the row."
        if gaps:
            problem = f"got {str(cells.iat[row, column])[:40]!r}, which is not a finite number"
            advice = "give one, or leave the cell empty."
        raise BadInput(f"{name}, column {columns[column]!r}, row {at[row]}: {problem}; {advice}")
    return x
