"""Registry of file formats with their readers and writers.

`register(Format(...))` adds a format for the dashboard, the command line and notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path, PurePath

import pandas as pd

from scant.errors import BadInput
from scant.tables.csv_parser import MAX_LINES
from scant.tables.encoding import LIMIT_BYTES, load

MOST_CELLS = 100_000_000  # maximum number of cells; compressed files can claim any number
_MAX_LEVELS = 2  # of compression, such as a .csv.gz in a ZIP
HEAD = 65_536  # bytes of a file used to detect its format


@dataclass(frozen=True)
class Content:
    """Content of a file.

    Attributes:
        table: Text for the CSV parser, a data frame, or the decompressed bytes of another file.
        notes: Sentences on how the file was read.
        parts: Names of several tables: sheets, members of an archive, groups of HDF5.
        part: Name of the table that was read.
        inside: Name of the decompressed file.
    """

    table: str | pd.DataFrame | bytes
    notes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    part: str = ""
    inside: str = ""


@dataclass(frozen=True)
class Style:
    """Delimiter and decimal mark of a text file; "" for an unknown delimiter."""

    delimiter: str = ""
    decimal: str = "."


@dataclass(frozen=True)
class Rows:
    """Block of rows of a file.

    Attributes:
        frame: Rows.
        share: Fraction of the file that is read after this block.
        notes: Sentences on how the file was read, with the first block.
    """

    frame: pd.DataFrame
    share: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Opened:
    """File opened as a stream.

    Attributes:
        stream: Decompressed bytes.
        name: Name of the decompressed file.
        packed: True for a compressed file, which can only be read sequentially.
        share: Function that returns the fraction of the file read so far.
        notes: Sentences on how the file was read.
    """

    stream: BufferedIOBase
    name: str
    packed: bool
    share: Callable[[], float]
    notes: tuple[str, ...] = ()


Opener = Callable[[], AbstractContextManager[Opened]]
Unpacked = tuple[BufferedIOBase, str, tuple[str, ...]]  # stream, name, notes


@dataclass(frozen=True)
class Format:
    """File format.

    Attributes:
        name: Name for messages, such as "Parquet".
        endings: File extensions in lower case with the dot.
        read: Function of the bytes, the file name for messages and the part that returns the
            content, and raises only `BadInput`.
        begins: Function that returns True if bytes have the signature of the format; None for
            formats without a signature.
        write: Function that writes blocks of rows to a path in a style; None if not supported.
        unpack: For a compressed format, function of a stream, the file name and the part that
            returns the decompressed stream, its name and notes.
        lines: True for formats of text lines, which can be read from a compressed stream.
        pieces: Function of an opener, the file name, the part and a number of rows that iterates
            over blocks of that many rows; None if the format can only be read whole.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[[bytes, str, str], Content]
    begins: Callable[[bytes], bool] | None = None
    write: Callable[[Iterator[pd.DataFrame], Path, Style], None] | None = None
    unpack: Callable[[BufferedIOBase, str, str], Unpacked] | None = None
    lines: bool = False
    pieces: Callable[[Opener, str, str, int], Iterator[Rows]] | None = None


FORMATS: list[Format] = []


def register(*formats: Format) -> None:
    """Add formats; those registered later take precedence."""
    for one in formats:
        FORMATS.insert(0, one)


def endings() -> tuple[str, ...]:
    """Return the file extensions of all formats."""
    return tuple(sorted({ending for one in FORMATS for ending in one.endings}))


def by_ending(name: str) -> Format | None:
    """Return the format for the last extension of a file name."""
    ending = PurePath(name).suffix.lower()
    return next((f for f in FORMATS if ending in f.endings), None)


def of(data: bytes, name: str) -> Format:
    """Detect the format by signature, else by extension, else CSV."""
    detected = next((f for f in FORMATS if f.begins and f.begins(data)), None)
    detected = detected or by_ending(name) or by_ending("x.csv")
    assert detected is not None
    return detected


def read(
    source: Path | bytes, name: str, *, part: str = "", limit_bytes: int = LIMIT_BYTES
) -> Content:
    """Read the table in a file as text for the CSV parser or as a data frame.

    Args:
        source: Path or content of the file.
        name: Name of the file for messages.
        part: Sheet, archive member or group; "" for the first.
        limit_bytes: Maximum size of the file in bytes.

    Raises:
        BadInput: The file is missing, too large, damaged, or has no supported format.
    """
    outer = Content(load(source, name, limit_bytes), inside=name)
    for _ in range(_MAX_LEVELS + 1):
        assert isinstance(outer.table, bytes)
        data, inside = outer.table, outer.inside
        content = of(data, inside).read(data, name, "" if outer.parts else part)
        if not content.parts:
            content = replace(content, parts=outer.parts, part=outer.part)
        if not isinstance(content.table, bytes):
            return content
        outer = replace(content, inside=content.inside or PurePath(inside).stem)
    raise BadInput(f"{name} is packed more than {_MAX_LEVELS} times; unpack it.")


def chosen(parts: tuple[str, ...], part: str, file: str, kind: str) -> str:
    """Return the selected part, by default the first.

    Raises:
        BadInput: There is no part of this name.
    """
    if part and part not in parts:
        raise BadInput(f"{file} has no {kind} {part!r}; it has {', '.join(parts[:8])}.")
    return part or parts[0]


def check_size(file: str, rows: int, columns: int) -> None:
    """Check the numbers of rows and cells before they are decompressed.

    Raises:
        BadInput: There are too many rows or cells.
    """
    if rows > MAX_LINES:
        raise BadInput(f"{file} has {rows:,} rows and the limit is {MAX_LINES:,}; keep fewer rows.")
    if rows * columns > MOST_CELLS:
        raise BadInput(
            f"{file} has {rows * columns:,} cells and the limit is {MOST_CELLS:,}; keep fewer rows "
            "or columns."
        )
