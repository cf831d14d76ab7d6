"""Patches and pictures of any shape, several in one answer, each in its own."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.studies.clamp.patch_views import HIGH, SIDE, WIDE, patches
from scant.studies.clamp.pictures import BLANK, mosaics
from scant.studies.clamp.table import PatchPool
from scant.tables.images.cutting import Cut, table_of

RED, BLUE = (200, 20, 20), (20, 20, 200)


def pool_of(sizes: list[tuple[int, int]], box: tuple[int, int, int, int]) -> PatchPool:
    """Blue pictures with one red box each, which is the patch."""
    frames = []
    left, top, width, height = box
    for i, (w, h) in enumerate(sizes):
        image = np.full((h, w, 3), BLUE, dtype=np.uint8)
        image[top : top + height, left : left + width] = RED
        out = io.BytesIO()
        Image.fromarray(image).save(out, "PNG")
        part = image[top : top + height, left : left + width]
        one = Cut(f"{i}.png", left, top, width, part, height, (w, h))
        frames.append(table_of([one], None, out.getvalue()))

    return PatchPool.of(pd.concat(frames, ignore_index=True))


def is_red(image: np.ndarray) -> np.ndarray:
    return (image[..., 0] > 130) & (image[..., 2] < 90)


def test_pictures_of_several_shapes_keep_them() -> None:
    sizes = [(640, 360), (360, 640), (500, 500)]
    pool = pool_of(sizes, (60, 120, 200, 100))
    answer = patches(pool, mosaics(pool, 1280), [0, 1, 2])
    assert answer["thumb"].shape[0] == 3
    high, wide = answer["thumb"].shape[1:3]
    assert (wide, high) == (WIDE, HIGH)
    for thumb, (w, h), box in zip(answer["thumb"], sizes, answer["box"]):
        gray = (np.abs(thumb.astype(int) - BLANK) < 12).all(-1)
        rows, columns = (~gray).any(1).sum(), (~gray).any(0).sum()
        assert columns / rows == pytest.approx(w / h, rel=0.03)
        red = np.argwhere(is_red(thumb))
        (top, left), (bottom, right) = red.min(0), red.max(0) + 1
        assert box * [wide, high, wide, high] == pytest.approx(
            [left, top, right - left, bottom - top], abs=2.5
        )


def test_a_patch_that_is_no_square_is_shown_in_its_shape() -> None:
    pool = pool_of([(640, 360)], (60, 120, 200, 100))
    (image,) = patches(pool, mosaics(pool, 1280), [0])["image"]
    assert image.shape == (SIDE, SIDE, 3)
    red = is_red(image)
    assert red.any(0).sum() == pytest.approx(SIDE, abs=4)
    assert red.any(1).sum() == pytest.approx(SIDE / 2, abs=4)


def test_squares_fill_the_view() -> None:
    pool = pool_of([(640, 360)], (60, 120, 150, 149))
    (image,) = patches(pool, mosaics(pool, 1280), [0])["image"]
    assert is_red(image).mean() > 0.97
