"""Weights of points inside polygons by the people there, in place of by area.

A district's rate is an average over its people, so they decide which part of a field it averages.
People are given at locations (points with a population, or small polygons, each represented by a
point inside it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from scant.errors import BadInput
from scant.tables import geometry

_GROWTH = 1.25  # factor of the side of cells in which locations are merged, until few enough


@dataclass(frozen=True)
class People:
    """Locations of people.

    Attributes:
        places: Longitude and latitude in degrees.
        number: Number of people at each, or a multiple.
    """

    places: Float[np.ndarray, "m 2"]
    number: Float[np.ndarray, " m"]


def people(
    cells: Sequence[str | None], number: Float[np.ndarray, " m"], name: str, rows: np.ndarray
) -> People:
    """People in the rows of a table, at points or in small polygons.

    Args:
        cells: Cells of a geometry column (see `scant.tables.geometry`).
        number: Number of people of each row.
        name: Name of the table for messages.
        rows: Row numbers of the cells for messages.

    Raises:
        BadInput: A cell is no geometry, a number is negative or missing, or all are zero.
    """
    shapely, _ = geometry.libraries(name)
    geometries = geometry.geometries(cells, name, rows)
    bad = np.flatnonzero(~(np.isfinite(number) & (number >= 0)))
    if len(bad):
        raise BadInput(
            f"{name}, row {rows[bad[0]]}: its population is {number[bad[0]]:g}; give a number of "
            "people, zero or more."
        )
    if not (number > 0).any():
        raise BadInput(f"{name}: the population of all {len(number):,} places is zero.")
    return People(shapely.get_coordinates(shapely.point_on_surface(geometries)), number)


def weighted(
    shapes: np.ndarray,
    filled: Sequence[Float[np.ndarray, "_ 3"]],
    locations: Float[np.ndarray, "m 2"],
    number: Float[np.ndarray, " m"],
    count: int,
) -> tuple[list[Float[np.ndarray, "_ 3"]], int]:
    """Replace points weighted by area by points weighted by people.

    If more than `count` locations lie inside a polygon, those in one cell of a grid are merged at
    their center of gravity. Polygons without people, and points, are unchanged.

    Args:
        shapes: Geometries (shapely) in a plane.
        filled: Points inside each, with shares of the area.
        locations: Locations of people in the same plane.
        number: Number of people at each.
        count: Maximum number of points inside each polygon.

    Returns:
        The points and shares, and the number of polygons without people.
    """
    import shapely

    inhabited = number > 0
    locations, number = locations[inhabited], number[inhabited]
    tree = shapely.STRtree(shapely.points(locations))
    areal = np.flatnonzero(shapely.area(shapes) > 0)
    which, inside = tree.query(shapes[areal], predicate="intersects")
    order = np.argsort(which, kind="stable")
    split_points = np.searchsorted(which[order], np.arange(1, len(areal)))
    result, empty = list(filled), 0
    for shape, indices in zip(areal, np.split(inside[order], split_points)):
        if not len(indices):
            empty += 1
            continue
        result[shape] = _merged(locations[indices], number[indices], count)
    return result, empty


def _merged(
    locations: Float[np.ndarray, "m 2"], number: Float[np.ndarray, " m"], count: int
) -> Float[np.ndarray, "k 3"]:
    low, span = locations.min(0), np.ptp(locations, axis=0)
    side = max(float(span.max()), 1e-300) / max(len(locations), 1)
    cell = np.arange(len(locations))
    while len(np.unique(cell)) > count:
        column, row = (np.floor((locations - low) / side)).astype(np.int64).T
        cell = column * (int(row.max()) + 1) + row
        side *= _GROWTH
    _, group = np.unique(cell, return_inverse=True)
    people = np.bincount(group, number)
    center = [np.bincount(group, number * v) / people for v in locations.T]
    return np.column_stack([*center, people / people.sum()])
