"""The polygons of a run for a page: simplified rings in whole numbers, and the rows of each layer.

`map_layers` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from scant.studies.aggregation.supports import Supports
from scant.studies.split import evenly_spaced
from scant.tables import geometry

COUNTS, RATES, VALUES = "counts", "rates", "values"
MAX_SHAPES = 3000  # that travel to a page
_VERTICES = 20_000  # of all of them, about
_GRID = 4000  # whole numbers across the map
_COARSEST = 50  # parts of its width, finer than which polygons are simplified
_GROWTH = 1.7  # of the tolerance, until there are few enough vertices
_DOT = 0.011  # radius of a point that is drawn as a polygon, of the map's width
_CORNERS = 8  # of such a polygon
_DIGITS = 6
_OVERLAP = 0.02  # of their area that held-out polygons may have in common with others


def described(
    flat: np.ndarray,
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    rates: Sequence[str],
    scarce: str,
    places: Sequence[str] | None = None,
) -> tuple[dict[str, Any], Int[np.ndarray, " m"]]:
    """Metadata of a map, and the indices of its rows in the order of its layers.

    Args:
        flat: Geometries of the rows in metres (shapely).
        observed: The rows as arrays.
        rows: Which of them are training rows.
        rates: Kind of values of each task: COUNTS and RATES are weighted by exposures, VALUES not.
        scarce: Name of the scarce task, whose layers come first.
        places: Names of the rows' polygons; None: numbers.
    """
    shapely, _ = geometry.libraries("the map")
    _, first, number = np.unique(shapely.to_wkb(flat), return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they come in the table
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    number, first = rank[number.ravel()], first[order]
    kept = evenly_spaced(np.arange(len(first)), MAX_SHAPES)
    shown = np.isin(number, kept)
    number, first = np.searchsorted(kept, number), first[kept]
    groups = [
        apart
        for name, members in _groups(observed, scarce, shown)
        for apart in _split_overlaps(shapely, flat, observed.test, name, members)
    ]
    where: dict[int, int] = {}  # the layer that a shape is first in
    for k, (_, members) in enumerate(groups):
        for i in number[members].tolist():
            where.setdefault(i, k)
    layer = np.array([where[i] for i in range(len(first))], dtype=np.int64)
    drawn, origin, unit = _on_grid(shapely, flat[first], layer)
    numbers = [f"{i + 1}" for i in range(len(first))]
    made = {
        "origin": [round(float(v), 3) for v in origin],
        "unit": unit,
        "shapes": drawn,
        "areas": [float(f"{a / 1e6:.6g}") for a in shapely.area(flat[first])],
        "places": numbers if places is None else [str(places[i]) for i in first],
        "layers": [
            _layer(observed, rows, rates, number, members, name) for name, members in groups
        ],
        "rows": [int(shown.sum()), len(flat)],
    }
    every = [own for _, own in groups]
    return made, np.concatenate(every) if every else np.empty(0, dtype=np.int64)


def _groups(
    observed: Supports, scarce: str, shown: Bool[np.ndarray, " n"]
) -> Iterator[tuple[str, Int[np.ndarray, " m"]]]:
    """Rows of each task and time, with the name of their layer; the scarce task's first."""
    further = slice(2, None)
    tasks = sorted(range(len(observed.tasks)), key=lambda t: observed.tasks[t] != scarce)
    for t in tasks:
        mine = np.flatnonzero((observed.task == t) & shown)
        bounds = np.hstack([observed.lo[mine, further], observed.hi[mine, further]])
        if not bounds.shape[1]:
            if len(mine):
                yield observed.tasks[t], mine
            continue
        ends, place = np.unique(bounds, axis=0, return_inverse=True)
        for i in reversed(range(len(ends))):  # the last time first
            lo, hi = np.split(ends[i], 2)
            when = ", ".join(
                f"{dim} {a:g}" if a == b else f"{dim} {a:g} to {b:g}"
                for dim, a, b in zip(observed.dims[further], lo, hi)
            )
            yield f"{observed.tasks[t]}, {when}", mine[place.ravel() == i]


def _split_overlaps(
    shapely: Any,
    flat: np.ndarray,
    test: Bool[np.ndarray, " n"],
    name: str,
    members: Int[np.ndarray, " m"],
) -> list[tuple[str, Int[np.ndarray, " _"]]]:
    """Split a layer in two where held-out polygons overlap others; the finer ones come first.

    Counties are an example, if only groups of them were observed.
    """
    held, learned = members[test[members]], members[~test[members]]
    if not len(held) or not len(learned):
        return [(name, members)]
    tree = shapely.STRtree(flat[learned])
    one, other = tree.query(flat[held], predicate="intersects")
    common = shapely.area(shapely.intersection(flat[held[one]], flat[learned[other]])).sum()
    if common <= _OVERLAP * shapely.area(flat[held]).sum():
        return [(name, members)]
    parts = [(f"{name}, held out", held), (f"{name}, learned from", learned)]
    return sorted(parts, key=lambda part: -len(part[1]))


def _layer(
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    rates: Sequence[str],
    number: Int[np.ndarray, " n"],
    members: Int[np.ndarray, " m"],
    name: str,
) -> dict[str, Any]:
    task = int(observed.task[members[0]])
    y, exposure = observed.y[members], observed.exposure[members]
    rate = y / exposure if rates[task] == COUNTS else y
    mine = rows & (observed.task == task)
    own, weight = observed.y[mine], observed.exposure[mine]
    if rates[task] == COUNTS:
        own = own / weight
    elif rates[task] == VALUES:
        weight = np.ones_like(own)
    threshold = (own * weight).sum() / weight.sum() if mine.any() else 0.0
    first = members[0]
    return {
        "name": name,
        "task": task,
        "counts": rates[task] == COUNTS,
        "shape": number[members].tolist(),
        "y": _short(rate),
        **({"exposure": _short(exposure)} if (exposure != 1).any() else {}),
        "test": observed.test[members].tolist(),
        "threshold": float(f"{threshold:.4g}"),
        "lo": observed.lo[first, 2:].tolist(),
        "hi": observed.hi[first, 2:].tolist(),
    }


def _short(values: Float[np.ndarray, " n"]) -> list[float | None]:
    """Numbers as they travel; None where there is none."""
    return [float(f"{v:.{_DIGITS}g}") if np.isfinite(v) else None for v in values]


# --- drawing --------------------------------------------------------------------------------------


def _on_grid(
    shapely: Any, flat: np.ndarray, layer: Int[np.ndarray, " s"]
) -> tuple[list[Any], tuple[float, float], float]:
    """Rings on an integer grid, the grid's origin in metres, and its unit in metres."""
    if not len(flat):
        return [], (0.0, 0.0), 1.0
    west, south, east, north = shapely.total_bounds(flat)
    wide = max(east - west, north - south, 1e-6)
    unit = float(f"{wide / _GRID:.4g}")
    areal = shapely.area(flat) > 0
    turn = 2 * np.pi * np.arange(_CORNERS) / _CORNERS
    round_ = _DOT * wide * np.column_stack([np.cos(turn), np.sin(turn)])
    shapes = flat.copy()
    for i in np.flatnonzero(~areal):
        shapes[i] = shapely.Polygon(shapely.get_coordinates(flat[i])[0] + round_)
    thinner = _thinned(shapely, shapes, np.where(areal, layer, -1), unit, wide)
    return [_rings(shapely, s, (west, south), unit) for s in thinner], (west, south), unit


def _thinned(
    shapely: Any, shapes: np.ndarray, layer: Int[np.ndarray, " s"], finest: float, wide: float
) -> np.ndarray:
    """Polygons with few enough vertices; neighbors of a layer go on sharing their borders."""
    tolerance, made = finest, shapes
    while shapely.get_num_coordinates(made).sum() > _VERTICES and tolerance < wide / _COARSEST:
        made = shapes.copy()
        for k in set(layer[layer >= 0].tolist()):
            own = layer == k
            tiled = shapely.coverage_is_valid(shapes[own])
            thin = shapely.coverage_simplify if tiled else shapely.simplify
            made[own] = thin(shapes[own], tolerance)
        gone = ~(shapely.area(made) > 0)
        made[gone] = shapely.envelope(shapes[gone])
        tolerance *= _GROWTH
    return made


def _rings(
    shapely: Any, shape: Any, origin: tuple[float, float], unit: float
) -> list[list[list[list[int]]]]:
    """A polygon's or multipolygon's rings on the grid; islands that vanish there are left out."""
    parts = shapely.get_parts(shape)
    parts = parts[np.argsort(-shapely.area(parts), kind="stable")]
    made = []
    for k, part in enumerate(parts):
        rings = [part.exterior, *part.interiors]
        cells = [_cells(shapely.get_coordinates(ring), origin, unit) for ring in rings]
        if len(cells[0]) < 3 and k:
            continue
        if len(cells[0]) < 3:  # the whole shape vanishes: a dot stays
            x, y = cells[0][0]
            cells = [np.array([(x - 1, y), (x, y + 1), (x + 1, y), (x, y - 1)])]
        kept = [cells[0], *(c for c in cells[1:] if len(c) >= 3)]
        made.append([[c[:, 0].tolist(), c[:, 1].tolist()] for c in kept])
    return made


def _cells(
    ring: Float[np.ndarray, "v 2"], origin: tuple[float, float], unit: float
) -> Int[np.ndarray, "w 2"]:
    """Vertices in whole numbers, without the last one, which is the first again."""
    cells = np.rint((ring[:-1] - origin) / unit).astype(np.int64)
    new = np.any(cells != np.roll(cells, 1, axis=0), axis=1)
    return cells[new] if new.any() else cells[:1]
