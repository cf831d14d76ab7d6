"""One-hot encoding of text columns with few levels; two levels give one column for the second.

`sex` with female and male becomes `sex = male`. The levels are part of `Table.reading`, so that a
fitted model encodes later tables in the same way. New levels are encoded as zeros, and their rows
are flagged as outside.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from scant.tables.cells import Cells, from_series
from scant.tables.dates import are_dates

LEVELS = "levels"  # key of `Table.reading`
UNSEEN = "unseen"  # key in a frame's `attrs`: positions of rows with new levels
NOT_LEARNED = "was not learned"
TEXT = "it holds text; it was left out of the features"
MAX_LEVELS = 12  # more are probably names
MIN_ROWS = 3  # of each level
_IS = " = "
_HEAD = 1000  # rows compared first

Levels = Mapping[str, Sequence[str]]


def levels_of(cells: Cells, gaps: bool) -> tuple[tuple[str, ...], str]:
    """Levels of a text column that can be an input, or a sentence why it cannot.

    Args:
        cells: The column.
        gaps: True if inputs may have empty cells.
    """
    if are_dates(cells):
        return (), "it holds dates and was left out of the features"
    if cells.levels > MAX_LEVELS:
        excess = f"{cells.levels:,} different values, and at most {MAX_LEVELS} can be inputs"
        return (), f"{TEXT}, because it has {excess}"
    count = pd.Series(cells.labels()).value_counts()
    if len(count) < 2:
        return (), TEXT
    if count.iloc[-1] < MIN_ROWS:
        reason = f"{str(count.index[-1])[:40]!r} is in fewer than {MIN_ROWS} rows"
        return (), f"{TEXT}, because {reason}"
    if cells.empty.any() and not gaps:
        return (), f"{TEXT}, because it has empty cells; fill them to learn from it"
    return tuple(sorted(map(str, count.index))), ""


def same(cells: Cells, other: Cells) -> bool:
    """Return True if two columns are equal up to renaming, where both have a value."""
    both = pd.DataFrame({"own": cells.labels(), "other": other.labels()}).dropna()
    pairs = both[:_HEAD].drop_duplicates()  # usually enough to find a difference
    if pairs.nunique().tolist() == [len(pairs)] * 2:
        pairs = both.drop_duplicates()
    return len(pairs) > 1 and pairs.nunique().tolist() == [len(pairs)] * 2


def names(column: str, levels: Sequence[str]) -> list[str]:
    """Names of the inputs that encode a text column."""
    return [f"{column}{_IS}{level}" for level in (levels[1:] if len(levels) == 2 else levels)]


def origin(name: str) -> str:
    """Text column that an input encodes; other inputs are returned unchanged."""
    return name.partition(_IS)[0]


def is_made(name: str) -> bool:
    """Return True if an input encodes a level."""
    return _IS in name


def measured(names: Sequence[str]) -> list[str]:
    """Inputs that are numeric columns of the table."""
    return [name for name in names if not is_made(name)]


def encoded(
    columns: Mapping[str, Cells], levels: Levels
) -> tuple[dict[str, Cells], Bool[np.ndarray, " n"], dict[str, str]]:
    """Encode text columns; empty cells are empty in every column.

    Returns:
        The columns, a mask of rows with levels not in `levels`, and a sentence for each text
        column with such rows.
    """
    result: dict[str, Cells] = {}
    notes: dict[str, str] = {}
    unseen = np.zeros(max((len(c.values) for c in columns.values()), default=0), dtype=bool)
    for name, cells in columns.items():
        if name not in levels:
            result[name] = cells
            continue
        labels, known_levels = pd.Series(cells.labels(), dtype=object), list(levels[name])
        other = ~cells.empty & ~labels.isin(known_levels).to_numpy()
        if other.any():
            unseen |= other
            notes[name] = (
                f"{cells.shown(int(np.flatnonzero(other)[0]))!r} {NOT_LEARNED} (only "
                f"{', '.join(known_levels)}); it counts as none of these, and its rows are flagged "
                "'outside'"
            )
        new = names(name, known_levels)
        for column, level in zip(new, known_levels[-len(new) :]):
            values = np.where(cells.empty, np.nan, (labels == level).to_numpy(dtype=float))
            bad = np.zeros(len(values), dtype=bool)
            result[column] = Cells(column, values, cells.empty, bad)
    return result, unseen, notes


def encoded_frame(table: pd.DataFrame, levels: Levels) -> pd.DataFrame:
    """Encode the text columns of a data frame; `attrs[UNSEEN]` lists rows with new levels."""
    text_columns = {n: from_series(n, table[n]) for n in levels if n in table}
    if not text_columns:
        return table
    made, unseen, _ = encoded(text_columns, levels)
    encoded_columns = pd.DataFrame({n: c.values for n, c in made.items()}, index=table.index)
    query = table.drop(columns=list(text_columns)).join(encoded_columns)
    query.attrs = {**table.attrs, UNSEEN: np.flatnonzero(unseen).tolist()}
    return query


def decoded(frame: pd.DataFrame, levels: Levels) -> pd.DataFrame:
    """Replace the encoded columns of a frame by the original text."""
    texts: dict[str, pd.Series] = {}
    places: dict[Hashable, str] = {}  # original column in place of its first encoded one
    encoded_names: set[str] = set()
    for column, column_levels in levels.items():
        made = names(column, column_levels)
        if not set(made) <= set(frame):
            continue
        values = frame[made].to_numpy(dtype=float)
        words = np.array([*column_levels], dtype=object)
        index = values[:, 0].astype(bool) if len(column_levels) == 2 else values.argmax(1)
        text = pd.Series(words[index.astype(int)], frame.index)
        texts[column] = text.where(~np.isnan(values[:, 0]))
        places[made[0]] = column
        encoded_names.update(made)
    if not texts:
        return frame
    order = [places.get(n, n) for n in frame if n in places or n not in encoded_names]
    # All columns at once: pandas fragments a frame by single ones.
    result = pd.concat([frame.drop(columns=list(encoded_names)), pd.DataFrame(texts)], axis=1)
    result = result[order]
    result.attrs = frame.attrs
    return result
