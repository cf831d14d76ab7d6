"""The cells of a column: which are numbers, which are empty, which are neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from scant.tables.number_style import POINTS, NumberStyle

# Words for "not measured": of people, of statistical packages and offices, of spreadsheets.
_PLAIN = ("", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "?")
_ODD: tuple[str, ...] = (".", "..", "*", "**", "n.a.", "<na>", "(x)", "(d)", "(s)", "(z)", "(na)")
_ODD += ("#div/0!", "#value!", "#ref!", "#num!", "#name?")
EMPTY = pa.array([*_PLAIN, *_ODD])
_BLANK = pa.array([*EMPTY.to_pylist(), "NA", "N/A", "NaN", "NULL", "None"])  # the usual cases
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_EXACT = 1e15  # larger whole numbers lose digits where they are made floats, and shown
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
        if self.text is not None:
            word = str(self.text[i])
        else:
            value = self.values[i]  # whole numbers, such as ids, with all digits
            word = f"{value:.15g}" if value.is_integer() and abs(value) <= _EXACT else f"{value:g}"
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

    def odd_words(self) -> set[str]:
        """The words that stand for empty cells without being known to everybody: ".", "(X)"."""
        if self.text is None or not self.empty.any():
            return set()
        words = {str(w) for w in pc.unique(self.text.filter(pa.array(self.empty))).to_pylist()}
        return {w for w in words if w.strip().lower() not in _PLAIN}

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


def from_text(name: str, text: pa.StringArray, style: NumberStyle = POINTS) -> Cells:
    """A column of a file.

    Args:
        name: Its header.
        text: Its cells, blanks trimmed.
        style: What stands between the digits of numbers.
    """
    return from_texts({name: text}, style)[name]


def from_texts(
    texts: Mapping[str, pa.StringArray], style: NumberStyle = POINTS
) -> dict[str, Cells]:
    """The columns of a file, all of one length; see `from_text`."""
    made: dict[str, Cells] = {}
    names = list(texts)
    n = len(texts[names[0]]) if names else 0
    many = max(1, _PIECE // max(n, 1))
    for first in range(0, len(names), many):  # many short columns at once
        group = names[first : first + many]
        text = pa.concat_arrays([texts[name] for name in group]) if many > 1 else texts[group[0]]
        size = len(text)
        values, empty, bad = np.empty(size), np.empty(size, dtype=bool), np.empty(size, dtype=bool)
        for start in range(0, size, _PIECE):  # each step copies the text: little, piece by piece
            here = slice(start, start + _PIECE)
            values[here], empty[here], bad[here] = _numbers(text[here], style)
        for i, name in enumerate(group):
            own = slice(i * n, (i + 1) * n)
            made[name] = Cells(name, values[own], empty[own], bad[own], texts[name])
    return made


def _numbers(text: pa.StringArray, style: NumberStyle) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of some cells, and which of them are empty or no finite numbers."""
    known = _plain_numbers(text) if style.thousands != "." else None
    if known is not None:
        return known
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
    """As `_numbers`, of cells that all are empty or finite numbers with a point; else None.

    Arrow's parser takes a third of the time of the patterns, and knows no other numbers.
    """
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
    """A column of a data frame."""
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
