"""Invented alphabets: strokes that stay whole, people who differ, families that resemble."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import label as components
from sklearn.neighbors import KNeighborsClassifier

from scant.data_sources.open import sample
from scant.studies.omniglot import simulate
from scant.studies.omniglot.entry import ENTRY
from scant.studies.omniglot.settings import OmniglotSettings
from scant.studies.omniglot.table import TABLE, area, of
from scant.tables.read import read_frame


@pytest.mark.slow
def test_the_demonstration() -> None:
    frame = simulate.demo(OmniglotSettings())
    table = read_frame(frame, TABLE)
    assert table.notes == ()
    data = of(table.frame)
    assert [len(names) for names in data.classes] == [12, 12, 10]
    assert np.bincount(data.number).tolist() == [20] * 34
    assert data.x.shape == (680, 400)
    assert data.x.min() == 0.0
    assert 0.9 < data.x.max() <= 1.0
    assert 0.03 < data.x.mean() < 0.2
    assert (ENTRY.sources[0].size, len(frame.columns)) == ((680, 402), 402)
    assert frame.equals(simulate.demo(OmniglotSettings()))
    assert not np.allclose(data.x, of(simulate.demo(OmniglotSettings(data_seed=1))).x)
    assert len(sample(ENTRY, "demo", 50)) == 50


def test_both_sizes_are_the_same_drawings() -> None:
    sizes = {"A": (0, 2)}
    large, small = (simulate.alphabets(0, n, sizes=sizes, drawers=3) for n in (105, 20))
    np.testing.assert_allclose(area(large.x.reshape(-1, 105, 105), 20).reshape(6, -1), small.x)


def test_a_line_is_as_wide_as_its_pen_and_smooth_at_its_edge() -> None:
    along = np.linspace([20.0, 52.3], [80.0, 52.3], 72)
    drawn = simulate.ink(along[None, None], np.array([1]), np.array([2.0]))[0]
    column = drawn[:, 50]
    assert column.sum() == pytest.approx(4.0, abs=0.1)  # twice the radius
    assert ((column > 0) & (column < 1)).any()
    assert (column @ np.arange(105)) / column.sum() == pytest.approx(52.3, abs=0.05)
    assert drawn[52, 21:80].min() == 1.0
    none = simulate.ink(along[None, None], np.array([0]), np.array([2.0]))
    assert none.sum() == 0.0


def test_strokes_are_never_broken() -> None:
    data = simulate.alphabets(2, 105, sizes={"A": (0, 6)}, drawers=4)
    for image in data.x.reshape(-1, 105, 105):
        assert 1 <= components(image > 0.1, np.ones((3, 3)))[1] <= 3  # strokes of a character


def test_a_neighbor_is_right_about_half_the_time() -> None:
    """Hard enough that there is something to learn, easy enough that it can be learned."""
    data = simulate.alphabets(0)
    drawer = np.arange(len(data)) % simulate.DRAWERS
    right = []
    for d in range(3):
        mine = data.output == d
        train, test = mine & (drawer < 16), mine & (drawer >= 16)
        nearest = KNeighborsClassifier(1).fit(data.x[train], data.label[train])
        right.append(nearest.score(data.x[test], data.label[test]))
    assert 0.35 < np.mean(right) < 0.7


def test_alphabets_of_one_family_share_strokes() -> None:
    """Over seeds, the nearest knots in a related alphabet are nearer than in another one."""
    rng = np.random.default_rng(0)
    knots, _ = simulate._characters(rng, {"A": (0, 40), "B": (0, 40), "C": (1, 40)})
    shapes = knots - knots.mean(axis=2, keepdims=True)
    shapes = shapes / np.linalg.norm(shapes, axis=(2, 3), keepdims=True)
    flat = np.abs(shapes.reshape(3, 120, -1))  # alphabet, stroke; mirrored strokes are alike
    near = [np.linalg.norm(flat[0][:, None] - flat[i][None], axis=2).min(1) for i in (1, 2)]
    assert np.mean(near[0] < 1e-6) > 0.4
    assert np.mean(near[1] < 1e-6) == 0.0
