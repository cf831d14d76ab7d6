"""Export of tables with spreadsheet formulas escaped as text."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

# A cell that begins so is a formula to Excel, LibreOffice or Sheets (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d[\d.,]*|[.,]\d+)([eE][+-]?\d+)?|--?")


def safe_for_spreadsheet(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy whose text cells and headers no spreadsheet takes for a formula.

    Such text gets an apostrophe in front; numbers, and text that is a number, stay as they are.
    """
    safe = frame.copy()
    safe.columns = pd.Index([_quoted(c) for c in frame.columns])
    for i in range(frame.shape[1]):
        series = frame.iloc[:, i]
        if not (pd.api.types.is_numeric_dtype(series) or pd.api.types.is_datetime64_dtype(series)):
            safe.isetitem(i, np.array([_quoted(v) for v in series], dtype=object))
    return safe


def _quoted(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip(" ").startswith(_FORMULA):
        return value
    return value if _NUMBER.fullmatch(value.strip()) else "'" + value
