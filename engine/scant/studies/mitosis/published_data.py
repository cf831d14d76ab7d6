"""The data of the publication's comparison (Yousefi 2021, section 3.3): a rare class on slides.

The AMIDA13 patches are not available. `real` reads substitutes from a folder, in the tests that of
`SCANT_REAL_DATA`: mitoses of AMi-Br, and unlabeled other cells that are presumed not to divide.
Without a folder the cells are simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from scant.errors import BadInput
from scant.studies.mitosis.published import SETTINGS
from scant.studies.mitosis.simulate import cells

PATCHES = Path("mitosis_amibr") / "patches_gray30.npz"
SHARES = (0.62, 0.14)  # shares of the slides for training and validation; the rest is for tests


@dataclass(frozen=True)
class Case:
    """An experiment: its rows, and the numbers of training and test rows.

    Attributes:
        x: Pixels, in [0, 1].
        rare: Rows of the rare class.
        slide: Slide of each row; no slide has rows in two parts of a split.
        learn: Numbers of rare and other training rows.
        test: Numbers of rare and other rows of a test set.
        splits: Number of splits of the slides.
        sets: Number of test sets per split, drawn from the rows of its test slides.
        steps: Training steps.
        most: Maximum number of training steps "as published", until convergence.
        inducing: Inducing inputs of a class in models not "as published".
    """

    x: Float[np.ndarray, "n d"]
    rare: Bool[np.ndarray, " n"]
    slide: Int[np.ndarray, " n"]
    learn: tuple[int, int] = (440, 5000)
    test: tuple[int, int] = (110, 890)
    splits: int = 1
    sets: int = 10
    steps: int = 150
    most: int = SETTINGS["max_steps"].value
    inducing: int = 30


@dataclass(frozen=True)
class Split:
    """Rows by role; all rows of a slide have the same role."""

    learn: Int[np.ndarray, " a"]
    choose: Int[np.ndarray, " b"]
    test: Int[np.ndarray, " c"]


def split(case: Case, seed: int) -> Split:
    """Split the slides at random, and draw the training rows of both classes.

    Raises:
        BadInput: The test slides have fewer rows of a class than a test set needs.
    """
    rng = np.random.default_rng([seed, 32])
    slides = rng.permutation(np.unique(case.slide))
    bounds = (np.cumsum(SHARES) * len(slides)).round().astype(int)
    parts = [np.isin(case.slide, part) for part in np.split(slides, bounds)]
    training = [
        rng.permutation(np.flatnonzero(parts[0] & (case.rare == rare)))[:count]
        for rare, count in zip((True, False), case.learn)
    ]
    validation, test = (np.flatnonzero(part) for part in parts[1:])
    # Validation has no more rare rows than training: with ten there, two hundred are unrealistic.
    validation = np.concatenate(
        [
            rng.permutation(validation[case.rare[validation]])[: case.learn[0]],
            validation[~case.rare[validation]],
        ]
    )
    for rare, count in zip((True, False), case.test):
        n_rows = int((case.rare[test] == rare).sum())
        if n_rows < count:
            raise BadInput(f"The test slides have {n_rows} rows of a class, not {count}.")
    return Split(np.concatenate(training), validation, test)


def sets_of(case: Case, rows: Int[np.ndarray, " c"], seed: int) -> Iterator[np.ndarray]:
    """Yield the test sets as indices into the rows of the test slides."""
    rng = np.random.default_rng([seed, 33])
    for _ in range(case.sets):
        rows_by_class = [
            rng.choice(np.flatnonzero(case.rare[rows] == rare), count, replace=False)
            for rare, count in zip((True, False), case.test)
        ]
        yield np.concatenate(rows_by_class)


def drawn(seed: int = 0) -> Case:
    """Simulated cells with about the imbalance of the publication."""
    images = cells(seed, 24, (8, 95))
    return Case(images.x, images.label == 0, images.group, (80, 1000), (25, 205))


def real(folder: Path) -> Iterator[tuple[str, Case]]:
    """Mitoses of AMi-Br: as many rows as published, fewer rows, and a harder task.

    Args:
        folder: Folder with `mitosis_amibr/patches_gray30.npz`: `images`, `label` (1: mitosis),
            `atypical` and `slide`.

    Raises:
        BadInput: The file is missing.
    """
    path = folder / PATCHES
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in {path.parent}; put it there.")
    with np.load(path) as file:
        x = file["images"].reshape(len(file["label"]), -1) / 255.0
        rare, slide = file["label"] == 1, file["slide"].astype(int)
        atypical = file["atypical"] == 1
    published = Case(x, rare, slide)
    yield "AMi-Br, 440 + 5,000", published
    yield "AMi-Br, 440 + 1,200", replace(published, learn=(440, 1200), splits=3)
    for ratio in (30, 100, 300):
        fewer = replace(published, learn=(round(1000 / ratio), 1000), splits=3)
        yield f"AMi-Br, {fewer.learn[0]} + 1,000", fewer
    mitoses = {"x": x[rare], "rare": atypical[rare], "slide": slide[rare]}
    yield (
        "AMi-Br, atypical among mitoses",
        Case(**mitoses, learn=(380, 1300), test=(80, 280)),
    )
