"""The rows of a CSV file through Arrow, character by character as pandas writes them.

A number is written with the fewest digits that read back as the same number, as Python does.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_PLAIN = (1e-4, 1e10)  # sizes of numbers that Arrow writes as Python does, unless they are whole


def rows(frame: pd.DataFrame, delimiter: str, decimal: str) -> bytes | None:
    """The lines of a table without its header, in UTF-8.

    None where pandas has to write them: of other columns than numbers, truth values and text, or
    of a single column.
    """
    if frame.shape[1] < 2 or not len(frame):
        return None
    cells = [_cells(frame.iloc[:, i], delimiter, decimal) for i in range(frame.shape[1])]
    known = [c for c in cells if c is not None]
    if len(known) < len(cells):
        return None
    ends = pa.scalar(os.linesep, pa.large_string())
    lines = pc.binary_join_element_wise(*known, pa.scalar(delimiter, pa.large_string()))
    whole = pc.binary_join_element_wise(lines, ends, pa.scalar("", pa.large_string()))
    _, offsets, text = whole.buffers()
    first, last = np.frombuffer(offsets, np.int64)[[whole.offset, whole.offset + len(whole)]]
    return bytes(memoryview(text)[first:last])


def text_of(series: pd.Series) -> pa.LargeStringArray | None:
    """A column as Arrow's text, null where empty; None where it has anything but text."""
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
    made = pa.array(series, from_pandas=True)
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _numbers(numbers: pa.DoubleArray) -> pa.LargeStringArray:
    text = numbers.cast(pa.large_string())
    values = numbers.to_numpy(zero_copy_only=False)
    size = np.abs(values)
    plain = (size >= _PLAIN[0]) & (size < _PLAIN[1]) & (size != np.floor(size))
    if not plain.all():
        empty = np.isnan(values)
        own = [repr(v) for v in values[~plain & ~empty].tolist()]
        text = pc.replace_with_mask(
            text, pa.array(~plain & ~empty), pa.array(own, pa.large_string())
        )
        text = pc.if_else(pa.array(empty), pa.scalar("", pa.large_string()), text)
    return text


def _quoted(text: pa.LargeStringArray, delimiter: str) -> pa.LargeStringArray:
    """Quotes around what holds a delimiter, a quote or a line break."""
    special = pc.match_substring_regex(text, f'["\r\n{re.escape(delimiter)}]')
    if not pc.any(special).as_py():
        return text
    quote, nothing = (pa.scalar(mark, pa.large_string()) for mark in ('"', ""))
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise(quote, doubled, quote, nothing), text)
