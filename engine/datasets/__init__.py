"""Data sets: generators of the demonstrations, downloads of real data, reading of users' tables.

Free of torch. Names are imported at first use, so that `engine.datasets.tables`, which the
catalogue needs, costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Column": "tables",
    "ColumnPreview": "tables",
    "Preview": "tables",
    "Table": "tables",
    "TableSchema": "tables",
    "data_dir": "sources",
    "fetch": "fetch",
    "inspect_table": "reading",
    "open_table": "sources",
    "open_to_predict": "sources",
    "read_frame": "reading",
    "read_image_table": "images",
    "read_images": "archives",
    "read_table": "reading",
    "safe_for_spreadsheet": "exporting",
    "sample": "sources",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
