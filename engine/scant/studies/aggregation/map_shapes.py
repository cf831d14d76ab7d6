"""Polygons of a run for a page: simplified rings on an integer grid, and the rows of each layer.

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
MAX_SHAPES = 3000  # polygons that are sent to a page
_VERTICES = 20_000  # approximate total of all polygons
_GRID = 4000  # grid steps across the map
_COARSEST = 50  # the tolerance stays below the map's width divided by this
_GROWTH = 1.7  # factor of the tolerance, until there are few enough vertices
_DOT = 0.011  # radius of a polygon that represents a point, as a share of the map's width
_CORNERS = 8  # vertices of this polygon
_DIGITS = 6
_OVERLAP = 0.02  # maximum share of the held-out area that overlaps with other polygons


def described(
    flat: np.ndarray,
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    rates: Sequence[str],
    scarce: str,
    names: Sequence[str] | None = None,
) -> tuple[dict[str, Any], Int[np.ndarray, " m"]]:
    """Metadata of a map, and the indices of its rows in the order of its layers.

    Args:
        flat: Geometries of the rows in meters (shapely).
        observed: The rows as arrays.
        rows: Mask of the training rows.
        rates: Kind of values of each task: COUNTS and RATES are weighted by exposures, VALUES not.
        scarce: Name of the scarce task, whose layers come first.
        names: Names of the rows' polygons; None: numbers.
    """
    shapely, _ = geometry.libraries("the map")
    _, first, number = np.unique(shapely.to_wkb(flat), return_index=True, return_inverse=True)
    order = np.argsort(first)  # order of the table
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    number, first = rank[number.ravel()], first[order]
    selected = evenly_spaced(np.arange(len(first)), MAX_SHAPES)
    visible = np.isin(number, selected)
    number, first = np.searchsorted(selected, number), first[selected]
    groups = [
        part
        for name, indices in _groups(observed, scarce, visible)
        for part in _split_overlaps(shapely, flat, observed.test, name, indices)
    ]
    first_layer: dict[int, int] = {}  # first layer of each shape
    for k, (_, indices) in enumerate(groups):
        for i in number[indices].tolist():
            first_layer.setdefault(i, k)
    layer = np.array([first_layer[i] for i in range(len(first))], dtype=np.int64)
    rings, origin, unit = _on_grid(shapely, flat[first], layer)
    default_names = [f"{i + 1}" for i in range(len(first))]
    metadata = {
        "origin": [round(float(v), 3) for v in origin],
        "unit": unit,
        "shapes": rings,
        "areas": [float(f"{a / 1e6:.6g}") for a in shapely.area(flat[first])],
        "places": default_names if names is None else [str(names[i]) for i in first],
        "layers": [
            _layer(observed, rows, rates, number, indices, name) for name, indices in groups
        ],
        "rows": [int(visible.sum()), len(flat)],
    }
    layer_rows = [row_indices for _, row_indices in groups]
    return metadata, np.concatenate(layer_rows) if layer_rows else np.empty(0, dtype=np.int64)


def _groups(
    observed: Supports, scarce: str, visible: Bool[np.ndarray, " n"]
) -> Iterator[tuple[str, Int[np.ndarray, " m"]]]:
    """Layer name and rows of each task and time, the scarce task first."""
    further = slice(2, None)
    tasks = sorted(range(len(observed.tasks)), key=lambda t: observed.tasks[t] != scarce)
    for t in tasks:
        indices = np.flatnonzero((observed.task == t) & visible)
        bounds = np.hstack([observed.lo[indices, further], observed.hi[indices, further]])
        if not bounds.shape[1]:
            if len(indices):
                yield observed.tasks[t], indices
            continue
        unique_bounds, group = np.unique(bounds, axis=0, return_inverse=True)
        for i in reversed(range(len(unique_bounds))):  # the last time first
            lo, hi = np.split(unique_bounds[i], 2)
            when = ", ".join(
                f"{dim} {a:g}" if a == b else f"{dim} {a:g} to {b:g}"
                for dim, a, b in zip(observed.dims[further], lo, hi)
            )
            yield f"{observed.tasks[t]}, {when}", indices[group.ravel() == i]


def _split_overlaps(
    shapely: Any,
    flat: np.ndarray,
    test: Bool[np.ndarray, " n"],
    name: str,
    indices: Int[np.ndarray, " m"],
) -> list[tuple[str, Int[np.ndarray, " _"]]]:
    """Split a layer in two where held-out polygons overlap others; the finer ones come first.

    Counties are an example, if only groups of them were observed.
    """
    held, learned = indices[test[indices]], indices[~test[indices]]
    if not len(held) or not len(learned):
        return [(name, indices)]
    tree = shapely.STRtree(flat[learned])
    a, b = tree.query(flat[held], predicate="intersects")
    common = shapely.area(shapely.intersection(flat[held[a]], flat[learned[b]])).sum()
    if common <= _OVERLAP * shapely.area(flat[held]).sum():
        return [(name, indices)]
    parts = [(f"{name}, held out", held), (f"{name}, learned from", learned)]
    return sorted(parts, key=lambda part: -len(part[1]))


def _layer(
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    rates: Sequence[str],
    number: Int[np.ndarray, " n"],
    indices: Int[np.ndarray, " m"],
    name: str,
) -> dict[str, Any]:
    task = int(observed.task[indices[0]])
    y, exposure = observed.y[indices], observed.exposure[indices]
    rate = y / exposure if rates[task] == COUNTS else y
    trained = rows & (observed.task == task)
    values, weight = observed.y[trained], observed.exposure[trained]
    if rates[task] == COUNTS:
        values = values / weight
    elif rates[task] == VALUES:
        weight = np.ones_like(values)
    threshold = (values * weight).sum() / weight.sum() if trained.any() else 0.0
    first = indices[0]
    return {
        "name": name,
        "task": task,
        "counts": rates[task] == COUNTS,
        "shape": number[indices].tolist(),
        "y": _short(rate),
        **({"exposure": _short(exposure)} if (exposure != 1).any() else {}),
        "test": observed.test[indices].tolist(),
        "threshold": float(f"{threshold:.4g}"),
        "lo": observed.lo[first, 2:].tolist(),
        "hi": observed.hi[first, 2:].tolist(),
    }


def _short(values: Float[np.ndarray, " n"]) -> list[float | None]:
    """Rounded numbers for JSON; None if not finite."""
    return [float(f"{v:.{_DIGITS}g}") if np.isfinite(v) else None for v in values]


# --- drawing --------------------------------------------------------------------------------------


def _on_grid(
    shapely: Any, flat: np.ndarray, layer: Int[np.ndarray, " s"]
) -> tuple[list[Any], tuple[float, float], float]:
    """Rings on an integer grid, the grid's origin in meters, and its unit in meters."""
    if not len(flat):
        return [], (0.0, 0.0), 1.0
    west, south, east, north = shapely.total_bounds(flat)
    width = max(east - west, north - south, 1e-6)
    unit = float(f"{width / _GRID:.4g}")
    areal = shapely.area(flat) > 0
    turn = 2 * np.pi * np.arange(_CORNERS) / _CORNERS
    dot = _DOT * width * np.column_stack([np.cos(turn), np.sin(turn)])
    shapes = flat.copy()
    for i in np.flatnonzero(~areal):
        shapes[i] = shapely.Polygon(shapely.get_coordinates(flat[i])[0] + dot)
    thinner = _thinned(shapely, shapes, np.where(areal, layer, -1), unit, width)
    return [_rings(shapely, s, (west, south), unit) for s in thinner], (west, south), unit


def _thinned(
    shapely: Any, shapes: np.ndarray, layer: Int[np.ndarray, " s"], finest: float, width: float
) -> np.ndarray:
    """Simplify polygons; neighbors in a layer keep their common borders."""
    tolerance, result = finest, shapes
    while shapely.get_num_coordinates(result).sum() > _VERTICES and tolerance < width / _COARSEST:
        result = shapes.copy()
        for k in set(layer[layer >= 0].tolist()):
            in_layer = layer == k
            tiled = shapely.coverage_is_valid(shapes[in_layer])
            thin = shapely.coverage_simplify if tiled else shapely.simplify
            result[in_layer] = thin(shapes[in_layer], tolerance)
        vanished = ~(shapely.area(result) > 0)
        result[vanished] = shapely.envelope(shapes[vanished])
        tolerance *= _GROWTH
    return result


def _rings(
    shapely: Any, shape: Any, origin: tuple[float, float], unit: float
) -> list[list[list[list[int]]]]:
    """Rings of a polygon or multipolygon on the grid, without islands that vanish there."""
    parts = shapely.get_parts(shape)
    parts = parts[np.argsort(-shapely.area(parts), kind="stable")]
    result = []
    for k, part in enumerate(parts):
        rings = [part.exterior, *part.interiors]
        cells = [_cells(shapely.get_coordinates(ring), origin, unit) for ring in rings]
        if len(cells[0]) < 3 and k:
            continue
        if len(cells[0]) < 3:  # the whole shape vanishes: a dot stays
            x, y = cells[0][0]
            cells = [np.array([(x - 1, y), (x, y + 1), (x + 1, y), (x, y - 1)])]
        visible = [cells[0], *(c for c in cells[1:] if len(c) >= 3)]
        result.append([[c[:, 0].tolist(), c[:, 1].tolist()] for c in visible])
    return result


def _cells(
    ring: Float[np.ndarray, "v 2"], origin: tuple[float, float], unit: float
) -> Int[np.ndarray, "w 2"]:
    """Vertices on the grid, without the last one, which repeats the first."""
    cells = np.rint((ring[:-1] - origin) / unit).astype(np.int64)
    new = np.any(cells != np.roll(cells, 1, axis=0), axis=1)
    return cells[new] if new.any() else cells[:1]
