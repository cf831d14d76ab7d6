"""Export of tables with spreadsheet formulas escaped as text."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

# Excel, LibreOffice and Sheets take cells with these beginnings as formulas (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_BEGINS = f"^ *[{re.escape(''.join(_FORMULA))}]"
_NUMBER = re.compile(r"[+-]?(\d[\d.,]*|[.,]\d+)([eE][+-]?\d+)?|--?")


def safe_for_spreadsheet(frame: pd.DataFrame) -> pd.DataFrame:
    """Copy a frame with text cells and headers escaped that spreadsheets take as formulas.

    An apostrophe is prepended. Numbers and numeric text are not changed.
    """
    safe = frame.copy(deep=False)
    safe.columns = pd.Index([_quoted(c) for c in frame.columns])
    for i in range(frame.shape[1]):
        series = frame.iloc[:, i]
        if pd.api.types.is_numeric_dtype(series) or pd.api.types.is_datetime64_dtype(series):
            continue
        if not len(suspects := _suspects(series)):
            continue
        cells = series.to_numpy(dtype=object, copy=True)
        cells[suspects] = [_quoted(v) for v in cells[suspects]]
        safe.isetitem(i, cells)
    return safe


def _suspects(series: pd.Series) -> Int[np.ndarray, " k"]:
    """Positions of cells that may have to be escaped."""
    try:
        text = pa.array(series, from_pandas=True)
        begins = pc.match_substring_regex(text, _BEGINS)
    except (pa.ArrowException, NotImplementedError):
        return np.arange(len(series))
    if not pc.any(begins).as_py():
        return np.empty(0, dtype=int)
    hits = pc.and_not(begins, pc.match_substring_regex(text, f"^(?:{_NUMBER.pattern})$"))
    return np.flatnonzero(np.asarray(pc.fill_null(hits, False)))


def _quoted(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip(" ").startswith(_FORMULA):
        return value
    return value if _NUMBER.fullmatch(value.strip()) else "'" + value
