"""Reading and writing of tables in all supported formats."""

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
    """Return True for a URL, which is never opened."""
    head, slashes, _ = name.partition("://")
    return bool(slashes) and head.isalnum()


@contextmanager
def opened(path: Path, part: str = "") -> Iterator[Opened]:
    """Open a file as a stream, with one level of decompression.

    Args:
        path: Path of the file.
        part: Member of a ZIP archive; "" for the first.

    Raises:
        BadInput: The file is damaged or cannot be read, also while the stream is used.
    """
    size, packed = max(path.stat().st_size, 1), False
    try:
        with path.open("rb") as whole:

            def share() -> float:
                return min(whole.tell() / size, 1.0)

            kind = registry.of(whole.read(registry.HEAD), path.name)
            whole.seek(0)
            packed = kind.unpack is not None
            if kind.unpack is None:
                yield Opened(whole, path.name, False, share)
            else:
                stream, name, notes = kind.unpack(whole, path.name, part)
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
    """Write a table in the format of the file extension, compressed for one such as ".csv.gz".

    In CSV and Excel files, text that a spreadsheet would evaluate as a formula gets an apostrophe.

    Args:
        tables: Data frame, or blocks of rows with the same columns.
        path: Path of the file, which is replaced after everything is written.
        style: Delimiter and decimal mark of text formats.

    Raises:
        BadInput: No format has this extension, or the table does not fit into it.
    """
    kind = by_ending(path.name)
    if kind is None or kind.write is None:
        raise BadInput(
            f"{path.name}: no table is written with this ending; use {endings_listed()}."
        )
    blocks = iter([tables] if isinstance(tables, pd.DataFrame) else tables)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".scant-") as folder:
        temporary = Path(folder) / path.name
        kind.write(blocks, temporary, style)
        os.replace(temporary, path)


def endings_listed() -> str:
    """Return the extensions of all formats for a sentence."""
    extensions = endings()
    return f"{', '.join(extensions[:-1])} or {extensions[-1]}"
