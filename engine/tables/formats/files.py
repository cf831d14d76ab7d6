"""Reading and writing tables in any format: the registry with all formats in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from scant.errors import BadInput
from scant.tables.formats import columnar, excel, hdf5, packed, text
from scant.tables.formats.registry import Content, by_ending, endings, read, register

__all__ = ["Content", "by_ending", "endings", "is_url", "read", "write"]

register(
    *text.FORMATS,
    *packed.FORMATS,
    *columnar.FORMATS,
    *hdf5.FORMATS,
    *excel.FORMATS,
)

READABLE = (
    "CSV, TSV, fixed-width text, Excel, Parquet, Feather, HDF5 or JSON lines, also packed (.gz, "
    ".bz2, .zst, .zip)"
)


def is_url(name: str) -> bool:
    """Is this an address on the web, or of a store there? Nothing is fetched from one."""
    head, slashes, _ = name.partition("://")
    return bool(slashes) and head.isalnum()


def write(tables: pd.DataFrame | Iterable[pd.DataFrame], path: Path) -> None:
    """Write a table in the format that its file's ending names, packed where that names two.

    Args:
        tables: One data frame, or pieces with the same columns, one after another: text, JSON
            lines and Parquet are written piece by piece.
        path: Replaced only once all is written. Text cells of CSV and Excel files that a
            spreadsheet would take for a formula get an apostrophe in front.

    Raises:
        BadInput: No format has this ending, or the table does not fit into it.
    """
    known = by_ending(path.name)
    if known is None or known.write is None:
        raise BadInput(
            f"{path.name}: no table is written with this ending; use {endings_listed()}."
        )
    pieces = iter([tables] if isinstance(tables, pd.DataFrame) else tables)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".scant-") as folder:
        made = Path(folder) / path.name
        known.write(pieces, made)
        os.replace(made, path)


def endings_listed() -> str:
    """The endings of all formats for a sentence."""
    known = endings()
    return f"{', '.join(known[:-1])} or {known[-1]}"
