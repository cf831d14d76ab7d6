"""How the rows of a table are divided into rows to train on, to validate on and to test on.

One rule for all studies. Rows that a column `split` marks stay where they are marked. The others
are divided by shares, at random by the seed; where the table has a column `group`, or the setting
`split_by` names columns, in whole groups, so that what belongs together in time or space is on one
side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import param
from jaxtyping import Bool, Int

from scant.errors import BadInput
from scant.studies.base import Settings
from scant.tables.column_matching import listed
from scant.tables.schema import Column

TRAIN, VALIDATION, TEST = "train", "validation", "test"
ROLES = (TRAIN, VALIDATION, TEST)
UNUSED = ""  # a row without a target
BLOCKS = 25  # into which numbers are cut, such as a time; of two columns 5 x 5
EVERYTHING = "everything"  # what `refit` is of a fit that holds no row out

SPLIT = Column(
    "split",
    "label",
    required=False,
    missing=True,
    levels=ROLES,
    synonyms=(
        ("training", TRAIN),
        ("valid", VALIDATION),
        ("val", VALIDATION),
        ("dev", VALIDATION),
        ("testing", TEST),
        ("held out", TEST),
    ),
    doc="'test' keeps a row out of training, to be predicted and scored; 'validation': to choose "
    "parameters by; empty: 'train'",
)
GROUP = Column(
    "group",
    "label",
    required=False,
    missing=True,
    doc="rows that are held out together: a site, a patient, a day",
)
COLUMNS = (SPLIT, GROUP)

Rows = Int[np.ndarray, " _"]


class SplitSettings(Settings):
    """Settings of a study that holds rows out to score itself."""

    # Predictions would lack the rows that are held out.
    for_predictions: ClassVar[Mapping[str, Any]] = {"refit": EVERYTHING}

    time_budget = param.Number(
        60.0,
        bounds=(1.0, 1e6),
        label="Time budget (s)",
        doc="Seconds that a fit may take, including its report, the comparison with other methods "
        "and a fit on everything; at most twice as many on a slow or busy machine. Settings on "
        "auto are chosen to fit into this time. With a number in max_steps, a fit may take longer.",
    )
    split_by = param.String(
        "",
        doc="Columns, separated by commas. Rows that agree in these are held out together: a "
        "group, a time, coordinates (numbers are cut into blocks). Empty: the column 'group', if "
        "there is one.",
    )
    refit = param.Selector(
        objects=["no", EVERYTHING],
        label="Fit on everything",
        doc="everything: after the report, fit again on all rows, including the held-out ones; "
        "predictions come from this fit, scores from the split. `scant fit --predict` does so.",
    )


class Parts(NamedTuple):
    """Rows of a table by what they are for, each in random order."""

    train: Rows
    validation: Rows
    test: Rows


class SplitCounts(NamedTuple):
    """How many rows there are of each."""

    train: int
    validation: int
    test: int
    rows: int  # of the table

    def __str__(self) -> str:
        rest = self.rows - self.train - self.validation - self.test
        return (
            f"{self.train:,} rows to train on"
            + (f", {self.validation:,} to validate" if self.validation else "")
            + f", {self.test:,} to test, of {self.rows:,}"
            + (f"; {rest:,} {'is' if rest == 1 else 'are'} not used" if rest > 0 else "")
            + "."
        )


def counts_of(metadata: Mapping[str, Any], rows: int) -> SplitCounts | None:
    """The counts in a study's metadata; None where a study divides nothing."""
    parts = metadata.get("rows")
    if not isinstance(parts, Mapping) or "training" not in parts:
        return None
    train, validation, test = (int(parts.get(n, 0)) for n in ("training", VALIDATION, TEST))
    return SplitCounts(train, validation, test, rows)


def planned(
    settings: Any, rows: int, counts: Mapping[str, Mapping[str, int]], validation: float = 0.0
) -> SplitCounts:
    """The counts to expect of a table, before it is fitted.

    Args:
        settings: With a `test_share`.
        rows: Of the table.
        counts: As `scant.tables.schema.counts` gives them.
        validation: Share of the rows, where the study needs some.
    """
    marked = counts.get(SPLIT.name, {})
    test = marked.get(TEST) or round(settings.test_share * rows)
    spared = marked.get(VALIDATION) or round(validation * rows)
    return SplitCounts(rows - test - spared, spared, test, rows)


def marks(frame: pd.DataFrame) -> np.ndarray:
    """What each row is marked for; `TRAIN` where nothing is said."""
    if SPLIT.name not in frame:
        return np.full(len(frame), TRAIN, dtype=object)
    return frame[SPLIT.name].where(frame[SPLIT.name].isin(ROLES), TRAIN).to_numpy(dtype=object)


def groups(frame: pd.DataFrame, by: str) -> Int[np.ndarray, " n"] | None:
    """The group of each row, by its number; None where rows are divided one by one.

    Args:
        frame: The table.
        by: The setting `split_by`.

    Raises:
        BadInput: A column that the table has not.
    """
    names = [name.strip() for name in by.split(",") if name.strip()]
    if not names:
        names = [GROUP.name] if GROUP.name in frame else []
    own = [n if n in frame else f"{n}_lo" for n in names]  # a box lies where it begins
    for name, column in zip(names, own):
        if column not in frame:
            raise BadInput(
                f"Setting 'split_by' names {name!r}, but the table has no such column; choose "
                f"among {listed([str(c) for c in frame])}."
            )
    if not own:
        return None
    each = max(2, round(BLOCKS ** (1 / len(own))))
    codes = np.column_stack([_codes(frame[column], each) for column in own])
    number = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    return number if number.max(initial=0) > 0 else None


def evenly_spaced(rows: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of these rows, evenly spaced."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def with_groups(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """The table with the groups of the setting `split_by`, if it is set, as its column `group`."""
    group = groups(frame, by) if by else None
    return frame if group is None else frame.assign(group=group.astype(str))


def divide(
    n: int,
    seed: int,
    *,
    test: int,
    validation: int | Callable[[int], int] = 0,
    marked: np.ndarray | None = None,
    group: Int[np.ndarray, " n"] | None = None,
    learnable: Bool[np.ndarray, " n"] | None = None,
    everything: bool = False,
) -> Parts:
    """Which rows are for what.

    Args:
        n: Rows.
        seed: Of the draw.
        test: Rows to hold out, where none are marked.
        validation: Rows to choose parameters by, where none are marked; of the number that is left.
        marked: As `marks` gives it.
        group: As `groups` gives it.
        learnable: Rows that can be learned from; others can only be tested on.
        everything: Learn from the test rows as well.
    """
    order = np.random.default_rng(seed).permutation(n)
    role = np.full(n, TRAIN, dtype=object) if marked is None else marked.copy()
    can = np.ones(n, dtype=bool) if learnable is None else learnable
    if not (role == TEST).any():
        role[_drawn(order[(role == TRAIN)[order]], test, group, seed)] = TEST
    if not (role == VALIDATION).any():
        free = order[((role == TRAIN) & can)[order]]
        wanted = validation(len(free)) if callable(validation) else validation
        role[_drawn(free, wanted, group, seed)] = VALIDATION
    train = role != VALIDATION if everything else role == TRAIN
    parts = (can & train & (role != UNUSED), can & (role == VALIDATION), role == TEST)
    return Parts(*(order[mine[order]] for mine in parts))


def _drawn(free: Rows, wanted: int, group: Int[np.ndarray, " n"] | None, seed: int) -> Rows:
    """About so many of these rows: the first ones, or those of whole groups."""
    if group is None or wanted <= 0:
        return free[: max(wanted, 0)]
    number = pd.factorize(group[free])[0]
    size = np.bincount(number)
    order = np.random.default_rng(seed).permutation(len(size))
    count = int(np.abs(np.cumsum(size[order]) - wanted).argmin()) + 1
    return free[np.isin(number, order[: min(count, len(size) - 1)])]


def _codes(column: pd.Series, blocks: int) -> Int[np.ndarray, " n"]:
    """A number for each word; of numbers, for each of so many blocks that follow one another."""
    if not pd.api.types.is_numeric_dtype(column):
        return pd.factorize(column.astype(str))[0]
    rank = column.rank(method="min", na_option="bottom").to_numpy()
    return np.asarray((rank - 1) * blocks // max(len(column), 1), dtype=np.int64)
