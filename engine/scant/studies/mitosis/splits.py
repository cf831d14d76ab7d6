"""Preprocessing of mitosis tables: training rows, held-out rows, resized images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from scant.errors import BadInput
from scant.studies.mitosis.cost import MOST_TEST, MOST_VALIDATION, VALIDATION_SHARE
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.settings import MitosisSettings
from scant.studies.mitosis.table import LabeledImages
from scant.studies.omniglot.table import area, side
from scant.studies.split import EVERYTHING, TEST, VALIDATION, marks, with_groups
from scant.tables.column_matching import listed

SHADES = 255  # largest gray level of stored images
LEAST_RARE = 8  # minimum number of rows of the rare class for validation rows
FEW = 2  # minimum number of training rows of a class

Rows = Int[np.ndarray, " _"]


@dataclass(frozen=True)
class Split:
    """Rows of a table by role.

    Attributes:
        pool: Rows that may be trained on, before `imbalance` drops any.
        learnt: Training rows.
        validation: Rows that fit temperature and threshold.
        test: Held-out rows.
        modeled: Training rows of the latent variable model; None: all.
    """

    pool: Rows
    learnt: Rows
    validation: Rows
    test: Rows
    modeled: Rows | None = None


def chosen(s: MitosisSettings, cells: LabeledImages) -> tuple[LabeledImages, Rows]:
    """Rows with a class, the rare class first; and their positions in the table.

    Raises:
        BadInput: There is one class only, no class of the name that was set, or too few rows.
    """
    count = np.bincount(cells.label[cells.label >= 0], minlength=len(cells.classes))
    known = [i for i in range(len(count)) if count[i]]
    if len(known) < 2:
        raise BadInput(
            f"The table has only one class ({listed([cells.classes[i] for i in known])}), but two "
            "are needed; add rows of another class."
        )
    rare = min(known, key=lambda i: (count[i], i))
    if s.positive_class:
        if s.positive_class not in cells.classes:
            raise BadInput(
                f"Setting 'positive_class' is {s.positive_class!r}, but the table's classes are "
                f"{listed(cells.classes)}; name one of them, or none."
            )
        rare = cells.classes.index(s.positive_class)
    order = [rare, *(i for i in known if i != rare)]
    few = next((i for i in order if count[i] < FEW + (s.test_share > 0)), None)
    if few is not None:
        message = f"{count[few]} row{'s' if count[few] > 1 else ''}"
        raise BadInput(
            f"Class {cells.classes[few]!r} has {message}, too few to learn from some and hold out "
            "others; add rows of it, or leave it out."
        )
    number = np.full(len(count) + 1, -1)
    number[order] = np.arange(len(order))
    places = np.flatnonzero(number[cells.label] >= 0)
    taken = cells.take(places)
    names = [cells.classes[i] for i in order]
    return LabeledImages(
        names, number[taken.label], taken.groups, taken.group, taken.x, taken.features
    ), (places)


def model_inputs(
    s: MitosisSettings, cells: LabeledImages, drawn: tuple[int, int] | None
) -> tuple[Float[np.ndarray, "n d"], tuple[int, int] | None]:
    """Inputs of the model, and the size of images: small, with `SHADES` + 1 gray levels.

    Args:
        s: Settings.
        cells: The table.
        drawn: Height and width of its images; None: its columns are features.
    """
    if drawn is None:
        return cells.x, None
    x = cells.x / SHADES if np.nanmax(cells.x, initial=0.0) > 2 else cells.x
    images = x.reshape(-1, *drawn)
    small = images if max(drawn) <= s.size else area(images, s.size)
    shaded = np.round(np.clip(small.reshape(len(x), -1), 0, 1) * SHADES) / SHADES
    return shaded, (small.shape[1], small.shape[2])


def shape(s: MitosisSettings, cells: LabeledImages) -> tuple[int, int] | None:
    """Height and width of a table's images; None if its columns are features."""
    return side(len(cells.features), s.width, s.height) if cells.pixels else None


def split(s: MitosisSettings, cells: LabeledImages, marked: np.ndarray) -> tuple[Split, list[str]]:
    """Split the rows by role, with notes on it.

    Held-out rows do not depend on the imbalance, and the training rows of a smaller number are
    among those of a larger one.

    Args:
        s: Settings.
        cells: The table.
        marked: Marks of its rows (`scant.studies.split.marks`).

    Raises:
        BadInput: A class is left without two training rows.
    """
    rng, notes = np.random.default_rng([s.seed, 41]), []
    every = np.arange(len(cells))
    test, whole = np.flatnonzero(marked == TEST), True
    if not len(test):
        test, whole = _held(rng, cells, every, s.test_share)
    rest = np.setdiff1d(every, test)
    spared = np.setdiff1d(np.flatnonzero(marked == VALIDATION), test)
    if s.tempered and not len(spared) and (cells.label[rest] == 0).sum() >= LEAST_RARE:
        spared, whole_too = _held(rng, cells, rest, VALIDATION_SHARE)
        whole = whole and whole_too
    elif s.tempered and not len(spared):
        notes.append(
            f"The rare class has fewer than {LEAST_RARE} rows besides those held out, so none are "
            "held back: probabilities are not corrected by a temperature, and a row gets its most "
            "probable class."
        )
    if cells.groups and not whole:
        notes.append(
            "Whole groups could not be held out, because a class would have had too few rows left: "
            "some groups have both training and held-out rows."
        )
    spared = some(rng, cells, spared, MOST_VALIDATION)
    pool = np.setdiff1d(every if s.refit == EVERYTHING else rest, spared)
    train = thinned(s, cells, pool, s.imbalance)
    result = Split(pool, train, spared, some(rng, cells, test, MOST_TEST))
    if len(result.test) < len(test):
        notes.append(
            f"Of {len(test):,} rows held out, {len(result.test):,} are scored: all of the rare "
            "class, or half of them, and others at random."
        )
    return result, notes


def thinned(s: MitosisSettings, cells: LabeledImages, pool: Rows, ratio: float) -> Rows:
    """Training rows of a pool, with `ratio` others to a rare one (0: all).

    Raises:
        BadInput: A class is left without two rows.
    """
    rng = np.random.default_rng([s.seed, 42])
    own = [rng.permutation(pool[cells.label[pool] == c]) for c in range(len(cells.classes))]
    own[0] = own[0][: s.rare_rows or None]
    others = sum(len(rows) for rows in own[1:])
    wanted = others
    if ratio:
        wanted = min(others, round(ratio * len(own[0])))
        own[0] = own[0][: max(FEW, round(wanted / ratio))]
    kept = [own[0]]
    kept += [rows[: max(FEW, round(wanted * len(rows) / max(others, 1)))] for rows in own[1:]]
    for c, rows in enumerate(kept):
        if len(rows) < FEW:
            raise BadInput(
                f"Class {cells.classes[c]!r} has too few rows left to learn from: {len(rows)}, and "
                f"{FEW} are needed; add rows of it, or hold out fewer ('test_share')."
            )
    return np.sort(np.concatenate(kept))


def some(rng: np.random.Generator, cells: LabeledImages, rows: Rows, most: int) -> Rows:
    """At most `most` rows: those of the rare class, up to half, and others at random."""
    if len(rows) <= most:
        return rows
    mixed = rng.permutation(rows)
    rare, others = mixed[cells.label[mixed] == 0], mixed[cells.label[mixed] != 0]
    rare = rare[: most // 2]
    return np.sort(np.concatenate([rare, others[: most - len(rare)]]))


def _held(
    rng: np.random.Generator, cells: LabeledImages, rows: Rows, share: float
) -> tuple[Rows, bool]:
    """About this share of every class, in whole groups if possible; and whether they are whole."""
    if not share:
        return np.empty(0, dtype=np.int64), True
    label, least = cells.label[rows], FEW
    if cells.groups:
        member = np.zeros((len(cells.groups), len(cells.classes)), dtype=int)
        np.add.at(member, (cells.group[rows], label), 1)
        order = rng.permutation(len(cells.groups))
        taken = np.cumsum(member[order], axis=0)
        enough = int(np.argmax(taken[:, 0] >= share * taken[-1, 0]))
        if (taken[-1] - taken[enough] >= least).all() and (taken[enough] >= 1).all():
            inside = np.isin(cells.group[rows], order[: enough + 1])
            return rows[inside], True
    held = []
    for c in range(len(cells.classes)):
        mixed = rng.permutation(rows[label == c])
        held.append(mixed[: max(0, min(len(mixed) - least, max(1, round(share * len(mixed)))))])
    return np.sort(np.concatenate(held)), False


def notes(
    cells: LabeledImages,
    drawn: tuple[int, int] | None,
    image: tuple[int, int] | None,
    split: Split,
    columns: Columns,
) -> list[str]:
    """Notes on how the table is used."""
    messages = []
    if drawn is not None and image is not None and drawn != image:
        messages.append(
            f"Images of {drawn[1]} x {drawn[0]} pixels were resized to {image[1]} x {image[0]} by "
            "averages over area."
        )
    if drawn is not None and np.nanmax(cells.x, initial=0.0) > 2:
        messages.append(f"Pixels were read as integers from 0 to {SHADES}.")
    missing = int(np.isnan(cells.x).sum())
    if missing:
        how = "filled in by principal components" if len(columns.axes) else "left to the model"
        messages.append(f"Missing cells: {missing:,}; they are {how}.")
    if not len(split.test):
        messages.append(
            "No row is held out, so there is nothing to score; set 'test_share' above 0."
        )
    return messages


def metadata_of(
    s: MitosisSettings,
    cells: LabeledImages,
    image: tuple[int, int] | None,
    split: Split,
    methods: list[str],
) -> dict[str, Any]:
    """Metadata of a run (`events.Started`)."""
    count = np.bincount(cells.label[split.learnt], minlength=len(cells.classes))
    pool = np.bincount(cells.label[split.pool], minlength=len(cells.classes))
    private = s.n_private_dims if s.model == "sclvm" else 0
    return {
        "classes": list(cells.classes),
        "rare": cells.classes[0],
        "size": list(image or ()),
        "features": list(cells.features) if image is None else [],
        "n_shared": s.n_shared_dims + s.n_private_dims - private,
        "n_private": private,
        "methods": methods,
        "rows": {
            "training": len(split.learnt),
            "validation": len(split.validation),
            "test": len(split.test),
        },
        "counts": count.tolist(),
        "pool": pool.tolist(),
        "ratio": float(count[1:].sum() / count[0]),
        "grouped": bool(cells.groups),
    }


def shown(label: Int[np.ndarray, " n"], most: int) -> Int[np.ndarray, " k"]:
    """At most `most` rows, sorted by class; small classes whole, others in equal parts."""
    own = [np.flatnonzero(label == c) for c in np.unique(label)]
    room, kept = most, []
    for left, rows in zip(range(len(own), 0, -1), sorted(own, key=len)):
        take = min(len(rows), room // left)
        kept.append(rows[np.linspace(0, len(rows) - 1, take).round().astype(int)])
        room -= take
    result = np.concatenate(kept)
    return result[np.argsort(label[result], kind="stable")]


def check(s: MitosisSettings, table: pd.DataFrame, name: str) -> None:
    """Refuse a table that these settings cannot learn (`Entry.check`)."""
    table = with_groups(table, s.split_by)
    cells, places = chosen(s, LabeledImages.of(table, name=name))
    shape(s, cells)
    split(s, cells, marks(table)[places])
