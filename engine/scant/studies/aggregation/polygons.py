"""Polygons as supports: projected to meters in an equal-area system, filled with weighted points.

A grid cuts a polygon into cells. Each cell becomes a point at its center of gravity with the cell's
share of the area. This rule is exact for linear functions; its error decreases with the square of
the cells' side. Holes, islands and slivers need no separate rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from scant.studies.aggregation.population import People, weighted
from scant.tables import geometry

DIMS = ("east", "north")  # meters from the center of the region
_MAX_DEGREES = 100.0  # of longitude or latitude; a larger region counts as the world
_ROUND = 330.0  # degrees of longitude, beyond which a region spans the globe
_VERTICES = 500  # of a polygon; more are simplified before it is cut
_FINE = 0.02  # tolerance of the simplification, as a share of a cell's side
_CELLS = 30  # of a grid for each point; most are empty for slivers and islands
_TURNS = 60
_GROWTH = 1.12  # factor of the cells' side, until there are few enough


@dataclass(frozen=True)
class Shapes:
    """Geometries of a table in the study's form, in meters.

    Attributes:
        system: The projection, as PROJ writes it.
        lo: Lower left corners of their bounds.
        hi: Upper right corners.
        inside: Points and weights, padded with weight 0; None where all are points.
        empty: Number of polygons without people, weighted by area.
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
        system: System of a fitted study; "": one for the region of the cells.
        count: Maximum number of points inside each polygon.
        name: Name of the table for messages.
        rows: Row numbers of the cells for messages.
        people: Population that weights the points; None: by area.

    Raises:
        BadInput: A cell is no support, or the packages for maps are missing.
    """
    shapely, _ = geometry.libraries(name)
    geometries = geometry.geometries(cells, name, rows)
    if not system:
        system = equal_area(*geometry.extent(geometries))
    flat = projected(geometries, system)
    bounds = shapely.bounds(flat)
    areal = shapely.area(flat) > 0
    inside, empty = None, 0
    if areal.any():
        filled = [points(shapely.to_wkb(shape), count) for shape in flat]
        if people is not None:
            filled, empty = weighted(flat, filled, homes(people, system), people.number, count)
        inside = np.zeros((len(filled), max(len(array) for array in filled), 3))
        for i, array in enumerate(filled):
            inside[i, : len(array)] = array
            inside[i, len(array) :, :2] = array[0, :2]  # padding lies where the data lie
    return Shapes(system, bounds[:, :2], bounds[:, 2:], inside, empty)


def projected(geometries: np.ndarray, system: str) -> np.ndarray:
    """Project geometries from degrees to meters in a system."""
    shapely, pyproj = geometry.libraries("the map")
    transform = pyproj.Transformer.from_crs("EPSG:4326", system, always_xy=True).transform
    result: np.ndarray = shapely.transform(
        geometries, lambda xy: np.column_stack(transform(xy[:, 0], xy[:, 1]))
    )
    return result


def homes(people: People, system: str) -> Float[np.ndarray, "m 2"]:
    """Locations of people in a system, in meters."""
    shapely, _ = geometry.libraries("the map")
    locations: np.ndarray = shapely.get_coordinates(
        projected(shapely.points(people.places), system)
    )
    return locations


def equal_area(west: float, south: float, east: float, north: float) -> str:
    """An equal-area projection for a region in degrees: Lambert's azimuthal, or for the world
    Equal Earth (Šavrič, Patterson and Jenny 2019)."""
    x, y = round((west + east) / 2, 2), round((south + north) / 2, 2)
    x = x - 360 if x > 180 else x
    if east - west > _MAX_DEGREES or north - south > _MAX_DEGREES:
        if east - west > _ROUND:
            x = 0.0  # maps of the world are cut at the antimeridian
        return f"+proj=eqearth +lon_0={x} +datum=WGS84 +units=m"
    return f"+proj=laea +lat_0={y} +lon_0={x} +datum=WGS84 +units=m"


def told(system: str) -> str:
    """Sentence on the projection."""
    parameters = dict(item.strip("+").split("=") for item in system.split())
    kind = "Equal Earth" if parameters["proj"] == "eqearth" else "Lambert azimuthal equal-area"
    center = f"longitude {float(parameters['lon_0']):g}°"
    if "lat_0" in parameters:
        center += f", latitude {float(parameters['lat_0']):g}°"
    return (
        f"Longitudes and latitudes are projected to meters in an equal-area system ({kind}, "
        f"centered on {center}): dimensions {DIMS[0]} and {DIMS[1]}."
    )


@lru_cache(20_000)
def points(shape: bytes, count: int) -> Float[np.ndarray, "k 3"]:
    """At most `count` points inside a shape in a plane, each with its share of the area.

    Args:
        shape: Polygon, multipolygon or point, as well-known binary.
        count: Number of points; a square gets the largest grid within it.
    """
    shapely, _ = geometry.libraries("the table")
    polygon = shapely.from_wkb(shape)
    area = shapely.area(polygon)
    if not area:
        return np.array([[*shapely.get_coordinates(polygon)[0], 1.0]])
    west, south, east, north = shapely.bounds(polygon)
    width, height = east - west, north - south
    if shapely.get_num_coordinates(polygon) > _VERTICES:
        simplified = shapely.simplify(polygon, _FINE * np.sqrt(area / count))
        polygon = simplified if shapely.area(simplified) > 0 else polygon
    shapely.prepare(polygon)
    side = np.sqrt(max(area / count, width * height / (_CELLS * count)))
    for _ in range(_TURNS):
        # The side is that of whole cells which fill the bounds.
        columns, rows = max(1, int(width / side + 1e-9)), max(1, int(height / side + 1e-9))
        cut = _cut(polygon, (west, south), (width / columns, height / rows), (columns, rows))
        if len(cut) <= count:
            return cut
        side *= _GROWTH
    middle = shapely.point_on_surface(polygon)
    return np.array([[shapely.get_x(middle), shapely.get_y(middle), 1.0]])


def _cut(
    polygon: object, corner: tuple[float, float], step: tuple[float, float], grid: tuple[int, int]
) -> Float[np.ndarray, "k 3"]:
    """Centers of gravity of the parts of a polygon in the cells of a grid, and their shares."""
    shapely, _ = geometry.libraries("the table")
    column, row = (i.ravel() for i in np.meshgrid(*(np.arange(n) for n in grid)))
    x, y = corner[0] + step[0] * column, corner[1] + step[1] * row
    cells = shapely.box(x, y, x + step[0], y + step[1])
    cells = cells[shapely.intersects(polygon, cells)]
    whole = shapely.contains(polygon, cells)
    parts = cells.copy()
    parts[~whole] = shapely.intersection(polygon, cells[~whole])
    area = shapely.area(parts)
    parts, area = parts[area > 1e-9 * area.sum()], area[area > 1e-9 * area.sum()]
    middle = shapely.centroid(parts)
    # The center of a part with a hole, or of several islands, may lie outside of it.
    outside = ~shapely.contains_xy(parts, shapely.get_x(middle), shapely.get_y(middle))
    middle[outside] = shapely.point_on_surface(parts[outside])
    return np.column_stack([shapely.get_x(middle), shapely.get_y(middle), area / area.sum()])
