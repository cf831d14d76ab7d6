"""Columns of a table as finite numbers, or a sentence that names the cell that is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scant.errors import BadInput


def finite(
    frame: pd.DataFrame, columns: Sequence[str], name: str, at: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n v"]:
    """A copy of some columns, float64.

    Args:
        frame: The table.
        columns: Of it.
        name: What messages call it.
        at: What messages call its rows.

    Raises:
        BadInput: A cell is empty, no number or infinite.
    """
    wanted = frame[list(columns)]
    try:
        x = wanted.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    except (TypeError, ValueError):
        coerced = wanted.apply(pd.to_numeric, errors="coerce")
        x = coerced.to_numpy(dtype=np.float64, na_value=np.nan)
    lost = np.argwhere(~np.isfinite(x))
    if len(lost):
        row, column = lost[0]
        raise BadInput(
            f"{name}, column {columns[column]!r}, row {at[row]}: there is no finite number; give "
            "one or drop the row."
        )
    return x
