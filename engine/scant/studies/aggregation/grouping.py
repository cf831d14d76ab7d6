"""Polygons merged into a few contiguous groups: what is known where a map is published coarsely.

Regions grow from seeds drawn at random, the smallest first, by one neighbor at a time, so that
groups are connected and of like numbers of polygons. Counts and exposures of a group are sums, so
that its rate is what its parts' people have together.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from scant.errors import BadInput
from scant.studies.split import TEST, TRAIN
from scant.tables import geometry

_NEAR = 1e-6  # degrees between polygons that share a border (a tenth of a meter)

Neighbors = list[Int[np.ndarray, " _"]]


def neighbors(shapes: np.ndarray) -> Neighbors:
    """Neighbors of each polygon; islands are joined to the nearest one, so that all connect.

    Args:
        shapes: Polygons (shapely) in degrees.
    """
    shapely, _ = geometry.libraries("the map")
    n = len(shapes)
    a, b = shapely.STRtree(shapes).query(shapes, predicate="dwithin", distance=_NEAR)
    while True:
        pairs = coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
        count, component = connected_components(pairs, directed=False)
        if count == 1:
            return [np.unique(b[(a == i) & (b != i)]) for i in range(n)]
        inside, beyond = (np.flatnonzero(own) for own in (component == 0, component != 0))
        far = shapely.distance(shapes[inside][:, None], shapes[beyond])
        i, j = np.unravel_index(int(far.argmin()), far.shape)
        a, b = np.append(a, [inside[i], beyond[j]]), np.append(b, [beyond[j], inside[i]])


def regions(near: Neighbors, groups: int, seed: int = 0) -> Int[np.ndarray, " n"]:
    """The number of each polygon's group, of so many contiguous ones.

    Args:
        near: See `neighbors`; a path joins any two.
        groups: 1 to n.
        seed: Another one, another grouping.

    Raises:
        BadInput: More groups than polygons, or none.
    """
    n = len(near)
    if not 1 <= groups <= n:
        raise BadInput(f"{n:,} polygons make 1 to {n:,} groups; got {groups:,}.")
    rng = np.random.default_rng([seed, groups])
    group = np.full(n, -1)
    group[rng.permutation(n)[:groups]] = np.arange(groups)
    while (group < 0).any():
        size = np.bincount(group[group >= 0], minlength=groups)
        # Of regions of one size, any; of those that are closed in, none.
        for g in np.lexsort((rng.random(groups), size)):
            around = np.unique(np.concatenate([near[i] for i in np.flatnonzero(group == g)]))
            around = around[group[around] < 0] if len(around) else around
            if len(around):
                group[rng.choice(around)] = g
                break
    return group


def merged(
    table: pd.DataFrame,
    task: str,
    groups: int,
    seed: int = 0,
    *,
    shares: tuple[str, ...] = (),
) -> pd.DataFrame:
    """The table with one task's counts known for groups of its polygons only.

    Args:
        table: Long form with `geometry`, `y` (counts) and `exposure`; a row for each polygon.
        task: Whose polygons are merged.
        groups: How many there are to be.
        seed: Of the grouping.
        shares: Further columns, which a group has the mean of, weighted by exposure.

    Returns:
        The other tasks' rows as they are; the groups, to learn from; the task's own rows, held out.

    Raises:
        BadInput: No such task, or a number of groups that cannot be.
    """
    shapely, _ = geometry.libraries("the map")
    own = table[table["task"] == task].reset_index(drop=True)
    if own.empty:
        raise BadInput(f"There is no task {task!r} whose polygons could be merged.")
    shapes = geometry.geometries(own[geometry.COLUMN].tolist(), "the map", own.index.to_numpy())
    group = regions(neighbors(shapes), groups, seed)
    weight = own["exposure"].to_numpy(float)
    total = np.bincount(group, weight)
    made = pd.DataFrame(
        {
            "task": task,
            "y": np.bincount(group, own["y"].to_numpy(float)),
            "exposure": total,
            **{name: np.bincount(group, weight * own[name]) / total for name in shares},
            geometry.COLUMN: geometry.in_degrees(
                np.array([shapely.union_all(shapes[group == g]) for g in range(groups)]),
                geometry.DEGREES,
                "the map",
            ),
            "split": TRAIN,
        }
    )
    others = table[table["task"] != task]
    return pd.concat([others, made, own.assign(split=TEST)], ignore_index=True)
