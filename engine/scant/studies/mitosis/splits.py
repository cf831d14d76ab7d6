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
LEAST_RARE = 8  # minimum number of rows of the rare class to hold back validation rows
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
    """Rows with a class, with the rare class first, and their positions in the table.

    Raises:
        BadInput: There is only one class, the class that was set is absent, or rows are too few.
    """
    count = np.bincount(cells.label[cells.label >= 0], minlength=len(cells.classes))
    present = [i for i in range(len(count)) if count[i]]
    if len(present) < 2:
        raise BadInput(
            f"The table has only one class ({listed([cells.classes[i] for i in present])}), but "
            "two are needed; add rows of another class."
        )
    rare = min(present, key=lambda i: (count[i], i))
    if s.positive_class:
        if s.positive_class not in cells.classes:
            raise BadInput(
                f"Setting 'positive_class' is {s.positive_class!r}, but the table's classes are "
                f"{listed(cells.classes)}; name one of them, or none."
            )
        rare = cells.classes.index(s.positive_class)
    order = [rare, *(i for i in present if i != rare)]
    too_small = next((i for i in order if count[i] < FEW + (s.test_share > 0)), None)
    if too_small is not None:
        message = f"{count[too_small]} row{'s' if count[too_small] > 1 else ''}"
        raise BadInput(
            f"Class {cells.classes[too_small]!r} has {message}, too few to learn from some and "
            "hold out others; add rows of it, or leave it out."
        )
    number = np.full(len(count) + 1, -1)
    number[order] = np.arange(len(order))
    positions = np.flatnonzero(number[cells.label] >= 0)
    selected = cells.take(positions)
    names = [cells.classes[i] for i in order]
    return LabeledImages(
        names,
        number[selected.label],
        selected.groups,
        selected.group,
        selected.x,
        selected.features,
    ), (positions)


def model_inputs(
    s: MitosisSettings, cells: LabeledImages, image_shape: tuple[int, int] | None
) -> tuple[Float[np.ndarray, "n d"], tuple[int, int] | None]:
    """Inputs of the model, resized and rounded to `SHADES` + 1 gray levels, and the image size.

    Args:
        s: Settings.
        cells: The table.
        image_shape: Height and width of its images; None: its columns are features.
    """
    if image_shape is None:
        return cells.x, None
    x = cells.x / SHADES if np.nanmax(cells.x, initial=0.0) > 2 else cells.x
    images = x.reshape(-1, *image_shape)
    small = images if max(image_shape) <= s.size else area(images, s.size)
    shaded = np.round(np.clip(small.reshape(len(x), -1), 0, 1) * SHADES) / SHADES
    return shaded, (small.shape[1], small.shape[2])


def shape(s: MitosisSettings, cells: LabeledImages) -> tuple[int, int] | None:
    """Height and width of a table's images; None if its columns are features."""
    return side(len(cells.features), s.width, s.height) if cells.pixels else None


def split(s: MitosisSettings, cells: LabeledImages, marked: np.ndarray) -> tuple[Split, list[str]]:
    """Split the rows by role, with notes.

    Held-out rows do not depend on the imbalance, and smaller sets of training rows are subsets of
    larger ones.

    Args:
        s: Settings.
        cells: The table.
        marked: Marks of its rows (`scant.studies.split.marks`).

    Raises:
        BadInput: A class is left without two training rows.
    """
    rng, notes = np.random.default_rng([s.seed, 41]), []
    all_rows = np.arange(len(cells))
    test, whole = np.flatnonzero(marked == TEST), True
    if not len(test):
        test, whole = _held(rng, cells, all_rows, s.test_share)
    remaining = np.setdiff1d(all_rows, test)
    validation = np.setdiff1d(np.flatnonzero(marked == VALIDATION), test)
    if s.tempered and not len(validation) and (cells.label[remaining] == 0).sum() >= LEAST_RARE:
        validation, validation_whole = _held(rng, cells, remaining, VALIDATION_SHARE)
        whole = whole and validation_whole
    elif s.tempered and not len(validation):
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
    validation = some(rng, cells, validation, MOST_VALIDATION)
    pool = np.setdiff1d(all_rows if s.refit == EVERYTHING else remaining, validation)
    train = thinned(s, cells, pool, s.imbalance)
    result = Split(pool, train, validation, some(rng, cells, test, MOST_TEST))
    if len(result.test) < len(test):
        notes.append(
            f"Of {len(test):,} rows held out, {len(result.test):,} are scored: all of the rare "
            "class, or half of them, and others at random."
        )
    return result, notes


def thinned(s: MitosisSettings, cells: LabeledImages, pool: Rows, ratio: float) -> Rows:
    """Training rows of a pool, with `ratio` other rows per rare row (0: all).

    Raises:
        BadInput: A class is left without two rows.
    """
    rng = np.random.default_rng([s.seed, 42])
    by_class = [rng.permutation(pool[cells.label[pool] == c]) for c in range(len(cells.classes))]
    by_class[0] = by_class[0][: s.rare_rows or None]
    others = sum(len(rows) for rows in by_class[1:])
    n_others = others
    if ratio:
        n_others = min(others, round(ratio * len(by_class[0])))
        by_class[0] = by_class[0][: max(FEW, round(n_others / ratio))]
    selected = [by_class[0]]
    selected += [
        rows[: max(FEW, round(n_others * len(rows) / max(others, 1)))] for rows in by_class[1:]
    ]
    for c, rows in enumerate(selected):
        if len(rows) < FEW:
            raise BadInput(
                f"Class {cells.classes[c]!r} has too few rows left to learn from: {len(rows)}, and "
                f"{FEW} are needed; add rows of it, or hold out fewer ('test_share')."
            )
    return np.sort(np.concatenate(selected))


def some(rng: np.random.Generator, cells: LabeledImages, rows: Rows, max_rows: int) -> Rows:
    """At most `max_rows` rows: up to half of the rare class, and others at random."""
    if len(rows) <= max_rows:
        return rows
    shuffled = rng.permutation(rows)
    rare, others = shuffled[cells.label[shuffled] == 0], shuffled[cells.label[shuffled] != 0]
    rare = rare[: max_rows // 2]
    return np.sort(np.concatenate([rare, others[: max_rows - len(rare)]]))


def _held(
    rng: np.random.Generator, cells: LabeledImages, rows: Rows, share: float
) -> tuple[Rows, bool]:
    """About this share of each class, in whole groups if possible; True if groups are whole."""
    if not share:
        return np.empty(0, dtype=np.int64), True
    label, min_rows = cells.label[rows], FEW
    if cells.groups:
        group_counts = np.zeros((len(cells.groups), len(cells.classes)), dtype=int)
        np.add.at(group_counts, (cells.group[rows], label), 1)
        order = rng.permutation(len(cells.groups))
        cumulative = np.cumsum(group_counts[order], axis=0)
        n_last = int(np.argmax(cumulative[:, 0] >= share * cumulative[-1, 0]))
        if (cumulative[-1] - cumulative[n_last] >= min_rows).all() and (
            cumulative[n_last] >= 1
        ).all():
            in_groups = np.isin(cells.group[rows], order[: n_last + 1])
            return rows[in_groups], True
    by_class = []
    for c in range(len(cells.classes)):
        shuffled = rng.permutation(rows[label == c])
        by_class.append(
            shuffled[: max(0, min(len(shuffled) - min_rows, max(1, round(share * len(shuffled)))))]
        )
    return np.sort(np.concatenate(by_class)), False


def notes(
    cells: LabeledImages,
    image_shape: tuple[int, int] | None,
    image: tuple[int, int] | None,
    split: Split,
    columns: Columns,
) -> list[str]:
    """Notes on how the table is used."""
    messages = []
    if image_shape is not None and image is not None and image_shape != image:
        messages.append(
            f"Images of {image_shape[1]} x {image_shape[0]} pixels were resized to {image[1]} x "
            f"{image[0]} by averages over area."
        )
    if image_shape is not None and np.nanmax(cells.x, initial=0.0) > 2:
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


def shown(label: Int[np.ndarray, " n"], max_rows: int) -> Int[np.ndarray, " k"]:
    """At most `max_rows` rows, sorted by class: small classes whole, others in equal parts."""
    by_class = [np.flatnonzero(label == c) for c in np.unique(label)]
    remaining, selected = max_rows, []
    for n_classes, rows in zip(range(len(by_class), 0, -1), sorted(by_class, key=len)):
        count = min(len(rows), remaining // n_classes)
        selected.append(rows[np.linspace(0, len(rows) - 1, count).round().astype(int)])
        remaining -= count
    result = np.concatenate(selected)
    return result[np.argsort(label[result], kind="stable")]


def check(s: MitosisSettings, table: pd.DataFrame, name: str) -> None:
    """Check that the study can be fitted to a table (`Entry.check`)."""
    table = with_groups(table, s.split_by)
    cells, positions = chosen(s, LabeledImages.of(table, name=name))
    shape(s, cells)
    split(s, cells, marks(table)[positions])
