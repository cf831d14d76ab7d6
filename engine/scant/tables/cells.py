"""Columns as cells: numbers, empty cells, and cells that are neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from scant.tables.number_style import POINTS, NumberStyle

# Words for missing values: common ones, and those of statistical software and spreadsheets.
_PLAIN = ("", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "?")
_ODD: tuple[str, ...] = (".", "..", "*", "**", "n.a.", "<na>", "(x)", "(d)", "(s)", "(z)", "(na)")
_ODD += ("#div/0!", "#value!", "#ref!", "#num!", "#name?")
EMPTY = pa.array([*_PLAIN, *_ODD])
_BLANK = pa.array([*EMPTY.to_pylist(), "NA", "N/A", "NaN", "NULL", "None"])  # the usual cases
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_EXACT = 1e15  # larger integers lose digits as floats
_BLOCK = 1 << 17  # cells converted per block


@dataclass(frozen=True)
class Cells:
    """One column, read both as text and as numbers.

    Attributes:
        name: Header of the column.
        values: float64 values, NaN where empty or not a finite number.
        empty: True for cells without a value.
        bad: True for cells that are neither empty nor a finite number.
        text: Original text of the cells; None for numeric sources.
    """

    name: str
    values: Float[np.ndarray, " n"]
    empty: Bool[np.ndarray, " n"]
    bad: Bool[np.ndarray, " n"]
    text: pa.StringArray | None = None

    def shown(self, i: int) -> str:
        """Text of cell i for a message, cut to 40 characters."""
        if self.text is not None:
            text = str(self.text[i])
        else:
            value = self.values[i]  # integers, such as ids, with all digits
            text = f"{value:.15g}" if value.is_integer() and abs(value) <= _EXACT else f"{value:g}"
        return text if len(text) <= 40 else text[:37] + "..."

    @property
    def is_text(self) -> bool:
        """True if fewer than a tenth of the filled cells are numbers."""
        filled = len(self.values) - int(self.empty.sum())
        return filled > 0 and (filled - int(self.bad.sum())) < 0.1 * filled

    @property
    def levels(self) -> int:
        """Number of distinct texts; 0 for numeric or empty columns."""
        if self.text is None or not self.is_text:
            return 0
        return int(pc.count_distinct(self.text.filter(pa.array(~self.empty))).as_py())

    def emptied(self, at: Bool[np.ndarray, " n"]) -> Cells:
        """Return a copy without the cells at which `at` is True."""
        values = np.where(at, np.nan, self.values)
        return replace(self, values=values, empty=self.empty | at, bad=self.bad & ~at)

    def void(self) -> str:
        """First nonblank word of an empty cell, such as "none"; "" if there is none."""
        if self.text is None:
            return ""
        cells = pc.utf8_trim_whitespace(self.text).to_numpy(zero_copy_only=False)[self.empty]
        return next((str(word) for word in cells if word), "")

    def odd_words(self) -> set[str]:
        """Unusual words of empty cells, such as "." and "(X)"."""
        if self.text is None or not self.empty.any():
            return set()
        distinct = {str(w) for w in pc.unique(self.text.filter(pa.array(self.empty))).to_pylist()}
        return {w for w in distinct if w.strip().lower() not in _PLAIN}

    def labels(self) -> np.ndarray:
        """Cells as text, None where empty; integers without a decimal point."""
        if self.text is None:
            labels = np.array([f"{v:.15g}" for v in self.values], dtype=object)
        else:
            encoded = self.text.dictionary_encode()  # stores each distinct text once
            texts = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)[:-1]
            labels = texts[encoded.indices.to_numpy()]
        labels[self.empty] = None
        return labels


def from_text(name: str, text: pa.StringArray, style: NumberStyle = POINTS) -> Cells:
    """Read a column of text.

    Args:
        name: Header of the column.
        text: Cells, with blanks trimmed.
        style: Decimal and thousands separators.
    """
    return from_texts({name: text}, style)[name]


def from_texts(
    texts: Mapping[str, pa.StringArray], style: NumberStyle = POINTS
) -> dict[str, Cells]:
    """Read columns of equal length; see `from_text`."""
    made: dict[str, Cells] = {}
    names = list(texts)
    n = len(texts[names[0]]) if names else 0
    group_size = max(1, _BLOCK // max(n, 1))
    for first in range(0, len(names), group_size):  # several short columns at once
        group = names[first : first + group_size]
        text = (
            pa.concat_arrays([texts[name] for name in group]) if group_size > 1 else texts[group[0]]
        )
        size = len(text)
        values, empty, bad = np.empty(size), np.empty(size, dtype=bool), np.empty(size, dtype=bool)
        for start in range(0, size, _BLOCK):  # each step copies the text of one block
            block = slice(start, start + _BLOCK)
            values[block], empty[block], bad[block] = _numbers(text[block], style)
        for i, name in enumerate(group):
            rows = slice(i * n, (i + 1) * n)
            made[name] = Cells(name, values[rows], empty[rows], bad[rows], texts[name])
    return made


def _numbers(text: pa.StringArray, style: NumberStyle) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, and masks of empty and invalid cells."""
    result = _plain_numbers(text) if style.thousands != "." else None
    if result is not None:
        return result
    empty = pc.is_in(pc.utf8_lower(text), value_set=EMPTY)
    plain = style.plain(text)
    good = pc.match_substring_regex(plain, NUMBER)
    digits = pc.if_else(good, pc.replace_substring_regex(plain, r"^\+", ""), None)
    values = np.array(pc.cast(digits, pa.float64()).to_numpy(zero_copy_only=False))
    blank = np.asarray(empty, dtype=bool)
    bad = ~blank & ~np.isfinite(values)
    values[~np.isfinite(values)] = np.nan
    return values, blank, bad


def _plain_numbers(text: pa.StringArray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """`_numbers` by Arrow's parser, in a third of the time; None if any cell has another format."""
    blank = pc.is_in(text, value_set=_BLANK)
    try:
        numbers = pc.cast(pc.if_else(blank, None, text), pa.float64())
    except pa.ArrowInvalid:
        return None
    values, empty = numbers.to_numpy(zero_copy_only=False), np.asarray(blank, dtype=bool)
    if not (np.isfinite(values) | empty).all():
        return None
    return values, empty, np.zeros(len(empty), dtype=bool)


def from_series(name: str, series: pd.Series) -> Cells:
    """Read a column of a data frame."""
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        empty, bad = np.isnan(values), np.isinf(values)
        values[bad] = np.nan
        whole = pd.api.types.is_integer_dtype(series.dtype)
        text = None
        if bad.any() or (whole and np.nanmax(np.abs(values), initial=0) > _EXACT):  # as ids have
            text = pa.array(["" if pd.isna(v) else str(v) for v in series], pa.string())
        return Cells(name, values, empty, bad, text)
    labels = ["" if missing else str(v) for v, missing in zip(series, series.isna())]
    return from_text(name, pc.utf8_trim_whitespace(pa.array(labels, pa.string())))
