"""The cells of a column: which are numbers, which are empty, which are neither."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

_EMPTY = pa.array(["", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "?"])
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_DECIMAL = r"^[+-]?\d+,\d+([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"
# Which of the two a comma must be, where it can only be one.
_ONLY_DECIMAL = r"^[+-]?(\d+,(\d{1,2}|\d{4,})|0\d*,\d+|\d{4,},\d+|\d+,\d+[eE][+-]?\d+)$"
_ONLY_THOUSANDS = r"^[+-]?\d{1,3}((,\d{3}){2,}(\.\d+)?|(,\d{3})+\.\d+)$"
_PIECE = 1 << 17  # cells that are made numbers at once


@dataclass(frozen=True)
class Cells:
    """One column, read both as text and as numbers.

    Attributes:
        name: Its header.
        values: float64, NaN where empty or not a finite number.
        empty: Cells without a value.
        bad: Cells that hold something else than a finite number.
        text: The cells as they stood in the file; None where they were numbers from the start.
    """

    name: str
    values: Float[np.ndarray, " n"]
    empty: Bool[np.ndarray, " n"]
    bad: Bool[np.ndarray, " n"]
    text: pa.StringArray | None = None

    def shown(self, i: int) -> str:
        """Cell i for a message, cut to 40 characters."""
        word = f"{self.values[i]:g}" if self.text is None else str(self.text[i])
        return word if len(word) <= 40 else word[:37] + "..."

    @property
    def is_text(self) -> bool:
        """Is (almost) nothing in it a number? A few bad cells in a column of numbers are errors."""
        filled = len(self.values) - int(self.empty.sum())
        return filled > 0 and (filled - int(self.bad.sum())) < 0.1 * filled

    @property
    def levels(self) -> int:
        """How many different words it holds; 0 where it holds numbers, or nothing."""
        if self.text is None or not self.is_text:
            return 0
        return int(pc.count_distinct(self.text.filter(pa.array(~self.empty))).as_py())

    def void(self) -> str:
        """The first word that stands for an empty cell, such as "none"; "" where there is none."""
        if self.text is None:
            return ""
        cells = pc.utf8_trim_whitespace(self.text).to_numpy(zero_copy_only=False)[self.empty]
        return next((str(word) for word in cells if word), "")

    def labels(self) -> np.ndarray:
        """Cells as text, None where empty; whole numbers without a decimal point."""
        if self.text is None:
            labels = np.array([f"{v:.15g}" for v in self.values], dtype=object)
        else:
            levels = self.text.dictionary_encode()  # so that each word is there once
            known = np.array([*levels.dictionary.to_pylist(), None], dtype=object)[:-1]
            labels = known[levels.indices.to_numpy()]
        labels[self.empty] = None
        return labels


def from_text(name: str, text: pa.StringArray, commas: str = "") -> Cells:
    """A column of a file.

    Args:
        name: Its header.
        text: Its cells, blanks trimmed.
        commas: What a comma inside a number is: "decimal", "thousands" or "" (not allowed).
    """
    n = len(text)
    values, empty, bad = np.empty(n), np.empty(n, dtype=bool), np.empty(n, dtype=bool)
    for start in range(0, n, _PIECE):  # each step copies the text: piece by piece that is little
        here = slice(start, start + _PIECE)
        values[here], empty[here], bad[here] = _numbers(text[here], commas)
    return Cells(name, values, empty, bad, text)


def _numbers(text: pa.StringArray, commas: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of some cells, and which of them are empty or no finite numbers."""
    empty = pc.is_in(pc.utf8_lower(text), value_set=_EMPTY)
    plain = pc.replace_substring(text, "−", "-")  # the typographic minus of some spreadsheets
    if commas == "decimal":
        plain = _where(plain, _DECIMAL, pc.replace_substring(plain, ",", "."))
    elif commas == "thousands":
        plain = _where(plain, _THOUSANDS, pc.replace_substring(plain, ",", ""))
    good = pc.match_substring_regex(plain, _NUMBER)
    digits = pc.if_else(good, pc.replace_substring_regex(plain, r"^\+", ""), None)
    values = np.array(pc.cast(digits, pa.float64()).to_numpy(zero_copy_only=False))
    blank = np.asarray(empty, dtype=bool)
    bad = ~blank & ~np.isfinite(values)
    values[~np.isfinite(values)] = np.nan
    return values, blank, bad


def from_series(name: str, series: pd.Series) -> Cells:
    """A column of a data frame."""
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        empty, bad = np.isnan(values), np.isinf(values)
        values[bad] = np.nan
        text = None
        if bad.any():
            text = pa.array([str(v) for v in series], pa.string())
        return Cells(name, values, empty, bad, text)
    labels = ["" if missing else str(v) for v, missing in zip(series, series.isna())]
    return from_text(name, pc.utf8_trim_whitespace(pa.array(labels, pa.string())))


def comma_style(columns: Iterable[pa.StringArray], delimiter: str) -> tuple[str, str]:
    """What commas inside numbers mean in a file, and a note; "unclear" where nothing tells."""
    decimal = thousands = either = False
    for text in columns:
        if not pc.any(pc.match_substring(text, ",")).as_py():
            continue
        decimal |= _any(text, _ONLY_DECIMAL)
        thousands |= _any(text, _ONLY_THOUSANDS)
        either |= _any(text, _DECIMAL) or _any(text, _THOUSANDS)
    if not either:
        return "", ""
    if decimal and thousands:
        return "unclear", ""
    if decimal or (delimiter != "," and not thousands):
        return "decimal", "Commas inside numbers were read as decimal points."
    if thousands:
        return "thousands", "Commas inside numbers were read as thousands separators."
    return "unclear", ""


def comma_cell(text: pa.StringArray) -> int | None:
    """The first cell that is a number with commas inside."""
    result = pc.match_substring_regex(text, f"{_DECIMAL}|{_THOUSANDS}")
    first = pc.index(result, True).as_py()
    return None if first < 0 else int(first)


def _any(text: pa.StringArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def _where(text: pa.StringArray, pattern: str, other: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.match_substring_regex(text, pattern), other, text)
