"""GeoParquet format: Parquet with metadata on geometry columns and their coordinate system."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa

from scant.errors import BadInput
from scant.tables.geometry import COLUMN, in_degrees, libraries

_DEGREES = "OGC:CRS84"  # default coordinate system of the format
_Geo = dict[str, Any]


def described(schema: pa.Schema) -> _Geo | None:
    """Return the geometry metadata, or None for a plain Parquet file."""
    try:
        metadata = json.loads((schema.metadata or {})[b"geo"])
        columns = metadata["columns"]
        return (
            metadata
            if metadata["primary_column"] in columns and isinstance(columns, dict)
            else None
        )
    except (KeyError, ValueError, TypeError):
        return None


def plain(schema: pa.Schema, geo: _Geo | None) -> pa.Schema:
    """Return the schema without geometries and their bounding boxes."""
    if geo is None:
        return schema
    covering = [
        box[0]
        for column in geo["columns"].values()
        for box in column.get("covering", {}).get("bbox", {}).values()
    ]
    left_out = {*geo["columns"], *covering}
    return pa.schema([f for f in schema if f.name not in left_out])


def frame(table: pa.Table, geo: _Geo, file: str) -> pd.DataFrame:
    """Convert to a data frame with the geometries of the primary column as text.

    Raises:
        BadInput: Geometries are not encoded as WKB, or the packages for maps are not installed.
    """
    shapely, _ = libraries(file)
    name = geo["primary_column"]
    metadata = geo["columns"][name]
    if metadata.get("encoding") != "WKB" or name not in table.column_names:
        raise BadInput(
            f"{file}, column {name!r}: its geometries are encoded as {metadata.get('encoding')}; "
            "save them as WKB."
        )
    attributes = table.select(plain(table.schema, geo).names).to_pandas(
        ignore_metadata=True, types_mapper=pd.ArrowDtype
    )
    shapes = shapely.from_wkb(table.column(name).to_numpy(), on_invalid="ignore")
    text = in_degrees(shapes, metadata.get("crs", _DEGREES), file)
    return attributes.drop(columns=COLUMN, errors="ignore").assign(**{COLUMN: text})
