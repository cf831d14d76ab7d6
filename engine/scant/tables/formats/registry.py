"""One table of formats: from the first bytes or the ending of a file to its reader and writer.

A format of a single field registers here too: `register(Format(...))`, and page, command line and
notebook take its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path, PurePath

import pandas as pd

from scant.errors import BadInput
from scant.tables.csv_parser import MOST_LINES
from scant.tables.encoding import LIMIT_BYTES, load

MOST_CELLS = 100_000_000  # of a file of numbers, whose cells may take no room in it
_DEEPEST = 2  # a .csv.gz in a ZIP
HEAD = 65_536  # bytes of a file by which its format is known


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes:
        table: Text in rows and cells, for the CSV parser; a data frame; or the bytes of another
            file, unpacked.
        notes: What is worth knowing of it, a sentence each.
        parts: The tables of a file with several: sheets, members of an archive, groups of HDF5.
        part: The one that was read.
        inside: Name of the file that was unpacked, for its ending.
    """

    table: str | pd.DataFrame | bytes
    notes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    part: str = ""
    inside: str = ""


@dataclass(frozen=True)
class Style:
    """How a text file is written, for one that is to look alike; "" where that is not known."""

    delimiter: str = ""
    decimal: str = "."


@dataclass(frozen=True)
class Rows:
    """Some rows of a file that is read piece by piece.

    Attributes:
        frame: The rows.
        share: How much of the file is read with them.
        notes: What is worth knowing of the file, with its first rows.
    """

    frame: pd.DataFrame
    share: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Opened:
    """A file that is read as a stream.

    Attributes:
        stream: Its bytes, unpacked.
        name: For its ending: of a packed file, what is inside.
        packed: Whether it can be read from its beginning to its end only.
        share: How much of the file is read.
        notes: What is worth knowing of it.
    """

    stream: BufferedIOBase
    name: str
    packed: bool
    share: Callable[[], float]
    notes: tuple[str, ...] = ()


Opener = Callable[[], AbstractContextManager[Opened]]
Unpacked = tuple[BufferedIOBase, str, tuple[str, ...]]  # a stream, its name, and notes


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        name: For sentences: "Parquet".
        endings: Of file names, in lower case with the dot.
        read: From bytes, what messages call the file, and the wanted part to its content; raises
            `BadInput` alone.
        begins: Whether the bytes of a file are of this kind; None for kinds without a signature.
        write: Writes data frames with the same columns, one after another, text in a style; None:
            cannot.
        unpack: Of a packed format: the stream of what is inside of a file, given what `read` is;
            its name; and notes.
        lines: Whether it is made of lines, and so can be read from a packed file as it comes.
        pieces: From a way to open a file, what messages call it, the wanted part and a number of
            rows to as many rows at a time, in constant memory; None: it is read at once.
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
    """Add formats; where two claim the same file, the later one is taken."""
    for known in formats:
        FORMATS.insert(0, known)


def endings() -> tuple[str, ...]:
    """The endings of all formats."""
    return tuple(sorted({ending for known in FORMATS for ending in known.endings}))


def by_ending(name: str) -> Format | None:
    """The format of a file name, by its last ending."""
    ending = PurePath(name).suffix.lower()
    return next((f for f in FORMATS if ending in f.endings), None)


def of(data: bytes, name: str) -> Format:
    """The format of a file: by its first bytes, else by its ending, else CSV."""
    known = next((f for f in FORMATS if f.begins and f.begins(data)), None)
    known = known or by_ending(name) or by_ending("x.csv")
    assert known is not None
    return known


def read(
    source: Path | bytes, name: str, *, part: str = "", limit_bytes: int = LIMIT_BYTES
) -> Content:
    """The table in a file: text for the CSV parser, or a data frame.

    Args:
        source: A path or the file's bytes.
        name: What messages call the file.
        part: Which sheet, member or group; "" for the first.
        limit_bytes: Larger files are refused before they are read.

    Raises:
        BadInput: No such file, too large packed or unpacked, damaged, or of no known format.
    """
    outer = Content(load(source, name, limit_bytes), inside=name)
    for _ in range(_DEEPEST + 1):
        assert isinstance(outer.table, bytes)
        data, inside = outer.table, outer.inside
        content = of(data, inside).read(data, name, "" if outer.parts else part)
        if not content.parts:
            content = replace(content, parts=outer.parts, part=outer.part)
        if not isinstance(content.table, bytes):
            return content
        outer = replace(content, inside=content.inside or PurePath(inside).stem)
    raise BadInput(f"{name} is packed more than {_DEEPEST} times; unpack it.")


def chosen(parts: tuple[str, ...], part: str, file: str, kind: str) -> str:
    """The part that is wanted, the first by default.

    Raises:
        BadInput: There is none of that name.
    """
    if part and part not in parts:
        raise BadInput(f"{file} has no {kind} {part!r}; it has {', '.join(parts[:8])}.")
    return part or parts[0]


def check_size(file: str, rows: int, columns: int) -> None:
    """Refuse more cells than memory is meant for, before they are unpacked.

    Raises:
        BadInput: Too many rows or cells.
    """
    if rows > MOST_LINES:
        raise BadInput(
            f"{file} has {rows:,} rows and the limit is {MOST_LINES:,}; keep fewer rows."
        )
    if rows * columns > MOST_CELLS:
        raise BadInput(
            f"{file} has {rows * columns:,} cells and the limit is {MOST_CELLS:,}; keep fewer rows "
            "or columns."
        )
