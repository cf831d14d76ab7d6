"""Maps: GeoJSON, GeoPackage and zipped shapefiles, each feature a row with its geometry as text.

GeoJSON is read here, by shapely; the others by GDAL, through pyogrio. GDAL tells formats by what is
in a file, and some of its formats name further files to be opened, so that it is given nothing but
what begins as a GeoPackage or a shapefile does.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from scant.errors import BadInput
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats.registry import HEAD, Content, Format, Style, check_size, chosen
from scant.tables.geometry import COLUMN, DEGREES, geometries, in_degrees, libraries, missing

_GEOJSON = re.compile(
    rb'\s*\{.*?"(?:type"\s*:\s*"FeatureCollection"|features"\s*:\s*\[)', re.DOTALL
)
_GPKG = b"SQLite format 3\x00"
_SHP = b"\x00\x00\x27\x0a"
_MEMBER = re.compile(rb"PK\x03\x04.{22}(.{2})(.{2})", re.DOTALL)  # lengths of name and extra field
_BESIDE = (".shp", ".shx", ".dbf", ".prj", ".cpg")
_NEEDED = (".shp", ".shx", ".dbf")


def _read_geojson(data: bytes, file: str, part: str) -> Content:
    shapely, _ = libraries(file)
    try:
        made = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:80]
        raise BadInput(f"{file} cannot be read as GeoJSON ({reason}); write it again.") from None
    features = made.get("features") if isinstance(made, dict) else None
    if not isinstance(features, list) or not all(isinstance(f, dict) for f in features):
        raise BadInput(f"{file} is JSON without a list of features; save a map as GeoJSON.")
    if not features:
        raise BadInput(f"{file} has no features; give a map with polygons.")
    shapes = [f.get("geometry") for f in features]
    found = shapely.from_geojson(
        [None if s is None else json.dumps(s) for s in shapes], on_invalid="ignore"
    )
    lost = [i for i, s in enumerate(shapes) if s is not None and found[i] is None]
    if lost:
        raise BadInput(f"{file}, feature {lost[0] + 1}: its geometry is no GeoJSON; correct it.")
    named = made.get("crs")  # of an earlier version of the format, and still written
    named = named.get("properties", {}).get("name") if isinstance(named, dict) else None
    frame = pd.DataFrame([dict(f.get("properties") or {}) for f in features])
    return _content(frame, found, named or DEGREES, file)


def _read_geopackage(data: bytes, file: str, part: str) -> Content:
    pyogrio = _pyogrio(file)
    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        source = Path(folder) / "map.gpkg"
        source.write_bytes(data)
        try:
            layers = tuple(str(name) for name, kind in pyogrio.list_layers(source) if kind)
        except Exception as error:  # GDAL raises many kinds
            raise _damaged(file, "a GeoPackage", error) from error
        if not layers:
            raise BadInput(f"{file} has no layer with geometries; give a map with polygons.")
        name = chosen(layers, part, file, "layer")
        parts, notes = layers if len(layers) > 1 else (), tuple[str, ...]()
        if parts and not part:
            notes = (f"{file} holds {len(layers)} layers; {name!r} was read.",)
        return _layer(source, name, file, "a GeoPackage", notes, parts)


def _read_shapefile(data: bytes, file: str, part: str) -> Content:
    _pyogrio(file)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {m.filename: m for m in archive.infolist() if not m.is_dir()}
            shown = {n for n in members if not PurePath(n).name.startswith(".")}
            parts = tuple(sorted(n for n in shown if n.lower().endswith(".shp")))
            if not parts:
                raise BadInput(f"{file} holds parts of a shapefile, but no .shp; pack all of them.")
            name = chosen(parts, part, file, "file")
            beside = {
                PurePath(n).suffix.lower(): members[n]
                for n in shown
                if PurePath(n).with_suffix("") == PurePath(name).with_suffix("")
            }
            if lost := [end for end in _NEEDED if end not in beside]:
                raise BadInput(
                    f"{file}: {PurePath(name).name} lacks its {lost[0]}; pack the .shp, .shx, .dbf "
                    "and .prj together."
                )
            own = {end: m for end, m in beside.items() if end in _BESIDE}
            if any(m.flag_bits & 1 for m in own.values()):
                raise BadInput(f"{file} is encrypted; pack it without a password.")
            if sum(m.file_size for m in own.values()) > LIMIT_BYTES:
                raise BadInput(
                    f"{file} unpacks to more than {LIMIT_BYTES / 1e6:,.0f} MB, which is the limit; "
                    "simplify its polygons, or keep fewer."
                )
            content = {end: archive.read(m) for end, m in own.items()}
    except BadInput:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, RuntimeError):
        raise BadInput(f"{file} is a damaged ZIP archive; pack it again.") from None
    if not content[".shp"].startswith(_SHP):
        raise BadInput(f"{file}: {PurePath(name).name} is no shapefile; write it again.")
    several = len(parts) > 1
    notes = (f"{file} holds {len(parts)} maps; {name} was read.",) if several and not part else ()
    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        for end, inside in content.items():
            (Path(folder) / f"map{end}").write_bytes(inside)
        read = _layer(Path(folder) / "map.shp", "", file, "a shapefile", notes, ())
    return Content(read.table, read.notes, parts if several else (), name)


def _bare_shapefile(data: bytes, file: str, part: str) -> Content:
    raise BadInput(
        f"{file} is one part of a shapefile; pack the .shp, .shx, .dbf and .prj into a ZIP."
    )


def _layer(
    source: Path, layer: str, file: str, kind: str, notes: tuple[str, ...], parts: tuple[str, ...]
) -> Content:
    """A layer through GDAL; attributes that are no numbers or words are left out."""
    pyogrio = _pyogrio(file)
    shapely, _ = libraries(file)
    try:
        told = pyogrio.read_info(source, layer=layer or None)
        check_size(file, max(int(told["features"]), 0), len(told["fields"]) + 1)
        meta, table = pyogrio.raw.read_arrow(source, layer=layer or None, datetime_as_string=True)
        place = table.schema.get_field_index(meta["geometry_name"] or "wkb_geometry")
        found = shapely.from_wkb(table.column(place).to_numpy(), on_invalid="ignore")
    except BadInput:
        raise
    except Exception as error:  # GDAL raises many kinds
        raise _damaged(file, kind, error) from error
    if not table.num_rows:
        raise BadInput(f"{file} has no features; give a map with polygons.")
    odd = [f.name for f in table.schema if pa.types.is_nested(f.type) or _is_bytes(f.type)]
    frame = table.drop_columns(odd).to_pandas()
    return _content(frame, found, meta["crs"], file, notes, parts, layer)


def _content(
    frame: pd.DataFrame,
    found: np.ndarray,
    system: object,
    file: str,
    notes: tuple[str, ...] = (),
    parts: tuple[str, ...] = (),
    part: str = "",
) -> Content:
    """Features as a table; a column of their attributes that is called like ours is left out."""
    own = [c for c in frame if str(c).lower() == COLUMN]
    frame = frame.drop(columns=own).reset_index(drop=True)
    check_size(file, len(found), frame.shape[1] + 1)
    frame[COLUMN] = in_degrees(found, system, file)
    return Content(frame, notes, parts, part)


def _pyogrio(file: str) -> Any:
    libraries(file)
    try:
        import pyogrio
    except ImportError:
        raise missing(file) from None
    return pyogrio


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _damaged(file: str, kind: str, error: Exception) -> BadInput:
    reason = re.sub(r"'?/\S+", "the file", str(error).splitlines()[0])[:120] if str(error) else ""
    return BadInput(f"{file} cannot be read as {kind} ({reason}); write it again.")


def _is_zipped_shapefile(data: bytes) -> bool:
    """By the names of its first members: a ZIP's own list is at its end."""
    head = data[:HEAD]
    for found in _MEMBER.finditer(head) if head.startswith(b"PK\x03\x04") else ():
        length = int.from_bytes(found[1], "little")
        if head[found.end() : found.end() + length].lower().endswith((b".shp", b".shx", b".dbf")):
            return True
    return False


# --- writing ------------------------------------------------------------------------------------


def _mapped(frames: Iterator[pd.DataFrame], path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """The table without its geometries, and these."""
    frame = pd.concat(frames, ignore_index=True)
    if COLUMN not in frame:
        raise BadInput(
            f"{path.name}: the table has no column {COLUMN!r} to draw a map of; write it as CSV."
        )
    shapes = geometries(frame[COLUMN].tolist(), path.name, np.arange(2, len(frame) + 2))
    return frame.drop(columns=COLUMN), shapes


def _write_geojson(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    shapely, _ = libraries(path.name)
    frame, shapes = _mapped(frames, path)
    rows = frame.to_json(orient="records", lines=True, double_precision=15, date_format="iso")
    drawn = shapely.to_geojson(shapes)
    with path.open("w", encoding="utf-8") as out:
        out.write('{"type": "FeatureCollection", "features": [\n')
        for i, (row, shape) in enumerate(zip(rows.splitlines(), drawn)):
            out.write("" if not i else ",\n")
            out.write(f'{{"type": "Feature", "properties": {row}, "geometry": {shape}}}')
        out.write("\n]}\n")


def _write_geopackage(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    shapely, pyogrio = libraries(path.name)[0], _pyogrio(path.name)
    frame, shapes = _mapped(frames, path)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.append_column("geom", pa.array(shapely.to_wkb(shapes), pa.binary()))
    pyogrio.raw.write_arrow(
        table, path, layer="predictions", driver="GPKG", geometry_name="geom",
        geometry_type="Unknown", crs=f"EPSG:{DEGREES}",
    )  # fmt: skip


FORMATS = (
    Format("shapefile", (), _bare_shapefile, lambda data: data.startswith(_SHP)),
    Format("zipped shapefile", (), _read_shapefile, _is_zipped_shapefile),
    Format(
        "GeoPackage",
        (".gpkg",),
        _read_geopackage,
        lambda data: data.startswith(_GPKG) and data[68:70] == b"GP",
        _write_geopackage,
    ),
    Format(
        "GeoJSON",
        (".geojson", ".json"),
        _read_geojson,
        lambda data: _GEOJSON.match(data[:HEAD].removeprefix(b"\xef\xbb\xbf")) is not None,
        _write_geojson,
    ),
)
