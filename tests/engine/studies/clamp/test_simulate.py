"""Invented pictures of pipe joints, and views of patches and pictures of any shape."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from scant.studies.clamp import simulate
from scant.studies.clamp.components import Scaling
from scant.studies.clamp.patch_views import HIGH, SIDE, WIDE, patches
from scant.studies.clamp.pictures import BLANK, mosaics
from scant.studies.clamp.prepared import Prepared
from scant.studies.clamp.settings import ClampSettings
from scant.studies.clamp.simulate import Picture
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import CLAMP, TABLE, PatchPool
from scant.tables.images.cutting import Cut, table_of
from scant.tables.images.pixels import pixels
from scant.tables.read import read_frame


@pytest.fixture(scope="module")
def some() -> list[Picture]:
    return [simulate.picture(0, number) for number in range(12)]


@pytest.mark.slow
def test_pictures_have_clamps_of_every_kind_or_none(some: list[Picture]) -> None:
    assert all(made.image.shape == (720, 1280, 3) for made in some)
    assert {kind for made in some for kind in made.kinds} == set(simulate.KINDS)
    assert any(not made.kinds for made in some)
    for made in some:
        assert len(made.clamps) == len(made.kinds)
        assert len(set(made.kinds)) <= 1
        areas = made.clamps.sum((1, 2))
        assert all(500 < area < 60_000 for area in areas)


def test_light_differs_and_clamps_do_not_look_like_what_is_around_them(some: list[Picture]) -> None:
    assert np.std([made.image.mean() for made in some]) > 10
    away = []
    for made in some:
        for clamp in made.clamps:
            rows, columns = np.flatnonzero(clamp.any(1)), np.flatnonzero(clamp.any(0))
            box = made.image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(float)
            inside = clamp[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            away.append(np.abs(box[inside].mean(0) - box[~inside].mean(0)).max())
    assert np.mean(away) > 15


def test_a_picture_has_plastic_clamps_or_none_where_that_is_said() -> None:
    assert set(simulate.picture(0, 0, clamped=True).kinds) == {"plastic pinch"}
    assert simulate.picture(0, 0, clamped=False).kinds == ()


def test_a_patch_is_labeled_by_the_clamp_it_holds() -> None:
    clamp = np.zeros((1, 720, 1280), dtype=bool)
    clamp[0, 100:200, 300:400] = True
    made = Picture(np.zeros((720, 1280, 3), dtype=np.uint8), clamp, ("ring",))
    assert simulate.holds(made, 149, 0, 299)
    assert simulate.holds(made, 360, 0, 299)  # 40 of 100 columns
    assert not simulate.holds(made, 375, 0, 299)
    assert not simulate.holds(made, 0, 298, 299)
    empty = Picture(made.image, clamp[:0], ())
    assert not simulate.holds(empty, 149, 0, 299)


@pytest.mark.slow
def test_one_patch_in_five_holds_a_clamp() -> None:
    frame = simulate.patches(1, 12)
    read = read_frame(frame, TABLE)
    assert read.notes == ()
    pool = PatchPool.of(read.frame)
    assert len(pool) == 12 * 21
    assert pool.classes == ["no clamp", CLAMP]
    assert np.bincount(pool.picture).tolist() == [21] * 12
    assert 0.1 < pool.label.mean() < 0.3
    assert pixels(pool.images[0]).shape == (299, 299, 3)
    assert set(pool.place[:, 2].tolist()) == {299}
    assert pool.features == []


def test_pictures_are_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = simulate.kept(0, 1, tmp_path)
    (path,) = (tmp_path / "generated").iterdir()
    monkeypatch.setattr(simulate, "patches", lambda *_: pytest.fail("drawn again"))
    pd.testing.assert_frame_equal(simulate.kept(0, 1, tmp_path), made, check_dtype=False)
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:500])
    pd.testing.assert_frame_equal(simulate.kept(0, 1, tmp_path), made, check_dtype=False)


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


def shown(pool: PatchPool) -> Prepared:
    n, x = len(pool), np.eye(len(pool), 2)
    zeros = np.zeros(n, dtype=np.int64)
    rows = Rows(pool, np.arange(n), zeros, "columns", Scaling.fit(x, 1), x)
    return Prepared(ClampSettings(), {}, rows, torch.device("cpu"), mosaics(pool, 1280))


def is_red(image: np.ndarray) -> np.ndarray:
    return (image[..., 0] > 130) & (image[..., 2] < 90)


def test_pictures_of_several_shapes_keep_them() -> None:
    sizes = [(640, 360), (360, 640), (500, 500)]
    pool = pool_of(sizes, (60, 120, 200, 100))
    answer = patches(shown(pool), [0, 1, 2])
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
    (image,) = patches(shown(pool), [0])["image"]
    assert image.shape == (SIDE, SIDE, 3)
    red = is_red(image)
    assert red.any(0).sum() == pytest.approx(SIDE, abs=4)
    assert red.any(1).sum() == pytest.approx(SIDE / 2, abs=4)


def test_squares_fill_the_view() -> None:
    pool = pool_of([(640, 360)], (60, 120, 150, 149))
    (image,) = patches(shown(pool), [0])["image"]
    assert is_red(image).mean() > 0.97
