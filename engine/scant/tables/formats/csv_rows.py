"""Fast formatting of CSV rows with PyArrow, identical to the output of pandas.

Numbers have the shortest decimal representation that is parsed to the same number, as in Python.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_PLAIN = (1e-4, 1e10)  # range of fractions that Arrow formats as Python does


def rows(frame: pd.DataFrame, delimiter: str, decimal: str) -> bytes | None:
    """Format the rows of a table without header in UTF-8.

    Returns None for tables of a single column, or with columns other than numbers, booleans and
    text.
    """
    if frame.shape[1] < 2 or not len(frame):
        return None
    cells = [_cells(frame.iloc[:, i], delimiter, decimal) for i in range(frame.shape[1])]
    formatted = [c for c in cells if c is not None]
    if len(formatted) < len(cells):
        return None
    line_end = pa.scalar(os.linesep, pa.large_string())
    lines = pc.binary_join_element_wise(*formatted, pa.scalar(delimiter, pa.large_string()))
    joined = pc.binary_join_element_wise(lines, line_end, pa.scalar("", pa.large_string()))
    _, offsets, text = joined.buffers()
    first, last = np.frombuffer(offsets, np.int64)[[joined.offset, joined.offset + len(joined)]]
    return bytes(memoryview(text)[first:last])


def text_of(series: pd.Series) -> pa.LargeStringArray | None:
    """Convert a text column to Arrow with null for empty cells; None for other columns."""
    try:
        text = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    if pa.types.is_null(text.type) or pa.types.is_string(text.type):
        return text.cast(pa.large_string())
    return text if pa.types.is_large_string(text.type) else None


def _cells(series: pd.Series, delimiter: str, decimal: str) -> pa.LargeStringArray | None:
    kind = series.dtype
    if pd.api.types.is_bool_dtype(kind) and isinstance(kind, np.dtype):
        return pa.array(np.where(series, "True", "False"), pa.large_string())
    if pd.api.types.is_integer_dtype(kind):
        return pc.fill_null(_array(series).cast(pa.large_string()), "")
    if kind == np.float64 or (kind == pd.ArrowDtype(pa.float64()) and decimal == "."):
        text = _numbers(_array(series))
        return text if decimal == "." else pc.replace_substring(text, ".", decimal)
    text = text_of(series) if _is_text(kind) else None
    return None if text is None else _quoted(pc.fill_null(text, ""), delimiter)


def _is_text(kind: np.dtype | pd.api.extensions.ExtensionDtype) -> bool:
    return pd.api.types.is_string_dtype(kind) or kind == np.dtype(object)


def _array(series: pd.Series) -> pa.Array:
    array = pa.array(series, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _numbers(numbers: pa.DoubleArray) -> pa.LargeStringArray:
    text = numbers.cast(pa.large_string())
    values = numbers.to_numpy(zero_copy_only=False)
    size = np.abs(values)
    plain = (size >= _PLAIN[0]) & (size < _PLAIN[1]) & (size != np.floor(size))
    if not plain.all():
        empty = np.isnan(values)
        formatted = [repr(v) for v in values[~plain & ~empty].tolist()]
        text = pc.replace_with_mask(
            text, pa.array(~plain & ~empty), pa.array(formatted, pa.large_string())
        )
        text = pc.if_else(pa.array(empty), pa.scalar("", pa.large_string()), text)
    return text


def _quoted(text: pa.LargeStringArray, delimiter: str) -> pa.LargeStringArray:
    """Quote cells with a delimiter, a quotation mark or a line break."""
    special = pc.match_substring_regex(text, f'["\r\n{re.escape(delimiter)}]')
    if not pc.any(special).as_py():
        return text
    quote, nothing = (pa.scalar(mark, pa.large_string()) for mark in ('"', ""))
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise(quote, doubled, quote, nothing), text)
