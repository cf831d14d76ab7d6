"""Cells with polygons or points, stored as text in longitude and latitude.

A checked cell is `SRID=4326;` followed by well-known text (EWKT) in WGS 84 degrees, independent of
the coordinate system of the file. Readers of map files write such cells directly; CSV files may
have well-known text with or without `SRID=<EPSG code>;`, or hexadecimal WKB as shown by PostGIS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from scant.errors import BadInput
from scant.tables.cells import Cells
from scant.tables.checks import Diagnostics

COLUMN = "geometry"
ALIASES = ("geom", "the_geom", "wkt", "wkt_geom", "geometry_wkt", "wkb_geometry", "polygon")
DEGREES = 4326  # EPSG code of WGS 84 longitude and latitude
_SRID = re.compile(r"\s*SRID\s*=\s*(\d+)\s*;", re.IGNORECASE)
_HEX = re.compile(r"\s*0[01][0-9A-Fa-f]{20,}\s*")
_DIGITS = 9  # decimals of a degree: a tenth of a millimeter
_LISTED = 5  # most rows named in a note
_ASSUMED = "longitude and latitude were assumed"
_JUMP = 180  # degrees between adjacent vertices; more means crossing the antimeridian
_AROUND = 300  # apparent extent in longitude of polygons across the antimeridian
_KINDS = {
    0: "point", 1: "line", 2: "ring", 3: "polygon", 4: "set of points", 5: "set of lines",
    6: "multipolygon", 7: "collection",
}  # fmt: skip
_TAKEN = (0, 3, 6)
_POLYGONS = (3, 6)


def libraries(file: str) -> tuple[Any, Any]:
    """Import the optional packages shapely and pyproj.

    Raises:
        BadInput: A package is not installed.
    """
    try:
        import pyproj
        import shapely
    except ImportError:
        raise missing(file) from None
    return shapely, pyproj


def missing(file: str) -> BadInput:
    """Error for missing map packages."""
    return BadInput(
        f"{file} holds polygons, for which shapely, pyproj and pyogrio are needed: "
        'pip install "scant-gp[maps]".'
    )


def in_degrees(geometries: np.ndarray, system: object, file: str) -> np.ndarray:
    """Convert geometries (None where missing) to the text of checked cells.

    Args:
        geometries: shapely geometries.
        system: Coordinate system in any form that pyproj accepts; None (unknown) omits the SRID.
        file: Name of the file for messages.

    Returns:
        Text, None where there is no geometry.

    Raises:
        BadInput: The system is unknown, or coordinates are outside its range.
    """
    shapely, pyproj = libraries(file)
    geometries = shapely.force_2d(np.asarray(geometries, dtype=object))
    prefix = ""
    if system is not None:
        prefix = f"SRID={DEGREES};"
        try:
            source, target = pyproj.CRS.from_user_input(system), pyproj.CRS.from_epsg(DEGREES)
            same = source.equals(target, ignore_axis_order=True)
            transform = pyproj.Transformer.from_crs(source, target, always_xy=True).transform
        except pyproj.exceptions.ProjError:
            label = f"EPSG:{system}" if isinstance(system, int) else str(system)[:60]
            raise BadInput(
                f"{file}: its coordinate system {label!r} is unknown; save it in "
                "longitude and latitude (EPSG:4326)."
            ) from None
        if not same:
            geometries = shapely.transform(
                geometries, lambda xy: np.column_stack(transform(xy[:, 0], xy[:, 1]))
            )
            if not np.isfinite(shapely.get_coordinates(geometries)).all():
                raise BadInput(
                    f"{file}: some coordinates have no place on Earth in its system, "
                    f"{source.name[:60]!r}; correct them, or name the right system."
                )
    text = shapely.to_wkt(geometries, rounding_precision=_DIGITS if prefix else 15, trim=True)
    return np.array([None if t is None else f"{prefix}{t}" for t in text], dtype=object)


def words(series: pd.Series) -> pd.Series:
    """Convert a geopandas column to text with its coordinate system; return others unchanged."""
    if str(series.dtype) != "geometry":
        return series
    own = in_degrees(series.to_numpy(), getattr(series.array, "crs", None), str(series.name))
    return pd.Series(own, index=series.index, name=series.name, dtype=object)


def parsed(cells: Iterable[object], file: str) -> tuple[np.ndarray, np.ndarray]:
    """Parse cells into geometries and EPSG codes.

    Returns:
        shapely geometries (None for invalid text), and EPSG codes (0 if not given).
    """
    shapely, _ = libraries(file)
    text_cells = ["" if cell is None else str(cell) for cell in cells]
    codes, geometries = (
        np.zeros(len(text_cells), dtype=np.int64),
        np.full(len(text_cells), None, dtype=object),
    )
    texts: dict[str, list[int]] = {"wkt": [], "wkb": []}
    bodies: list[str] = []
    for i, cell in enumerate(text_cells):
        if mark := _SRID.match(cell[:40]):
            codes[i], cell = int(mark[1]), cell[mark.end() :]
        bodies.append(cell.strip())
        texts["wkb" if _HEX.fullmatch(cell) else "wkt"].append(i)
    for kind, positions in texts.items():
        if not positions:
            continue
        read = shapely.from_wkb if kind == "wkb" else shapely.from_wkt
        geometries[positions] = read([bodies[i] or None for i in positions], on_invalid="ignore")
        if kind == "wkb":
            codes[positions] = shapely.get_srid(geometries[positions])
    return geometries, np.maximum(codes, 0)


def checked(cells: Cells, findings: Diagnostics) -> np.ndarray:
    """Convert a column to checked cells; problems and corrections are added to `findings`."""
    shapely, _ = libraries(findings.file)
    labels, name = cells.labels(), cells.name
    geometries, codes = parsed(labels, findings.file)
    if not _readable(shapely, cells, geometries, findings):
        return labels
    systems = sorted(set(codes.tolist()))
    if systems == [0, DEGREES] and _like_degrees(shapely.get_coordinates(geometries[codes == 0])):
        row = findings.rows[int(np.flatnonzero(codes == 0)[0])]
        findings.note(name, f"row {row}: no coordinate system is named; {_ASSUMED}")
        systems = [DEGREES]
    if len(systems) > 1:
        named = " and ".join(f"SRID {s}" if s else "none" for s in systems[:3])
        findings.column(
            name, f"its cells are in different coordinate systems ({named})", "use one for all"
        )
        return labels
    system: int | None = systems[0] or None
    if system is None:
        if not _like_degrees(shapely.get_coordinates(geometries)):
            x, y = shapely.get_coordinates(geometries)[0]
            findings.column(
                name,
                f"coordinates such as ({x:g}, {y:g}) are not degrees, and the file does not name "
                "their coordinate system",
                "write SRID=<EPSG code>; in front of each cell, or give a file that names its "
                "coordinate system, such as a GeoPackage or a shapefile with its .prj",
            )
            return labels
        findings.note(name, f"it names no coordinate system; {_ASSUMED}")
    if system in (None, DEGREES):
        geometries = _continued(shapely, geometries, findings, name)
    geometries = _mended(shapely, geometries, findings, name)
    try:
        text = in_degrees(geometries, system or DEGREES, findings.file)
    except BadInput as error:
        findings.problems.append(str(error))
        return labels
    if system not in (None, DEGREES):
        geometries, _ = parsed(text, findings.file)
    outside = ~_each_in_degrees(shapely, geometries)
    if outside.any():
        findings.cell(
            name, outside, "its coordinates lie beyond the degrees of the Earth",
            "name the coordinate system that they are in",
        )  # fmt: skip
    return text


def geometries(
    cells: Sequence[str | None], file: str, rows: Sequence[int] | np.ndarray
) -> np.ndarray:
    """Geometries in degrees of a column of cells.

    Args:
        cells: Cells, checked or not.
        file: Name of the table for messages.
        rows: Row numbers of the cells for messages.

    Raises:
        BadInput: A cell is invalid; the message is the first problem of the column.
    """
    shapely, _ = libraries(file)
    every = [None if pd.isna(c) else str(c) for c in cells]
    mark = f"SRID={DEGREES};"
    if not all(c is not None and c.startswith(mark) for c in every):
        import pyarrow as pa

        from scant.tables.cells import from_text

        findings = Diagnostics(file, np.asarray(rows))
        text = pa.array(["" if c is None else c for c in every], pa.string())
        every = checked(from_text(COLUMN, text), findings).tolist()
        if findings.problems:
            raise BadInput(findings.problems[0])
    result: np.ndarray = shapely.from_wkt([(c or "").removeprefix(mark) for c in every])
    return result


def _readable(shapely: Any, cells: Cells, made: np.ndarray, findings: Diagnostics) -> bool:
    """Return True if every cell is a polygon or point; otherwise add a problem."""
    empty = cells.empty | shapely.is_empty(made)
    if empty.any():
        findings.cell(cells.name, empty, "the geometry is empty", "give one or drop the row")
        return False
    if (bad := shapely.is_missing(made)).any():
        got = f"got {cells.shown(int(np.flatnonzero(bad)[0]))!r}, which is not a geometry"
        findings.cell(cells.name, bad, got, "write well-known text, such as POLYGON ((0 0, …))")
        return False
    kinds = shapely.get_type_id(made)
    if (bad := ~np.isin(kinds, _TAKEN)).any():
        kind = _KINDS.get(int(kinds[np.flatnonzero(bad)[0]]), "geometry")
        findings.cell(
            cells.name, bad, f"got a {kind}, which has no area",
            "give polygons, multipolygons or points",
        )  # fmt: skip
        return False
    finite = np.array([np.isfinite(shapely.get_coordinates(g)).all() for g in made])
    if not finite.all():
        findings.cell(
            cells.name, ~finite, "a coordinate is not a finite number", "correct it or drop the row"
        )
        return False
    return True


def _continued(shapely: Any, made: np.ndarray, findings: Diagnostics, name: str) -> np.ndarray:
    """Continue polygons across the antimeridian (179 to -179 becomes 181), with a note."""
    west, _, east, _ = shapely.bounds(made).T
    made, moved = made.copy(), []
    for i in np.flatnonzero(east - west > _AROUND):
        rings = shapely.get_rings(shapely.get_parts(made[i]))
        jumps = [np.abs(np.diff(shapely.get_coordinates(ring)[:, 0])) for ring in rings]
        turned = shapely.transform(made[i], _eastward)
        low, _, high, _ = shapely.bounds(turned)
        if high - low < 180 and any((jump > _JUMP).any() for jump in jumps):
            made[i] = turned
            moved.append(i)
    if moved:
        rows = ", ".join(str(findings.rows[i]) for i in moved[:_LISTED])
        more = f" and {len(moved) - _LISTED:,} more" if len(moved) > _LISTED else ""
        findings.note(
            name,
            f"row{'s' * (len(moved) > 1)} {rows}{more}: drawn across the antimeridian; negative "
            "longitudes were continued beyond 180°",
        )
    return made


def _eastward(xy: np.ndarray) -> np.ndarray:
    return np.column_stack([np.where(xy[:, 0] < 0, xy[:, 0] + 360, xy[:, 0]), xy[:, 1]])


def extent(geometries: np.ndarray) -> tuple[float, float, float, float]:
    """West, south, east and north of geometries in degrees.

    East exceeds 180 if the geometries lie on both sides of the antimeridian and their extent is
    smaller that way.
    """
    shapely, _ = libraries("the table")
    west, south, east, north = (float(v) for v in shapely.total_bounds(geometries))
    if east - west <= 180:
        return west, south, east, north
    longitudes = np.unique(shapely.get_coordinates(geometries)[:, 0] % 360)
    gaps = np.diff(np.append(longitudes, longitudes[0] + 360))
    widest = int(gaps.argmax())
    start = float(longitudes[(widest + 1) % len(longitudes)])
    if 360 - gaps[widest] >= east - west:
        return west, south, east, north
    start -= 360 * (start > 180)
    return start, south, start + 360 - float(gaps[widest]), north


def _mended(shapely: Any, made: np.ndarray, findings: Diagnostics, name: str) -> np.ndarray:
    """Repair invalid polygons with a note, and refuse polygons without area."""
    bad = np.flatnonzero(~shapely.is_valid(made))
    if len(bad):
        made = made.copy()
        reason = str(shapely.is_valid_reason(made[bad[0]])).partition("[")[0].lower()
        for i in bad:
            parts = shapely.get_parts(shapely.get_parts(shapely.make_valid(made[i])))
            made[i] = shapely.union_all(parts[shapely.get_type_id(parts) == _POLYGONS[0]])
        rows = ", ".join(str(findings.rows[i]) for i in bad[:_LISTED])
        more = f" and {len(bad) - _LISTED:,} more" if len(bad) > _LISTED else ""
        which = (
            f"row {rows}: the polygon is" if len(bad) == 1 else f"rows {rows}{more}: polygons are"
        )
        findings.note(name, f"{which} not valid ({reason}); mended")
    flat = (shapely.get_type_id(made) != 0) & ~(shapely.area(made) > 0)
    if flat.any():
        findings.cell(name, flat, "the polygon has no area", "correct it or drop the row")
    return made


def _like_degrees(xy: np.ndarray) -> bool:
    return bool((np.abs(xy[:, 0]) <= 360).all() and (np.abs(xy[:, 1]) <= 90).all())


def _each_in_degrees(shapely: Any, made: np.ndarray) -> Bool[np.ndarray, " n"]:
    low_x, low_y, high_x, high_y = shapely.bounds(made).T
    empty = np.isnan(low_x)
    inside = (low_x >= -360) & (high_x <= 360) & (low_y >= -90) & (high_y <= 90)
    return np.asarray(inside | empty)
