"""FITS by astropy: tables of catalogues, binary or ASCII, one of a file.

Headers are astropy's to read; rows are taken from the file some at a time, so that neither a large
catalogue nor a header that promises one takes memory.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.tables.formats.fits_writing import AT_ONCE, BLOCK, astropy_fits, write
from scant.tables.formats.registry import Content, Format, Opener, Rows, check_size, chosen

_MOST_TABLES, _MOST_FIELDS = 1000, 999  # of a file; the second is the standard's
_MOST_VALUES = 200  # of a cell that becomes as many columns; more is a spectrum or an image
_LONGEST = 10_000  # characters of a word
_LISTS = re.compile(r"\s*\d*[PQ]")  # columns with a list of any length in each row


@dataclass(frozen=True)
class _Table:
    """A table of a file.

    Attributes:
        header: Its own.
        columns: As astropy describes them.
        words: Whether its cells are text.
        start: Byte of the file where its rows begin.
        rows: How many there are.
        width: Bytes of a row.
    """

    header: Any
    columns: Any
    words: bool
    start: int
    rows: int
    width: int


def _read(data: bytes, file: str, part: str) -> Content:
    stream = io.BytesIO(data)
    name, table, parts, notes = _chosen(stream, file, part)
    check_size(file, table.rows, sum(int(np.prod(c.array_shape)) for c in _kept(table)[0]))
    step = max(1, AT_ONCE // table.width)
    frames = [
        _frame(stream, table, start, min(start + step, table.rows), file)
        for start in range(0, table.rows, step)
    ]
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    return Content(frame, notes, parts if len(parts) > 1 else (), name)


def _pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    with open_file() as source:
        _, table, _, notes = _chosen(source.stream, file, part)
        for start in range(0, table.rows, rows):
            end = min(start + rows, table.rows)
            frame = _frame(source.stream, table, start, end, file)
            yield Rows(frame, end / table.rows, () if start else notes)


def _chosen(
    stream: BufferedIOBase, file: str, part: str
) -> tuple[str, _Table, tuple[str, ...], tuple[str, ...]]:
    """The wanted table with its name, the names of all, and notes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on files that are cut off, which we say ourselves
            tables = _tables(stream, file)
    except BadInput:
        raise
    except Exception as error:  # astropy raises many kinds
        raise _damaged(file) from error
    if not tables:
        raise BadInput(f"{file} is a FITS file without a table that has rows; give a catalogue.")
    parts = tuple(tables)
    name = chosen(parts, part, file, "table")
    columns, left_out = _kept(tables[name])
    if not columns:
        raise BadInput(f"{file}, table {name!r} has no column with a number or a word a row.")
    notes = [f"{file}, column {c!r}: each row holds {why}; it was left out." for c, why in left_out]
    if len(parts) > 1 and not part:
        notes.insert(0, f"{file} holds {len(parts)} tables; {name!r} was read.")
    return name, tables[name], parts, tuple(notes)


def _tables(stream: BufferedIOBase, file: str) -> dict[str, _Table]:
    """The tables of a file that have rows, by their names; none reaches beyond its end."""
    fits = astropy_fits(file)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    made: dict[str, _Table] = {}
    opened = fits.open(stream, memmap=False, disable_image_compression=True)
    for place, hdu in enumerate(opened):
        if place > _MOST_TABLES:
            raise BadInput(f"{file} has more than {_MOST_TABLES:,} parts; keep the table.")
        header = hdu.header
        if not isinstance(hdu, fits.BinTableHDU | fits.TableHDU) or header.get("ZIMAGE"):
            continue
        if header.get("ZTABLE"):
            raise BadInput(f"{file}, part {place}: the table is compressed; unpack it (funpack).")
        rows, width, start = header["NAXIS2"], header["NAXIS1"], hdu.fileinfo()["datLoc"]
        if not 0 < header["TFIELDS"] <= _MOST_FIELDS or rows < 1 or width < 1:
            continue
        if start + rows * width > size:
            raise BadInput(
                f"{file} is cut off: its header promises {rows:,} rows of {width:,} bytes and "
                f"there are {max(size - start, 0) // width:,}; write or fetch it again."
            )
        dtype = hdu.columns.dtype
        if dtype.itemsize > width or (dtype.itemsize < width and header["XTENSION"] == "BINTABLE"):
            raise BadInput(
                f"{file}, part {place}: its columns take {dtype.itemsize:,} bytes of rows that "
                f"have {width:,}; write it again."
            )
        name = hdu.name or f"table {place}"
        name = name if name not in made else f"{name} ({place})"
        words = isinstance(hdu, fits.TableHDU)
        made[name] = _Table(header, hdu.columns, words, start, rows, width)
    return made


def _kept(table: _Table) -> tuple[list[_Column], list[tuple[str, str]]]:
    """The columns of a table that hold numbers or words, and why others are left out."""
    made: list[_Column] = []
    left_out: list[tuple[str, str]] = []
    names = table.columns.dtype.names
    for place, (own, column) in enumerate(zip(names, table.columns)):
        kind = table.columns.dtype[own]
        values = int(np.prod(kind.shape))
        if _LISTS.match(str(table.header[f"TFORM{place + 1}"])):
            left_out.append((column.name, "a list of its own length"))
        elif kind.base.kind == "c":
            left_out.append((column.name, "complex numbers"))
        elif values > _MOST_VALUES:
            left_out.append((column.name, f"{values:,} values"))
        elif kind.base.kind == "S" and kind.base.itemsize > _LONGEST:
            left_out.append((column.name, f"{kind.base.itemsize:,} characters"))
        elif values and kind.itemsize:
            made.append(_Column(own, column.name or own, place, kind.shape, column.null))
    return made, left_out


@dataclass(frozen=True)
class _Column:
    """A column: its name in the rows' type and of its own, its place, its shape, and its null."""

    field: str
    name: str
    place: int
    array_shape: tuple[int, ...]
    null: Any


def _frame(stream: BufferedIOBase, table: _Table, first: int, last: int, file: str) -> pd.DataFrame:
    """Some rows as a data frame."""
    stream.seek(table.start + first * table.width)
    raw = stream.read((last - first) * table.width)
    try:
        columns = list(_of_text(table, raw) if table.words else _of_bytes(table, raw, file))
    except BadInput:
        raise
    except Exception as error:
        raise _damaged(file) from error
    made: dict[str, Any] = {}
    for name, cells in columns:
        if name in made:
            raise BadInput(f"{file} has the column {name!r} twice; rename one of them.")
        made[name] = cells
    return pd.DataFrame(made, copy=False)


def _of_bytes(table: _Table, raw: bytes, file: str) -> Iterator[tuple[str, Any]]:
    """The columns of rows in a binary table; those with several values a cell as several."""
    header, rows = table.header.copy(), len(raw) // table.width
    header["NAXIS2"], header["PCOUNT"] = rows, 0
    header.remove("THEAP", ignore_missing=True)
    whole = header.tostring().encode("ascii") + raw + bytes(-len(raw) % BLOCK)
    read = astropy_fits(file).BinTableHDU.fromstring(whole, uint=True, character_as_bytes=True).data
    stored = np.frombuffer(raw, table.columns.dtype.newbyteorder(">"))
    for column in _kept(table)[0]:
        cells, own = np.asarray(read.field(column.place)), stored[column.field]
        cells = cells.astype(cells.dtype.newbyteorder("="), copy=False)
        logical = cells.dtype.kind == "b" and own.dtype.kind == "i"
        null: Any = 0 if logical else None  # neither true nor false
        if own.dtype.kind in "iu" and not logical:
            null = column.null
        if cells.ndim == 1:
            yield column.name, _empty(cells, own, null)
            continue
        cells = cells.reshape(rows, -1)
        own = cells if null is None else own.reshape(rows, -1)
        for i in range(cells.shape[1]):
            yield f"{column.name}_{i + 1}", _empty(cells[:, i], own[:, i], null)


def _empty(cells: np.ndarray, stored: np.ndarray, null: Any) -> Any:
    """Cells of which those are empty whose stored value means that."""
    if cells.dtype.kind == "S":
        return np.char.rstrip(np.char.decode(cells, "utf-8", errors="replace")).astype(object)
    if null is None:
        return cells
    gone = np.asarray(stored == null)
    if cells.dtype.kind in "iu":
        return pd.arrays.IntegerArray(np.array(cells), gone)
    if cells.dtype.kind == "b":
        return pd.arrays.BooleanArray(np.array(cells), gone)
    return np.where(gone, np.nan, cells)


def _of_text(table: _Table, raw: bytes) -> Iterator[tuple[str, Any]]:
    """The columns of rows in an ASCII table, as words."""
    lines = np.frombuffer(raw, f"S{table.width}")
    dtype = table.columns.dtype
    packed = np.frombuffer(
        lines.tobytes(),
        np.dtype(
            {
                "names": dtype.names,
                "formats": [dtype[n] for n in dtype.names],
                "offsets": [dtype.fields[n][1] for n in dtype.names],
                "itemsize": table.width,
            }
        ),
    )
    for column in _kept(table)[0]:
        words = np.char.strip(np.char.decode(packed[column.field], "utf-8", errors="replace"))
        if column.null is not None:
            words[words == str(column.null).strip()] = ""
        if "A" not in str(table.header[f"TFORM{column.place + 1}"]):
            words = np.char.replace(words, "D", "E")  # Fortran's exponents
        yield column.name, words.astype(object)


def _damaged(file: str) -> BadInput:
    return BadInput(f"{file} is a damaged FITS file, or none; write it again.")


FORMATS = (
    Format(
        "FITS",
        (".fits", ".fit", ".fts"),
        _read,
        lambda data: data.startswith(b"SIMPLE  ="),
        write,
        pieces=_pieces,
    ),
)
