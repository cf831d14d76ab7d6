"""GeoParquet: Parquet whose metadata say which columns are geometries, and in which system."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa

from scant.errors import BadInput
from scant.tables.geometry import COLUMN, in_degrees, libraries

_DEGREES = "OGC:CRS84"  # where the metadata name no system
_Geo = dict[str, Any]


def described(schema: pa.Schema) -> _Geo | None:
    """What the metadata say of geometries; None of a plain table."""
    try:
        made = json.loads((schema.metadata or {})[b"geo"])
        columns = made["columns"]
        return made if made["primary_column"] in columns and isinstance(columns, dict) else None
    except (KeyError, ValueError, TypeError):
        return None


def plain(schema: pa.Schema, geo: _Geo | None) -> pa.Schema:
    """The columns that are neither geometries nor bounds of them."""
    if geo is None:
        return schema
    covering = [
        box[0]
        for own in geo["columns"].values()
        for box in own.get("covering", {}).get("bbox", {}).values()
    ]
    left_out = {*geo["columns"], *covering}
    return pa.schema([f for f in schema if f.name not in left_out])


def frame(table: pa.Table, geo: _Geo, file: str) -> pd.DataFrame:
    """A data frame with the geometries of the primary column as text.

    Raises:
        BadInput: They are not written as well-known binary, or the packages for maps are missing.
    """
    shapely, _ = libraries(file)
    name = geo["primary_column"]
    own = geo["columns"][name]
    if own.get("encoding") != "WKB" or name not in table.column_names:
        raise BadInput(
            f"{file}, column {name!r}: its geometries are encoded as {own.get('encoding')}; "
            "save them as WKB."
        )
    made = table.select(plain(table.schema, geo).names).to_pandas(
        ignore_metadata=True, types_mapper=pd.ArrowDtype
    )
    found = shapely.from_wkb(table.column(name).to_numpy(), on_invalid="ignore")
    text = in_degrees(found, own.get("crs", _DEGREES), file)
    return made.drop(columns=COLUMN, errors="ignore").assign(**{COLUMN: text})
