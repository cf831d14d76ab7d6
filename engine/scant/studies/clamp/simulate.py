"""Simulated photographs of pipe joints in trenches: with a clamp of one of three kinds, or none.

A picture has 1280 x 720 pixels and is cut into patches, labeled by the share of a clamp that they
hold (`drawing` draws it). Figs. 4.1, 4.2 and 4.6 of Yousefi (2021) are the model; nothing of them
is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, UInt8
from PIL import Image

from scant.data_dir import cached_table, generated_path
from scant.hardware import on_all_cores
from scant.studies.aggregation.thinning import Seeded, thinned
from scant.studies.clamp import drawing
from scant.studies.clamp.table import CLAMP, NO_CLAMP
from scant.tables.images.cutting import Cut, cut, table_of

WIDTH, HEIGHT = 1280, 720
KINDS = tuple(drawing.CLAMPS)
SCALE = 2  # pictures are drawn at half their size and enlarged, as a lens would blur them
HELD = 0.3  # minimum share of a clamp's area in a patch that counts as a clamp
WITHOUT = 0.15  # share of pictures that have no clamp
DEMO, LARGE, MANY = 88, 80, 143  # pictures
CLAMPED = 24  # pictures of the demonstration with clamps, of one kind: few labels suffice
VERSION = 1  # of the pictures: raise it when they change, so that cached ones are not used


@dataclass(frozen=True)
class Picture:
    """A photograph, and masks of its clamps.

    Attributes:
        image: Red, green, blue.
        clamps: One mask per clamp, of the same size.
        kinds: Kind of each clamp, from `KINDS`.
    """

    image: UInt8[np.ndarray, "h w 3"]
    clamps: Bool[np.ndarray, "c h w"]
    kinds: tuple[str, ...]


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """88 pictures in 21 patches each; about one patch in fifteen holds a clamp.

    Returns:
        `label` (clamp, no clamp), `picture`, `left`, `top`, `size` (pixels), `image`.
    """
    return thinned(kept(settings.data_seed, DEMO, clamped=CLAMPED), rows)


def large(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """80 pictures, most with a clamp; about one patch in five holds one."""
    return thinned(kept(settings.data_seed, LARGE), rows)


def many(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """143 pictures, 3,003 patches: a pool much larger than a budget of labels."""
    return thinned(kept(settings.data_seed, MANY), rows)


def kept(
    seed: int, count: int, folder: Path | None = None, clamped: int | None = None
) -> pd.DataFrame:
    """`patches`, cached in the data directory."""
    suffix = "" if clamped is None else f"-{clamped}"
    path = generated_path(f"pipes-{VERSION}-{seed}-{count}{suffix}", folder)
    return cached_table(path, lambda: patches(seed, count, clamped))


def patches(seed: int, count: int, clamped: int | None = None) -> pd.DataFrame:
    """Patches of `count` pictures, each labeled by whether it holds a clamp.

    Args:
        seed: Seed of the pictures.
        count: Number of pictures.
        clamped: Number of pictures with clamps, all of one kind; None: most, of any kind.
    """

    def labeled(number: int) -> tuple[list[Cut], list[str | None]]:
        photograph = picture(seed, number, None if clamped is None else number < clamped)
        cuts = cut(photograph.image, f"trench {number + 1:02}")
        clamps = [holds(photograph, one.left, one.top, one.size) for one in cuts]
        return cuts, [CLAMP if clamp else NO_CLAMP for clamp in clamps]

    cuts, labels = zip(*on_all_cores(labeled, range(count)))
    return table_of(list(chain(*cuts)), list(chain(*labels)))


def holds(photograph: Picture, left: int, top: int, size: int) -> bool:
    """Return True if a square holds enough of a clamp."""
    inside = photograph.clamps[:, top : top + size, left : left + size].sum((1, 2))
    return bool((inside >= HELD * photograph.clamps.sum((1, 2))).any()) if len(inside) else False


def picture(seed: int, number: int, clamped: bool | None = None) -> Picture:
    """Picture `number` of a series: with plastic clamps, without, or (None) at random."""
    rng = np.random.default_rng([seed, 47, number])
    h, w = HEIGHT // SCALE, WIDTH // SCALE
    rgb = drawing.soil(rng, h, w)
    rgb = drawing.litter(rng, rgb)
    along, across, radius = drawing.axis(rng, h, w)
    rgb = drawing.pipe(rng, rgb, along, across, radius)
    clamps, kinds = [], []
    at = rng.uniform(-0.25, 0.25) * w  # of the joint, along the pipe
    box = drawing.box(along - at, across, 2.5 * radius)
    rgb[box], reach = drawing.sleeve(rng, rgb[box], along[box] - at, across[box], radius)
    sides = rng.permutation([-1.0, 1.0])[: _number(rng, clamped)]
    kind = "plastic pinch" if clamped else KINDS[int(rng.integers(len(KINDS)))]
    for side in sides:
        center = at + side * (reach + rng.uniform(0.5, 1.3) * radius)
        box, mask = drawing.box(along - center, across, 2.7 * radius), np.zeros((h, w), dtype=bool)
        rgb[box], mask[box] = drawing.CLAMPS[kind](
            rng, rgb[box], along[box] - center, across[box], radius
        )
        if mask.any():
            clamps.append(mask)
            kinds.append(kind)
    rgb = drawing.dirt(rng, rgb, across, radius)
    rgb = drawing.light(rng, rgb)
    small = Image.fromarray((255 * np.clip(rgb, 0, 1)).astype(np.uint8))
    image = np.asarray(small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
    full = [c.repeat(SCALE, 0).repeat(SCALE, 1) for c in clamps]
    planes = np.array(full, dtype=bool).reshape(-1, HEIGHT, WIDTH)
    return Picture(image, planes, tuple(kinds))


def _number(rng: np.random.Generator, clamped: bool | None) -> int:
    """Number of clamps of a picture."""
    without = WITHOUT if clamped is None else float(not clamped)
    return 0 if rng.uniform() < without else (2 if rng.uniform() < 0.2 else 1)
