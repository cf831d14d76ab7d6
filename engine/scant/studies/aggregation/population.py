"""Polygons weighted by the people inside them, in place of by area.

Who counts the cases of a district counts people: where these live decides which part of a field its
rate is the average of. People are known at places (points with a population, or small polygons,
each taken for a point inside it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from scant.errors import BadInput
from scant.tables import geometry

_GROWTH = 1.25  # of the side of cells in which places are put together, until they are few enough


@dataclass(frozen=True)
class People:
    """Where people live.

    Attributes:
        places: Longitude and latitude in degrees.
        number: People at each, or anything in proportion.
    """

    places: Float[np.ndarray, "m 2"]
    number: Float[np.ndarray, " m"]


def people(
    cells: Sequence[str | None], number: Float[np.ndarray, " m"], name: str, rows: np.ndarray
) -> People:
    """People of rows of a table: of points, or of small polygons.

    Args:
        cells: Of a geometry column (see `scant.tables.geometry`).
        number: People of each row.
        name: What messages call the table.
        rows: Of the cells, for messages.

    Raises:
        BadInput: A cell that is no geometry; a number that is below zero or none; nobody at all.
    """
    shapely, _ = geometry.libraries(name)
    drawn = geometry.geometries(cells, name, rows)
    bad = np.flatnonzero(~(np.isfinite(number) & (number >= 0)))
    if len(bad):
        raise BadInput(
            f"{name}, row {rows[bad[0]]}: its population is {number[bad[0]]:g}; give a number of "
            "people, zero or more."
        )
    if not (number > 0).any():
        raise BadInput(f"{name}: the population of all {len(number):,} places is zero.")
    return People(shapely.get_coordinates(shapely.point_on_surface(drawn)), number)


def weighted(
    shapes: np.ndarray,
    filled: Sequence[Float[np.ndarray, "_ 3"]],
    places: Float[np.ndarray, "m 2"],
    number: Float[np.ndarray, " m"],
    count: int,
) -> tuple[list[Float[np.ndarray, "_ 3"]], int]:
    """Points inside polygons with their shares of the people, for points that share the area.

    Where more than `count` places lie inside a polygon, those of a cell of a grid are put together
    at their center of gravity. Polygons without people, and points, stay as they are.

    Args:
        shapes: shapely's, in a plane.
        filled: Points and shares of the area of each.
        places: In the same plane.
        number: People at each.
        count: Points inside each polygon, at most.

    Returns:
        The points and shares, and how many polygons have nobody inside.
    """
    import shapely

    lived = number > 0
    places, number = places[lived], number[lived]
    tree = shapely.STRtree(shapely.points(places))
    areal = np.flatnonzero(shapely.area(shapes) > 0)
    which, inside = tree.query(shapes[areal], predicate="intersects")
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(1, len(areal)))
    result, empty = list(filled), 0
    for shape, own in zip(areal, np.split(inside[order], ends)):
        if not len(own):
            empty += 1
            continue
        result[shape] = _put_together(places[own], number[own], count)
    return result, empty


def _put_together(
    places: Float[np.ndarray, "m 2"], number: Float[np.ndarray, " m"], count: int
) -> Float[np.ndarray, "k 3"]:
    low, span = places.min(0), np.ptp(places, axis=0)
    side = max(float(span.max()), 1e-300) / max(len(places), 1)
    cell = np.arange(len(places))
    while len(np.unique(cell)) > count:
        column, row = (np.floor((places - low) / side)).astype(np.int64).T
        cell = column * (int(row.max()) + 1) + row
        side *= _GROWTH
    _, place = np.unique(cell, return_inverse=True)
    people = np.bincount(place, number)
    middle = [np.bincount(place, number * v) / people for v in places.T]
    return np.column_stack([*middle, people / people.sum()])
