"""The data of the publication's comparison (Yousefi 2021, section 3.3): a rare class on slides.

The AMIDA13 patches themselves were not found. `real` is given the folder where somebody has put
stand-ins, as `SCANT_REAL_DATA` does in the tests: mitoses of AMi-Br, whose others nobody labeled,
they are presumed not to divide. Without a folder the cells are invented.
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
SHARES = (0.62, 0.14)  # of the slides: to learn from, to choose settings by; the rest to test


@dataclass(frozen=True)
class Case:
    """An experiment: its rows, and how many of them are learned from and tested.

    Attributes:
        x: Pixels, in [0, 1].
        rare: Rows of the rare class.
        slide: Of each row; no slide has rows in two parts of a split.
        learn: Rare and other rows to learn from.
        test: Rare and other rows of a test set.
        splits: Of the slides.
        sets: Test sets of each, drawn from the rows of its test slides.
        steps: Of training.
        most: Steps of training at most, as published: until convergence.
        inducing: Inducing inputs of a class, where it is not as published.
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
    """Rows by their use; all rows of a slide have the same."""

    learn: Int[np.ndarray, " a"]
    choose: Int[np.ndarray, " b"]
    test: Int[np.ndarray, " c"]


def split(case: Case, seed: int) -> Split:
    """Slides at random; of those learned from, as many rows of both classes as are asked for.

    Raises:
        BadInput: The test slides have fewer rows of a class than a test set takes.
    """
    rng = np.random.default_rng([seed, 32])
    slides = rng.permutation(np.unique(case.slide))
    ends = (np.cumsum(SHARES) * len(slides)).round().astype(int)
    parts = [np.isin(case.slide, part) for part in np.split(slides, ends)]
    learn = [
        rng.permutation(np.flatnonzero(parts[0] & (case.rare == rare)))[:count]
        for rare, count in zip((True, False), case.learn)
    ]
    choose, test = (np.flatnonzero(part) for part in parts[1:])
    # Who has but ten rare rows to learn from has no two hundred to choose a threshold by.
    choose = np.concatenate(
        [rng.permutation(choose[case.rare[choose]])[: case.learn[0]], choose[~case.rare[choose]]]
    )
    for rare, count in zip((True, False), case.test):
        there = int((case.rare[test] == rare).sum())
        if there < count:
            raise BadInput(f"The test slides have {there} rows of a class, not {count}.")
    return Split(np.concatenate(learn), choose, test)


def sets_of(case: Case, rows: Int[np.ndarray, " c"], seed: int) -> Iterator[np.ndarray]:
    """Indices into the rows of the test slides, set after set."""
    rng = np.random.default_rng([seed, 33])
    for _ in range(case.sets):
        drawn = [
            rng.choice(np.flatnonzero(case.rare[rows] == rare), count, replace=False)
            for rare, count in zip((True, False), case.test)
        ]
        yield np.concatenate(drawn)


def drawn(seed: int = 0) -> Case:
    """Invented cells, about as imbalanced as the publication's."""
    made = cells(seed, 24, (8, 95))
    return Case(made.x, made.label == 0, made.group, (80, 1000), (25, 205))


def real(folder: Path) -> Iterator[tuple[str, Case]]:
    """Mitoses of AMi-Br: as many rows as published, fewer and ever fewer, and the harder task.

    Args:
        folder: Holds `mitosis_amibr/patches_gray30.npz`: `images`, `label` (1: mitosis), `atypical`
            and `slide`.

    Raises:
        BadInput: The file is missing.
    """
    path = folder / PATCHES
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in {path.parent}; put it there.")
    with np.load(path) as found:
        x = found["images"].reshape(len(found["label"]), -1) / 255.0
        rare, slide = found["label"] == 1, found["slide"].astype(int)
        atypical = found["atypical"] == 1
    published = Case(x, rare, slide)
    yield "AMi-Br, 440 + 5,000", published
    yield "AMi-Br, 440 + 1,200", replace(published, learn=(440, 1200), splits=3)
    for ratio in (30, 100, 300):
        fewer = replace(published, learn=(round(1000 / ratio), 1000), splits=3)
        yield f"AMi-Br, {fewer.learn[0]} + 1,000", fewer
    among = {"x": x[rare], "rare": atypical[rare], "slide": slide[rare]}
    yield (
        "AMi-Br, atypical among mitoses",
        Case(**among, learn=(380, 1300), test=(80, 280)),
    )
