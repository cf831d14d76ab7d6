"""Polygons merged into a few contiguous groups, as on maps that are published coarsely.

Regions grow from random seeds by one neighbor at a time, the smallest region first, so that groups
are connected and of similar numbers of polygons. Counts and exposures of a group are sums, so that
its rate is that of all its people together.
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

_BORDER_TOLERANCE = 1e-6  # degrees between polygons with a common border (a tenth of a meter)

Neighbors = list[Int[np.ndarray, " _"]]


def neighbors(shapes: np.ndarray) -> Neighbors:
    """Neighbors of each polygon; islands have the nearest polygon, so that all connect.

    Args:
        shapes: Polygons (shapely) in degrees.
    """
    shapely, _ = geometry.libraries("the map")
    n = len(shapes)
    a, b = shapely.STRtree(shapes).query(shapes, predicate="dwithin", distance=_BORDER_TOLERANCE)
    while True:
        pairs = coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
        count, component = connected_components(pairs, directed=False)
        if count == 1:
            return [np.unique(b[(a == i) & (b != i)]) for i in range(n)]
        reached, unreached = (np.flatnonzero(mask) for mask in (component == 0, component != 0))
        distance = shapely.distance(shapes[reached][:, None], shapes[unreached])
        i, j = np.unravel_index(int(distance.argmin()), distance.shape)
        a, b = np.append(a, [reached[i], unreached[j]]), np.append(b, [unreached[j], reached[i]])


def regions(adjacent: Neighbors, groups: int, seed: int = 0) -> Int[np.ndarray, " n"]:
    """Number of each polygon's group, for `groups` contiguous groups.

    Args:
        adjacent: Neighbors of each polygon (`neighbors`), connected.
        groups: Number of groups, 1 to n.
        seed: Seed of the grouping.

    Raises:
        BadInput: There are more groups than polygons, or none.
    """
    n = len(adjacent)
    if not 1 <= groups <= n:
        raise BadInput(f"{n:,} polygons make 1 to {n:,} groups; got {groups:,}.")
    rng = np.random.default_rng([seed, groups])
    group = np.full(n, -1)
    group[rng.permutation(n)[:groups]] = np.arange(groups)
    while (group < 0).any():
        size = np.bincount(group[group >= 0], minlength=groups)
        # The smallest region first, ties at random; enclosed regions cannot grow.
        for g in np.lexsort((rng.random(groups), size)):
            candidates = np.unique(
                np.concatenate([adjacent[i] for i in np.flatnonzero(group == g)])
            )
            candidates = candidates[group[candidates] < 0] if len(candidates) else candidates
            if len(candidates):
                group[rng.choice(candidates)] = g
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
    """Table with one task's counts given for groups of its polygons only.

    Args:
        table: Long form with `geometry`, `y` (counts) and `exposure`; a row for each polygon.
        task: Task whose polygons are merged.
        groups: Number of groups.
        seed: Seed of the grouping.
        shares: Further columns; groups have their means, weighted by exposure.

    Returns:
        The other tasks' rows, unchanged; the groups as training rows; the task's rows, held out.

    Raises:
        BadInput: The task is absent, or the number of groups is invalid.
    """
    shapely, _ = geometry.libraries("the map")
    task_rows = table[table["task"] == task].reset_index(drop=True)
    if task_rows.empty:
        raise BadInput(f"There is no task {task!r} whose polygons could be merged.")
    shapes = geometry.geometries(
        task_rows[geometry.COLUMN].tolist(), "the map", task_rows.index.to_numpy()
    )
    group = regions(neighbors(shapes), groups, seed)
    weight = task_rows["exposure"].to_numpy(float)
    total = np.bincount(group, weight)
    grouped = pd.DataFrame(
        {
            "task": task,
            "y": np.bincount(group, task_rows["y"].to_numpy(float)),
            "exposure": total,
            **{name: np.bincount(group, weight * task_rows[name]) / total for name in shares},
            geometry.COLUMN: geometry.in_degrees(
                np.array([shapely.union_all(shapes[group == g]) for g in range(groups)]),
                geometry.DEGREES,
                "the map",
            ),
            "split": TRAIN,
        }
    )
    others = table[table["task"] != task]
    return pd.concat([others, grouped, task_rows.assign(split=TEST)], ignore_index=True)
