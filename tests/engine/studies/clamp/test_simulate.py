"""Invented pictures of pipe joints, and what is said of their patches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.studies.clamp import simulate
from scant.studies.clamp.simulate import Picture
from scant.studies.clamp.table import CLAMP, TABLE, PatchPool
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
