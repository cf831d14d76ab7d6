"""Polygons as supports: projected to metres in an equal-area system, filled with weighted points.

A polygon is cut by a grid into cells, each of which becomes a point at its center of gravity with
the cell's share of the area: a rule that is exact for linear functions, whose error falls with the
square of the cells' side. Holes, islands and slivers need no rule of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from scant.studies.aggregation.population import People, weighted
from scant.tables import geometry

DIMS = ("east", "north")  # metres from the center of the region
_WIDE = 100.0  # degrees of longitude or latitude, beyond which a region is rather the world
_ROUND = 330.0  # degrees of longitude that are all the way round
_VERTICES = 500  # of a polygon, of which more are thinned out before it is cut
_FINE = 0.02  # of a cell's side, which they may be moved by
_CELLS = 30  # of a grid for each point: of slivers and islands most are empty
_TURNS = 60
_GROWTH = 1.12  # of the cells' side, until there are few enough


@dataclass(frozen=True)
class Shapes:
    """Geometries of a table as the study takes them, in metres.

    Attributes:
        system: The projection, as PROJ writes it.
        lo: Lower left corners of what bounds them.
        hi: Upper right ones.
        inside: Points and weights, padded with weight 0; None where all are points.
        empty: Polygons without people, weighted by area.
    """

    system: str
    lo: Float[np.ndarray, "n 2"]
    hi: Float[np.ndarray, "n 2"]
    inside: Float[np.ndarray, "n k 3"] | None
    empty: int = 0


def shapes(
    cells: Sequence[str | None],
    system: str,
    count: int,
    name: str,
    rows: np.ndarray,
    people: People | None = None,
) -> Shapes:
    """Cells of a geometry column in an equal-area system, with points inside.

    Args:
        cells: See `scant.tables.geometry`.
        system: Of a fitted study; "" to choose one for the region of the cells.
        count: Points inside each polygon, at most.
        name: What messages call the table.
        rows: Of the cells, for messages.
        people: Whose number weighs the points; None: their areas do.

    Raises:
        BadInput: A cell that is no support, or the packages for maps are missing.
    """
    shapely, _ = geometry.libraries(name)
    drawn = geometry.geometries(cells, name, rows)
    if not system:
        system = equal_area(*geometry.extent(drawn))
    flat = projected(drawn, system)
    bounds = shapely.bounds(flat)
    areal = shapely.area(flat) > 0
    inside, empty = None, 0
    if areal.any():
        filled = [points(shapely.to_wkb(shape), count) for shape in flat]
        if people is not None:
            filled, empty = weighted(flat, filled, homes(people, system), people.number, count)
        inside = np.zeros((len(filled), max(len(own) for own in filled), 3))
        for i, own in enumerate(filled):
            inside[i, : len(own)] = own
            inside[i, len(own) :, :2] = own[0, :2]  # padding lies where the data lie
    return Shapes(system, bounds[:, :2], bounds[:, 2:], inside, empty)


def projected(drawn: np.ndarray, system: str) -> np.ndarray:
    """Geometries in degrees as they lie in a system, in metres."""
    shapely, pyproj = geometry.libraries("the map")
    turn = pyproj.Transformer.from_crs("EPSG:4326", system, always_xy=True).transform
    made: np.ndarray = shapely.transform(
        drawn, lambda xy: np.column_stack(turn(xy[:, 0], xy[:, 1]))
    )
    return made


def homes(people: People, system: str) -> Float[np.ndarray, "m 2"]:
    """Places of people in a system, in metres."""
    shapely, _ = geometry.libraries("the map")
    places: np.ndarray = shapely.get_coordinates(projected(shapely.points(people.places), system))
    return places


def equal_area(west: float, south: float, east: float, north: float) -> str:
    """An equal-area projection for a region in degrees: Lambert's azimuthal, or for the world
    Equal Earth (Šavrič, Patterson and Jenny 2019)."""
    x, y = round((west + east) / 2, 2), round((south + north) / 2, 2)
    x = x - 360 if x > 180 else x
    if east - west > _WIDE or north - south > _WIDE:
        if east - west > _ROUND:
            x = 0.0  # maps of the world are cut at the antimeridian
        return f"+proj=eqearth +lon_0={x} +datum=WGS84 +units=m"
    return f"+proj=laea +lat_0={y} +lon_0={x} +datum=WGS84 +units=m"


def told(system: str) -> str:
    """A sentence on the projection."""
    words = dict(word.strip("+").split("=") for word in system.split())
    kind = "Equal Earth" if words["proj"] == "eqearth" else "Lambert azimuthal equal-area"
    center = f"longitude {float(words['lon_0']):g}°"
    if "lat_0" in words:
        center += f", latitude {float(words['lat_0']):g}°"
    return (
        f"Longitudes and latitudes are projected to meters in an equal-area system ({kind}, "
        f"centered on {center}): dimensions {DIMS[0]} and {DIMS[1]}."
    )


@lru_cache(20_000)
def points(shape: bytes, count: int) -> Float[np.ndarray, "k 3"]:
    """At most `count` points inside a shape in a plane, each with its share of the area.

    Args:
        shape: Polygon, multipolygon or point, as well-known binary.
        count: A square gets the largest grid of as many.
    """
    shapely, _ = geometry.libraries("the table")
    drawn = shapely.from_wkb(shape)
    area = shapely.area(drawn)
    if not area:
        return np.array([[*shapely.get_coordinates(drawn)[0], 1.0]])
    west, south, east, north = shapely.bounds(drawn)
    wide, high = east - west, north - south
    if shapely.get_num_coordinates(drawn) > _VERTICES:
        thinner = shapely.simplify(drawn, _FINE * np.sqrt(area / count))
        drawn = thinner if shapely.area(thinner) > 0 else drawn
    shapely.prepare(drawn)
    side = np.sqrt(max(area / count, wide * high / (_CELLS * count)))
    for _ in range(_TURNS):
        # The side is that of whole cells which fill the bounds.
        columns, rows = max(1, int(wide / side + 1e-9)), max(1, int(high / side + 1e-9))
        cut = _cut(drawn, (west, south), (wide / columns, high / rows), (columns, rows))
        if len(cut) <= count:
            return cut
        side *= _GROWTH
    middle = shapely.point_on_surface(drawn)
    return np.array([[shapely.get_x(middle), shapely.get_y(middle), 1.0]])


def _cut(
    drawn: object, corner: tuple[float, float], step: tuple[float, float], grid: tuple[int, int]
) -> Float[np.ndarray, "k 3"]:
    """Centers of gravity of the parts of a polygon in the cells of a grid, and their shares."""
    shapely, _ = geometry.libraries("the table")
    column, row = (i.ravel() for i in np.meshgrid(*(np.arange(n) for n in grid)))
    x, y = corner[0] + step[0] * column, corner[1] + step[1] * row
    cells = shapely.box(x, y, x + step[0], y + step[1])
    cells = cells[shapely.intersects(drawn, cells)]
    whole = shapely.contains(drawn, cells)
    parts = cells.copy()
    parts[~whole] = shapely.intersection(drawn, cells[~whole])
    area = shapely.area(parts)
    parts, area = parts[area > 1e-9 * area.sum()], area[area > 1e-9 * area.sum()]
    middle = shapely.centroid(parts)
    # That of a part with a hole, or of several islands, may lie outside of it.
    lost = ~shapely.contains_xy(parts, shapely.get_x(middle), shapely.get_y(middle))
    middle[lost] = shapely.point_on_surface(parts[lost])
    return np.column_stack([shapely.get_x(middle), shapely.get_y(middle), area / area.sum()])
