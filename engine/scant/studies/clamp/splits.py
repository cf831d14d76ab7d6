"""Rows of a labeling session: pool, validation and test.

Each row has principal components of its features over the whole pool (Yousefi 2021, section 4.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.metrics import precision_recall_fscore_support

from scant.errors import BadInput
from scant.studies.auto import AUTO, Choice, Choices
from scant.studies.clamp.capacity import expert_for
from scant.studies.clamp.components import Scaling, inputs_of
from scant.studies.clamp.settings import (
    BY_PICTURE,
    FEATURES,
    ROLES,
    VALIDATION_F1,
    ClampSettings,
)
from scant.studies.clamp.table import UNKNOWN, PatchPool, class_counts
from scant.studies.split import TEST as HELD_OUT
from scant.studies.split import TRAIN
from scant.studies.split import VALIDATION as VALIDATED
from scant.tables.images.kinds import GAIN, HANDMADE

MAY_BE_ASKED, VALIDATION, TEST = range(len(ROLES))
BEST = "ahead of the others on trenches"
ENOUGH = 40  # labeled rows; with more, some are held out while a person labels the others


@dataclass(frozen=True)
class Rows:
    """The rows of a session.

    Attributes:
        pool: The table without rows that `imbalance` drops.
        row: Row of the table.
        role: Index into `ROLES`.
        given: "columns", or the kind of features of the images.
        scaling: Standardization and components of the features.
        x: Components.
    """

    pool: PatchPool
    row: Int[np.ndarray, " n"]
    role: Int[np.ndarray, " n"]
    given: str
    scaling: Scaling
    x: Float[np.ndarray, "n q"]

    @property
    def askable(self) -> Int[np.ndarray, " a"]:
        """Rows that can be queried."""
        return np.flatnonzero(self.role == MAY_BE_ASKED)

    @property
    def answerable(self) -> Int[np.ndarray, " a"]:
        """Rows that can be queried and have a label in the table."""
        return np.flatnonzero((self.role == MAY_BE_ASKED) & (self.pool.label != UNKNOWN))

    @property
    def scored(self) -> Int[np.ndarray, " t"]:
        """Rows that are scored: test, or validation where there is no test."""
        test = np.flatnonzero(self.role == TEST)
        return test if len(test) else np.flatnonzero(self.role == VALIDATION)

    @property
    def validation(self) -> Int[np.ndarray, " v"]:
        """Validation rows."""
        return np.flatnonzero(self.role == VALIDATION)

    @property
    def sought(self) -> int:
        """Number of the class of interest."""
        return len(self.pool.classes) - 1


def settled(settings: ClampSettings, pool: PatchPool) -> tuple[ClampSettings, Choices]:
    """Replace `auto` by an expert and an acquisition; return settings and reasons."""
    chosen: dict[str, Choice] = {}
    if settings.expert == AUTO:
        rows = {name: int((pool.label == c).sum()) for c, name in enumerate(pool.classes)}
        chosen["expert"] = expert_for(rows, len(pool))
    if settings.acquisition == AUTO:
        chosen["acquisition"] = Choice(settings.method, BEST)
    values = settings.values() | {name: choice.value for name, choice in chosen.items()}
    return type(settings)(**values), chosen


def check(settings: ClampSettings, table: pd.DataFrame, name: str) -> None:
    """Reject a table that these settings cannot learn (`Entry.check`)."""
    rows = class_counts(table, settings.positive_class, settings.names_of_classes(), name)
    expert = expert_for(rows, len(table)).value if settings.expert == AUTO else settings.expert
    if expert == "simulated":
        _check_answers(rows, name)


def _check_answers(rows: Mapping[str, int], name: str) -> None:
    """Reject labels of fewer than two classes, which a simulated expert cannot use."""
    labeled = [label for label, count in rows.items() if count]
    if len(labeled) < 2:
        has = f"only labels {labeled[0]!r}" if labeled else "no labels"
        raise BadInput(
            f"{name} has {has}, but a simulated expert needs labels of two classes to answer; give "
            "labels of both classes, or set 'expert' to you."
        )


def prepare(settings: ClampSettings, pool: PatchPool, marked: np.ndarray | None = None) -> Rows:
    """The rows of a session on a table.

    Args:
        settings: Settings of the session.
        pool: The table.
        marked: Marks of its rows (`scant.studies.split.marks`).

    Raises:
        BadInput: A simulated expert has labels of fewer than two classes, or the table lacks
            the features that were set.
    """
    simulated = settings.expert == "simulated"
    counts = np.bincount(pool.label[pool.label != UNKNOWN], minlength=len(pool.classes))
    if simulated:
        _check_answers(dict(zip(pool.classes, counts.tolist())), "The table")
    selected = thinned(settings, pool)
    session_pool = take(pool, selected)
    role = roles(settings, session_pool, None if marked is None else marked[selected])
    given, x = inputs_of(settings, pool)  # all rows, so that one cache serves every split
    x = x[selected]
    scaling = Scaling.fit(x, settings.n_components)
    rows = Rows(session_pool, selected, role, given, scaling, scaling.transform(x))
    n_labeled = np.bincount(
        session_pool.label[rows.answerable], minlength=len(session_pool.classes)
    )
    missing = np.flatnonzero((n_labeled == 0) & (counts > 0))
    if simulated and len(missing):
        raise BadInput(
            f"No row of class {session_pool.classes[int(missing[0])]!r} is left to learn from "
            "beside those held out; hold out less, or set a smaller 'imbalance'."
        )
    by_validation = settings.stop_rule == VALIDATION_F1 and settings.patience > 0
    if simulated and by_validation and not len(rows.validation):
        raise BadInput(
            f"Setting 'stop_rule' is {VALIDATION_F1}, but there is no validation row; raise "
            "'validation_share', or set 'stop_rule' to predictions."
        )
    return rows


def thinned(settings: ClampSettings, pool: PatchPool) -> Int[np.ndarray, " m"]:
    """Drop rows at random until there are `imbalance` others to one of the class of interest.

    Patches are dropped, or whole pictures (`imbalance_by`). A picture shows the rarer of two
    classes if one of its patches does, and counts as the other class if none does.
    """
    all_rows, sought = np.arange(len(pool)), len(pool.classes) - 1
    if not settings.imbalance:
        return all_rows
    shows = pool.label == sought
    rng = np.random.default_rng([settings.split_seed, 61])
    if settings.imbalance_by != BY_PICTURE:
        return np.setdiff1d(
            all_rows,
            _surplus(
                rng, np.flatnonzero((pool.label != UNKNOWN) & ~shows), np.flatnonzero(shows),
                settings.imbalance,
            ),
        )  # fmt: skip
    rare = rarer(pool)
    with_rare = np.unique(pool.picture[pool.label == rare])
    without = np.setdiff1d(np.unique(pool.picture[pool.label != UNKNOWN]), with_rare)
    both = (without, with_rare) if rare == sought else (with_rare, without)
    return np.flatnonzero(~np.isin(pool.picture, _surplus(rng, *both, settings.imbalance)))


def rarer(pool: PatchPool) -> int:
    """Class that separates pictures: the rarer of two, or the class of interest of more."""
    if len(pool.classes) > 2:
        return len(pool.classes) - 1
    counts = np.bincount(pool.label[pool.label != UNKNOWN], minlength=2)
    return int(counts[1] <= counts[0])


def _surplus(
    rng: np.random.Generator,
    other: Int[np.ndarray, " a"],
    interest: Int[np.ndarray, " b"],
    ratio: float,
) -> Int[np.ndarray, " d"]:
    """Rows to drop at random, so that there are `ratio` others to one of interest."""
    if not len(other) or not len(interest):
        return other[:0]
    max_interest = max(1, int(len(other) / ratio))
    dropped = rng.permutation(interest)[max_interest:]
    if len(interest) < max_interest:
        dropped = rng.permutation(other)[max(1, round(len(interest) * ratio)) :]
    return dropped


def take(pool: PatchPool, rows: Int[np.ndarray, " m"]) -> PatchPool:
    """Select rows of a pool."""
    return replace(
        pool,
        label=pool.label[rows],
        picture=pool.picture[rows],
        place=pool.place[rows],
        images=[pool.images[i] for i in rows] if pool.images else [],
        x=pool.x[rows],
    )


def roles(
    settings: ClampSettings, pool: PatchPool, marked: np.ndarray | None = None
) -> Int[np.ndarray, " n"]:
    """Role of each row: labeled rows are held out by whole pictures, stratified by the rarer class.

    Marks of the table decide where there are any. A person's session holds rows out only where the
    table has enough labels.
    """
    role = np.zeros(len(pool), dtype=np.int64)
    labeled = pool.label != UNKNOWN
    if settings.expert == "you" and labeled.sum() < ENOUGH:
        return role
    if marked is not None and (marked != TRAIN).any():
        role[(marked == HELD_OUT) & labeled] = TEST
        role[(marked == VALIDATED) & labeled] = VALIDATION
        return role
    rng = np.random.default_rng([settings.split_seed, 62])
    holding = np.unique(pool.picture[pool.label == rarer(pool)])
    share = 0.0 if settings.count_validation else settings.validation_share
    for pictures in (holding, np.setdiff1d(np.unique(pool.picture[labeled]), holding)):
        shuffled = rng.permutation(pictures)
        test = round(settings.test_share * len(shuffled))
        spared = test + round(share * len(shuffled))
        role[np.isin(pool.picture, shuffled[:test]) & labeled] = TEST
        role[np.isin(pool.picture, shuffled[test:spared]) & labeled] = VALIDATION
    if settings.expert != "you":  # a person's checks are drawn while labels arrive
        candidates = np.flatnonzero((role == MAY_BE_ASKED) & labeled)
        role[rng.permutation(candidates)[: settings.spent(len(candidates))]] = VALIDATION
    return role


def scores(
    label: Int[np.ndarray, " n"], predicted: Int[np.ndarray, " n"], sought: int = 1
) -> tuple[float, float, float]:
    """F1, precision and recall of the class of interest; NaN without rows."""
    if not len(label):
        return (float("nan"),) * 3
    precision, recall, f1, _ = precision_recall_fscore_support(
        label == sought, predicted == sought, labels=[1], average="binary", zero_division=0.0
    )
    return float(f1), float(precision), float(recall)


def notes(settings: ClampSettings, rows: Rows, table_rows: int) -> list[str]:
    """Notes on how the table is used."""
    pool, messages = rows.pool, []
    n_labeled = np.bincount(pool.label[pool.label != UNKNOWN], minlength=len(pool.classes))
    if len(rows.row) < table_rows:
        each = ", ".join(f"{name} {n:,}" for n, name in zip(n_labeled, pool.classes))
        messages.append(
            f"Rows left out: {table_rows - len(rows.row):,}; used of each class: {each}."
        )
    if len(pool.classes) > 2:
        messages.append(
            f"There are {len(pool.classes)} classes; {pool.classes[-1]} is the class of interest; "
            "the setting 'positive_class' can change it."
        )
    unknown = int((pool.label == UNKNOWN).sum())
    if settings.expert == "simulated" and unknown:
        messages.append(
            f"Rows without a label in the table: {unknown:,}. They are predicted, and the "
            "simulated expert is not asked about them."
        )
    if pool.images and not pool.pictures and len(rows.scored):
        messages.append(
            "The table names no pictures, so rows are held out one by one; patches of one "
            "picture can be training and test rows, which makes the scores too good."
        )
    if not len(rows.scored):
        messages.append(
            "No labeled row is held out, so the scores are those of the training labels."
        )
    explained = rows.scaling.share[: rows.x.shape[1]].sum()
    messages.append(
        f"The classifier is given {rows.x.shape[1]} principal components of "
        f"{len(rows.scaling.mean):,} features ({rows.given}), which hold {explained:.0%} of their "
        "variance."
    )
    if settings.feature_extractor == FEATURES[0] and rows.given == HANDMADE:
        messages.append(GAIN)
    return messages
