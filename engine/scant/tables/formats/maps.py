"""Maps in GeoJSON, GeoPackage and zipped shapefiles: one row per feature, geometries as text.

GeoJSON is read with shapely, other formats with GDAL through pyogrio. GDAL detects formats by
content, and some of them refer to further files; it therefore gets only files with the signature
of a GeoPackage or a shapefile.
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
_EXTENSIONS = (".shp", ".shx", ".dbf", ".prj", ".cpg")
_NEEDED = (".shp", ".shx", ".dbf")


def _read_geojson(data: bytes, file: str, part: str) -> Content:
    shapely, _ = libraries(file)
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:80]
        raise BadInput(f"{file} cannot be read as GeoJSON ({reason}); write it again.") from None
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list) or not all(isinstance(f, dict) for f in features):
        raise BadInput(f"{file} is JSON without a list of features; save a map as GeoJSON.")
    if not features:
        raise BadInput(f"{file} has no features; give a map with polygons.")
    shapes = [f.get("geometry") for f in features]
    geometries = shapely.from_geojson(
        [None if s is None else json.dumps(s) for s in shapes], on_invalid="ignore"
    )
    invalid = [i for i, s in enumerate(shapes) if s is not None and geometries[i] is None]
    if invalid:
        raise BadInput(
            f"{file}, feature {invalid[0] + 1}: its geometry is not GeoJSON; correct it."
        )
    crs = content.get("crs")  # member of an earlier version of the format, still in use
    crs = crs.get("properties", {}).get("name") if isinstance(crs, dict) else None
    frame = pd.DataFrame([dict(f.get("properties") or {}) for f in features])
    return _content(frame, geometries, crs or DEGREES, file)


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
            visible = {n for n in members if not PurePath(n).name.startswith(".")}
            parts = tuple(sorted(n for n in visible if n.lower().endswith(".shp")))
            if not parts:
                raise BadInput(f"{file} holds parts of a shapefile, but no .shp; pack all of them.")
            name = chosen(parts, part, file, "file")
            by_extension = {
                PurePath(n).suffix.lower(): members[n]
                for n in visible
                if PurePath(n).with_suffix("") == PurePath(name).with_suffix("")
            }
            if lost := [extension for extension in _NEEDED if extension not in by_extension]:
                raise BadInput(
                    f"{file}: {PurePath(name).name} lacks its {lost[0]}; pack the .shp, .shx, .dbf "
                    "and .prj together."
                )
            used = {
                extension: m for extension, m in by_extension.items() if extension in _EXTENSIONS
            }
            if any(m.flag_bits & 1 for m in used.values()):
                raise BadInput(f"{file} is encrypted; pack it without a password.")
            if sum(m.file_size for m in used.values()) > LIMIT_BYTES:
                raise BadInput(
                    f"{file} unpacks to more than {LIMIT_BYTES / 1e6:,.0f} MB, which is the limit; "
                    "simplify its polygons, or keep fewer."
                )
            content = {extension: archive.read(m) for extension, m in used.items()}
    except BadInput:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, RuntimeError):
        raise BadInput(f"{file} is a damaged ZIP archive; pack it again.") from None
    if not content[".shp"].startswith(_SHP):
        raise BadInput(f"{file}: {PurePath(name).name} is not a shapefile; write it again.")
    several = len(parts) > 1
    notes = (f"{file} holds {len(parts)} maps; {name} was read.",) if several and not part else ()
    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        for extension, inside in content.items():
            (Path(folder) / f"map{extension}").write_bytes(inside)
        read = _layer(Path(folder) / "map.shp", "", file, "a shapefile", notes, ())
    return Content(read.table, read.notes, parts if several else (), name)


def _bare_shapefile(data: bytes, file: str, part: str) -> Content:
    raise BadInput(
        f"{file} is one part of a shapefile; pack the .shp, .shx, .dbf and .prj into a ZIP."
    )


def _layer(
    source: Path, layer: str, file: str, kind: str, notes: tuple[str, ...], parts: tuple[str, ...]
) -> Content:
    """Read a layer with GDAL, without attributes other than numbers and text."""
    pyogrio = _pyogrio(file)
    shapely, _ = libraries(file)
    try:
        info = pyogrio.read_info(source, layer=layer or None)
        check_size(file, max(int(info["features"]), 0), len(info["fields"]) + 1)
        meta, table = pyogrio.raw.read_arrow(source, layer=layer or None, datetime_as_string=True)
        position = table.schema.get_field_index(meta["geometry_name"] or "wkb_geometry")
        shapes = shapely.from_wkb(table.column(position).to_numpy(), on_invalid="ignore")
    except BadInput:
        raise
    except Exception as error:  # GDAL raises many kinds
        raise _damaged(file, kind, error) from error
    if not table.num_rows:
        raise BadInput(f"{file} has no features; give a map with polygons.")
    unsupported = [f.name for f in table.schema if pa.types.is_nested(f.type) or _is_bytes(f.type)]
    frame = table.drop_columns(unsupported).to_pandas()
    return _content(frame, shapes, meta["crs"], file, notes, parts, layer)


def _content(
    frame: pd.DataFrame,
    shapes: np.ndarray,
    crs: object,
    file: str,
    notes: tuple[str, ...] = (),
    parts: tuple[str, ...] = (),
    part: str = "",
) -> Content:
    """Combine attributes and geometries; attributes named like the geometry column are dropped."""
    dropped = [c for c in frame if str(c).lower() == COLUMN]
    frame = frame.drop(columns=dropped).reset_index(drop=True)
    check_size(file, len(shapes), frame.shape[1] + 1)
    frame[COLUMN] = in_degrees(shapes, crs, file)
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
    """Return True for a ZIP archive with parts of a shapefile among its first members."""
    head = data[:HEAD]
    for member in _MEMBER.finditer(head) if head.startswith(b"PK\x03\x04") else ():
        length = int.from_bytes(member[1], "little")
        if head[member.end() : member.end() + length].lower().endswith((b".shp", b".shx", b".dbf")):
            return True
    return False


# --- writing ------------------------------------------------------------------------------------


def _split_geometries(
    frames: Iterator[pd.DataFrame], path: Path
) -> tuple[pd.DataFrame, np.ndarray]:
    """Split tables into attributes and geometries."""
    frame = pd.concat(frames, ignore_index=True)
    if COLUMN not in frame:
        raise BadInput(
            f"{path.name}: the table has no column {COLUMN!r} to draw a map of; write it as CSV."
        )
    shapes = geometries(frame[COLUMN].tolist(), path.name, np.arange(2, len(frame) + 2))
    return frame.drop(columns=COLUMN), shapes


def _write_geojson(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    shapely, _ = libraries(path.name)
    frame, shapes = _split_geometries(frames, path)
    rows = frame.to_json(orient="records", lines=True, double_precision=15, date_format="iso")
    encoded = shapely.to_geojson(shapes)
    with path.open("w", encoding="utf-8") as out:
        out.write('{"type": "FeatureCollection", "features": [\n')
        for i, (row, shape) in enumerate(zip(rows.splitlines(), encoded)):
            out.write("" if not i else ",\n")
            out.write(f'{{"type": "Feature", "properties": {row}, "geometry": {shape}}}')
        out.write("\n]}\n")


def _write_geopackage(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    shapely, pyogrio = libraries(path.name)[0], _pyogrio(path.name)
    frame, shapes = _split_geometries(frames, path)
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
