"""Text columns as inputs: each of few levels a column of 0 and 1, of two levels one for the second.

`sex` of female and male becomes `sex = male`. The levels are a part of how the table is read
(`Table.reading`), so that a fitted model takes later tables alike; a level that it has not learned
is 0 everywhere, and its row counts as outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from scant.tables.cells import Cells, from_series
from scant.tables.dates import are_dates

LEVELS = "levels"  # the word of `Table.reading`
UNSEEN = "unseen"  # in a frame's `attrs`: the places of rows with a level that was not learned
NOT_LEARNED = "was not learned"
TEXT = "it holds text; it was left out of the features"
MOST = 12  # levels; more are rather names
LEAST_ROWS = 3  # of each level
_IS = " = "
_HEAD = 1000  # rows

Levels = Mapping[str, Sequence[str]]


def levels_of(cells: Cells, gaps: bool) -> tuple[tuple[str, ...], str]:
    """The levels of a text column that can be inputs, or why it cannot.

    Args:
        cells: The column.
        gaps: Whether inputs may have empty cells.
    """
    if are_dates(cells):
        return (), "it holds dates and was left out of the features"
    if cells.levels > MOST:
        many = f"{cells.levels:,} different values, and at most {MOST} can be inputs"
        return (), f"{TEXT}, for it has {many}"
    count = pd.Series(cells.labels()).value_counts()
    if len(count) < 2:
        return (), TEXT
    if count.iloc[-1] < LEAST_ROWS:
        few = f"{str(count.index[-1])[:40]!r} is in fewer than {LEAST_ROWS} rows"
        return (), f"{TEXT}, for {few}"
    if cells.empty.any() and not gaps:
        return (), f"{TEXT}, for it has empty cells; fill them to learn from it"
    return tuple(sorted(map(str, count.index))), ""


def same(cells: Cells, other: Cells) -> bool:
    """Whether two columns say the same in other words, wherever both have a value."""
    both = pd.DataFrame({"own": cells.labels(), "other": other.labels()}).dropna()
    pairs = both[:_HEAD].drop_duplicates()  # mostly enough to tell that they do not
    if pairs.nunique().tolist() == [len(pairs)] * 2:
        pairs = both.drop_duplicates()
    return len(pairs) > 1 and pairs.nunique().tolist() == [len(pairs)] * 2


def names(column: str, levels: Sequence[str]) -> list[str]:
    """The inputs that a text column becomes."""
    return [f"{column}{_IS}{level}" for level in (levels[1:] if len(levels) == 2 else levels)]


def origin(name: str) -> str:
    """The text column that an input was made of; the input itself where it was made of none."""
    return name.partition(_IS)[0]


def is_made(name: str) -> bool:
    """Does an input's name say that it was made of a level?"""
    return _IS in name


def measured(names: Sequence[str]) -> list[str]:
    """The inputs that were numbers in the table: only they may be missing in a row of it."""
    return [name for name in names if not is_made(name)]


def encoded(
    columns: Mapping[str, Cells], levels: Levels
) -> tuple[dict[str, Cells], Bool[np.ndarray, " n"], dict[str, str]]:
    """Columns with those of levels in the place of text, and what was not learned.

    What is empty stays empty, in every column.

    Returns:
        The columns; the rows with a level that is none of `levels`; and of each text column that
        has such rows a sentence.
    """
    made: dict[str, Cells] = {}
    notes: dict[str, str] = {}
    unseen = np.zeros(max((len(c.values) for c in columns.values()), default=0), dtype=bool)
    for name, cells in columns.items():
        if name not in levels:
            made[name] = cells
            continue
        labels, known = pd.Series(cells.labels(), dtype=object), list(levels[name])
        other = ~cells.empty & ~labels.isin(known).to_numpy()
        if other.any():
            unseen |= other
            notes[name] = (
                f"{cells.shown(int(np.flatnonzero(other)[0]))!r} {NOT_LEARNED} (only "
                f"{', '.join(known)}); it counts as none of them, and its rows are flagged "
                "'outside'"
            )
        new = names(name, known)
        for column, level in zip(new, known[-len(new) :]):
            values = np.where(cells.empty, np.nan, (labels == level).to_numpy(dtype=float))
            bad = np.zeros(len(values), dtype=bool)
            made[column] = Cells(column, values, cells.empty, bad)
    return made, unseen, notes


def encoded_frame(table: pd.DataFrame, levels: Levels) -> pd.DataFrame:
    """A data frame with the columns of levels in the place of text; `attrs` as in `UNSEEN`."""
    there = {n: from_series(n, table[n]) for n in levels if n in table}
    if not there:
        return table
    made, unseen, _ = encoded(there, levels)
    own = pd.DataFrame({n: c.values for n, c in made.items()}, index=table.index)
    query = table.drop(columns=list(there)).join(own)
    query.attrs = {**table.attrs, UNSEEN: np.flatnonzero(unseen).tolist()}
    return query


def decoded(frame: pd.DataFrame, levels: Levels) -> pd.DataFrame:
    """A frame with the text again that its columns of levels were made of."""
    for column, known in levels.items():
        made = names(column, known)
        if not set(made) <= set(frame):
            continue
        values = frame[made].to_numpy(dtype=float)
        words = np.array([*known], dtype=object)
        which = values[:, 0].astype(bool) if len(known) == 2 else values.argmax(1)
        text = pd.Series(words[which.astype(int)], frame.index).where(~np.isnan(values[:, 0]))
        place = list(frame).index(made[0])
        frame = frame.drop(columns=made)
        frame.insert(place, column, text)
    return frame
