"""Polygons merged into contiguous groups, and what becomes of their counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies.aggregation.grouping import merged, neighbors, regions
from scant.tables import geometry

shapely = pytest.importorskip("shapely")
pytest.importorskip("pyproj")

SIDE = 5
CELLS = np.array([shapely.box(x, y, x + 1, y + 1) for y in range(SIDE) for x in range(SIDE)])


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    half = {
        "y": rng.poisson(5.0, len(CELLS)).astype(float),
        "exposure": rng.uniform(10, 100, len(CELLS)),
        "share": rng.uniform(0, 1, len(CELLS)),
        "geometry": geometry.in_degrees(CELLS, 4326, "cells"),
        "split": "train",
    }
    return pd.concat([pd.DataFrame({"task": t, **half}) for t in ("a", "b")], ignore_index=True)


def connected(near: list[np.ndarray], members: np.ndarray) -> bool:
    reached = {int(members[0])}
    while new := {int(j) for i in reached for j in near[i] if j in members} - reached:
        reached |= new
    return reached == set(members.tolist())


def test_neighbors_touch_and_an_island_has_the_nearest() -> None:
    near = neighbors(np.append(CELLS, shapely.box(8, 1, 9, 2)))
    assert near[0].tolist() == [1, 5, 6]
    assert near[12].tolist() == [6, 7, 8, 11, 13, 16, 17, 18]
    island = len(CELLS)
    assert len(near[island]) == 1
    joined = int(near[island][0])
    assert joined % SIDE == SIDE - 1  # the side towards it
    assert island in near[joined]


@pytest.mark.parametrize("groups", [1, 4, 7, 25])
@pytest.mark.parametrize("seed", range(4))
def test_regions_are_connected_and_of_like_size(groups: int, seed: int) -> None:
    near = neighbors(CELLS)
    group = regions(near, groups, seed)
    assert np.unique(group).tolist() == list(range(groups))
    for g in range(groups):
        assert connected(near, np.flatnonzero(group == g))
    assert np.bincount(group).max() <= 3 * len(CELLS) / groups
    np.testing.assert_array_equal(group, regions(near, groups, seed))


def test_seeds_give_other_groups_and_impossible_numbers_are_refused() -> None:
    near = neighbors(CELLS)
    assert (regions(near, 5, 0) != regions(near, 5, 1)).any()
    for groups in (0, 26):
        with pytest.raises(BadInput, match="make 1 to 25 groups"):
            regions(near, groups)
    with pytest.raises(BadInput, match="no task 'c'"):
        merged(table(), "c", 3)


def test_a_group_has_its_members_counts_people_and_area() -> None:
    before = table()
    after = merged(before, "b", 6, seed=3, shares=("share",))
    kept = after[after["task"] == "a"].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, before[before["task"] == "a"])
    own = after[(after["task"] == "b") & (after["split"] == "test")]
    groups = after[(after["task"] == "b") & (after["split"] == "train")]
    assert (len(own), len(groups)) == (25, 6)
    assert groups["y"].sum() == own["y"].sum()
    assert groups["exposure"].sum() == pytest.approx(own["exposure"].sum())
    shapes = geometry.geometries(groups["geometry"].tolist(), "groups", range(6))
    assert shapely.area(shapes).sum() == pytest.approx(25)
    for shape, (_, row) in zip(shapes, groups.iterrows()):
        inside = own[shapely.contains(shape, shapely.centroid(CELLS))]
        assert row["y"] == inside["y"].sum()
        weights = inside["exposure"] / inside["exposure"].sum()
        assert row["share"] == pytest.approx(float((weights * inside["share"]).sum()))
