"""Dates and times of day as numbers: days since 1970-01-01, and hours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from scant.tables.cells import Cells

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = (
    r"(?i)^(?:\d{4}(?:[-/.]\d{1,2}){1,2}|\d{1,2}-\d{1,2}-\d{2,4}|\d{1,2}/\d{1,2}/\d{2,4}"
    rf"|\d{{1,2}}\.\d{{1,2}}\.\d{{2,4}}|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}"
    rf"|{_MONTH}-\d{{1,2}}-\d{{4}}|{_MONTH} (?:\d{{1,2}},? )?\d{{4}})(?:[T ,].*)?$"
)
_CLOCK = r"^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
_MIN_SHARE = 0.9  # of the filled cells


def are_dates(cells: Cells) -> bool:
    """Return True if a column holds dates or times of day."""
    return _pattern(cells) != ""


def as_numbers(cells: Cells) -> tuple[Cells, str]:
    """Convert dates to days since 1970-01-01, or times of day to hours, and return a note.

    The order of day and month is determined by the whole column; if it is ambiguous, 5/6/2024 is
    May 6th and 5.6.2024 is June 5th.
    """
    assert cells.text is not None
    clock = _pattern(cells) == _CLOCK
    encoded = cells.text.dictionary_encode()
    texts = pd.Series(encoded.dictionary.to_pylist(), dtype=object)
    if clock:
        with_seconds = texts.where(texts.str.count(":") != 1, texts + ":00")
        numbers = (
            pd.to_timedelta(with_seconds, errors="coerce").dt.total_seconds().to_numpy() / 3600
        )
        note = "its times were read as hours"
    else:
        day_first = _day_first(texts)
        dates = texts.where(texts.str.contains(_DAY, regex=True))
        moments = pd.to_datetime(
            dates, format="mixed", dayfirst=day_first, errors="coerce", utc=True
        )
        days = (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        numbers = np.asarray(days, dtype=np.float64)
        note = "its dates were read as days since 1970-01-01"
    values = np.asarray(numbers, dtype=np.float64)[encoded.indices.to_numpy()]
    values = np.where(cells.empty, np.nan, values)
    bad = ~cells.empty & np.isnan(values)
    return Cells(cells.name, values, cells.empty, bad, cells.text), note


def _pattern(cells: Cells) -> str:
    """Pattern (dates or times) that matches almost all cells; "" if neither does."""
    if cells.text is None or not cells.is_text:
        return ""
    given: pa.StringArray = cells.text.filter(pa.array(~cells.empty))
    for pattern in (_DAY, _CLOCK):
        head = pc.match_substring_regex(given[:20], pattern)
        if pc.mean(head).as_py() >= _MIN_SHARE / 2:
            share = pc.mean(pc.match_substring_regex(given, pattern)).as_py()
            return pattern if share >= _MIN_SHARE else ""
    return ""


def _day_first(texts: pd.Series) -> bool:
    parts = texts.str.extract(r"^(\d{1,2})([-/.])(\d{1,2})[-/.]\d{2,4}")
    first, second = (pd.to_numeric(parts[i], errors="coerce").max() for i in (0, 2))
    if first > 12 or second > 12:
        return bool(first > 12)
    return bool((parts[1] == ".").any())
