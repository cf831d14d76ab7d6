"""Reading and writing tables in any format: the registry with all formats in it."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from scant.errors import BadInput
from scant.tables.formats import columnar, ecsv, excel, fits, hdf5, maps, packed, registry, text
from scant.tables.formats.registry import Content, Opened, Style, by_ending, endings, read, register

__all__ = ["Content", "by_ending", "endings", "is_url", "opened", "read", "write"]

register(
    *text.FORMATS,
    *ecsv.FORMATS,
    *packed.FORMATS,
    *columnar.FORMATS,
    *hdf5.FORMATS,
    *fits.FORMATS,
    *excel.FORMATS,
    *maps.FORMATS,
)

PLAIN = Style()
READABLE = (
    "CSV, TSV, ECSV, fixed-width text, Excel, Parquet, Feather, HDF5, FITS, JSON lines, GeoJSON, "
    "GeoPackage or zipped shapefile, also packed (.gz, .bz2, .zst, .zip)"
)


def is_url(name: str) -> bool:
    """Is this an address on the web, or of a store there? Nothing is fetched from one."""
    head, slashes, _ = name.partition("://")
    return bool(slashes) and head.isalnum()


@contextmanager
def opened(path: Path, part: str = "") -> Iterator[Opened]:
    """A file as a stream, unpacked where it is packed, once.

    Args:
        path: The file.
        part: Which member of a ZIP; "" for the first.

    Raises:
        BadInput: It is damaged or cannot be read, now or while the stream is used.
    """
    size, packed = max(path.stat().st_size, 1), False
    try:
        with path.open("rb") as whole:

            def share() -> float:
                return min(whole.tell() / size, 1.0)

            known = registry.of(whole.read(registry.HEAD), path.name)
            whole.seek(0)
            packed = known.unpack is not None
            if known.unpack is None:
                yield Opened(whole, path.name, False, share)
            else:
                stream, name, notes = known.unpack(whole, path.name, part)
                with stream:
                    yield Opened(stream, name, True, share, notes)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if packed:
            raise BadInput(f"{path.name} is damaged or cut off; pack it again.") from None
        reason = getattr(error, "strerror", None)
        raise BadInput(
            f"{path.name} cannot be read: {reason}; check it."
            if reason
            else f"{path.name} is damaged or cut off; copy or download it again."
        ) from None


def write(tables: pd.DataFrame | Iterable[pd.DataFrame], path: Path, style: Style = PLAIN) -> None:
    """Write a table in the format that its file's ending names, packed where that names two.

    Args:
        tables: One data frame, or pieces with the same columns, one after another: all but Excel
            and fixed-width text are written piece by piece.
        path: Replaced only once all is written. Text cells of CSV and Excel files that a
            spreadsheet would take for a formula get an apostrophe in front.
        style: Delimiter and decimal mark of text.

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
        known.write(pieces, made, style)
        os.replace(made, path)


def endings_listed() -> str:
    """The endings of all formats for a sentence."""
    known = endings()
    return f"{', '.join(known[:-1])} or {known[-1]}"
