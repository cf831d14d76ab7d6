"""Binary and ASCII tables in FITS files with astropy.

Headers are parsed by astropy. Rows are read in blocks, so that neither large tables nor headers
with a wrong size exhaust the memory.
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
from scant.tables.formats.fits_writing import BLOCK, MAX_BYTES, astropy_fits, write
from scant.tables.formats.registry import Content, Format, Opener, Rows, check_size, chosen

_MAX_TABLES, _MAX_FIELDS = 1000, 999  # per file and per table; the latter by the standard
_MAX_VALUES = 200  # values of a cell to split into columns; more are spectra or images
_MAX_CHARACTERS = 10_000  # of a text cell
_LISTS = re.compile(r"\s*\d*[PQ]")  # columns of variable-length arrays


@dataclass(frozen=True)
class _Table:
    """Table in a FITS file.

    Attributes:
        header: Header of its HDU.
        columns: Column definitions of astropy.
        is_ascii: True for an ASCII table.
        start: Byte offset of the rows in the file.
        rows: Number of rows.
        width: Bytes of a row.
    """

    header: Any
    columns: Any
    is_ascii: bool
    start: int
    rows: int
    width: int


def _read(data: bytes, file: str, part: str) -> Content:
    stream = io.BytesIO(data)
    name, table, parts, notes = _select_table(stream, file, part)
    check_size(
        file, table.rows, sum(int(np.prod(c.array_shape)) for c in _supported_columns(table)[0])
    )
    step = max(1, MAX_BYTES // table.width)
    frames = [
        _frame(stream, table, start, min(start + step, table.rows), file)
        for start in range(0, table.rows, step)
    ]
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    return Content(frame, notes, parts if len(parts) > 1 else (), name)


def _pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    with open_file() as source:
        _, table, _, notes = _select_table(source.stream, file, part)
        for start in range(0, table.rows, rows):
            end = min(start + rows, table.rows)
            frame = _frame(source.stream, table, start, end, file)
            yield Rows(frame, end / table.rows, () if start else notes)


def _select_table(
    stream: BufferedIOBase, file: str, part: str
) -> tuple[str, _Table, tuple[str, ...], tuple[str, ...]]:
    """Return the name of the selected table, the table, the names of all tables, and notes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # truncated files are reported below
            tables = _tables(stream, file)
    except BadInput:
        raise
    except Exception as error:  # astropy raises many kinds
        raise _damaged(file) from error
    if not tables:
        raise BadInput(
            f"{file} is a FITS file without a table, or with an empty one; give a catalog."
        )
    parts = tuple(tables)
    name = chosen(parts, part, file, "table")
    columns, left_out = _supported_columns(tables[name])
    if not columns:
        raise BadInput(
            f"{file}, table {name!r} has no column with one number or word per row; give another "
            "table."
        )
    notes = [f"{file}, column {c!r}: each row holds {why}; it was left out." for c, why in left_out]
    if len(parts) > 1 and not part:
        notes.insert(0, f"{file} holds {len(parts)} tables; {name!r} was read.")
    return name, tables[name], parts, tuple(notes)


def _tables(stream: BufferedIOBase, file: str) -> dict[str, _Table]:
    """Return the non-empty tables of a file by name, after a check of their sizes."""
    fits = astropy_fits(file)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    tables: dict[str, _Table] = {}
    opened = fits.open(stream, memmap=False, disable_image_compression=True)
    for position, hdu in enumerate(opened):
        if position > _MAX_TABLES:
            raise BadInput(f"{file} has more than {_MAX_TABLES:,} parts; keep the table.")
        header = hdu.header
        if not isinstance(hdu, fits.BinTableHDU | fits.TableHDU) or header.get("ZIMAGE"):
            continue
        if header.get("ZTABLE"):
            raise BadInput(
                f"{file}, part {position}: the table is compressed; unpack it (funpack)."
            )
        rows, width, start = header["NAXIS2"], header["NAXIS1"], hdu.fileinfo()["datLoc"]
        if not 0 < header["TFIELDS"] <= _MAX_FIELDS or rows < 1 or width < 1:
            continue
        if start + rows * width > size:
            raise BadInput(
                f"{file} is cut off: its header promises {rows:,} rows of {width:,} bytes and "
                f"there are {max(size - start, 0) // width:,}; write or fetch it again."
            )
        dtype = hdu.columns.dtype
        if dtype.itemsize > width or (dtype.itemsize < width and header["XTENSION"] == "BINTABLE"):
            raise BadInput(
                f"{file}, part {position}: its columns take {dtype.itemsize:,} bytes of rows that "
                f"have {width:,}; write it again."
            )
        name = hdu.name or f"table {position}"
        name = name if name not in tables else f"{name} ({position})"
        is_ascii = isinstance(hdu, fits.TableHDU)
        tables[name] = _Table(header, hdu.columns, is_ascii, start, rows, width)
    return tables


def _supported_columns(table: _Table) -> tuple[list[_Column], list[tuple[str, str]]]:
    """Return the supported columns of a table, and the names of others with reasons."""
    supported: list[_Column] = []
    left_out: list[tuple[str, str]] = []
    names = table.columns.dtype.names
    for position, (field, column) in enumerate(zip(names, table.columns)):
        kind = table.columns.dtype[field]
        values = int(np.prod(kind.shape))
        if _LISTS.match(str(table.header[f"TFORM{position + 1}"])):
            left_out.append((column.name, "a list of its own length"))
        elif kind.base.kind == "c":
            left_out.append((column.name, "complex numbers"))
        elif values > _MAX_VALUES:
            left_out.append((column.name, f"{values:,} values"))
        elif kind.base.kind == "S" and kind.base.itemsize > _MAX_CHARACTERS:
            left_out.append((column.name, f"{kind.base.itemsize:,} characters"))
        elif values and kind.itemsize:
            supported.append(
                _Column(field, column.name or field, position, kind.shape, column.null)
            )
    return supported, left_out


@dataclass(frozen=True)
class _Column:
    """Column of a table with its field in the row dtype, name, position, shape and null value."""

    field: str
    name: str
    position: int
    array_shape: tuple[int, ...]
    null: Any


def _frame(stream: BufferedIOBase, table: _Table, first: int, last: int, file: str) -> pd.DataFrame:
    """Read a block of rows."""
    stream.seek(table.start + first * table.width)
    raw = stream.read((last - first) * table.width)
    try:
        columns = list(_of_text(table, raw) if table.is_ascii else _of_bytes(table, raw, file))
    except BadInput:
        raise
    except Exception as error:
        raise _damaged(file) from error
    cells_by_name: dict[str, Any] = {}
    for name, cells in columns:
        if name in cells_by_name:
            raise BadInput(f"{file} has the column {name!r} twice; rename one of them.")
        cells_by_name[name] = cells
    return pd.DataFrame(cells_by_name, copy=False)


def _of_bytes(table: _Table, raw: bytes, file: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the columns of a binary table; cells with several values become columns."""
    header, rows = table.header.copy(), len(raw) // table.width
    header["NAXIS2"], header["PCOUNT"] = rows, 0
    header.remove("THEAP", ignore_missing=True)
    hdu_bytes = header.tostring().encode("ascii") + raw + bytes(-len(raw) % BLOCK)
    read = (
        astropy_fits(file)
        .BinTableHDU.fromstring(hdu_bytes, uint=True, character_as_bytes=True)
        .data
    )
    stored = np.frombuffer(raw, table.columns.dtype.newbyteorder(">"))
    for column in _supported_columns(table)[0]:
        cells, stored_cells = np.asarray(read.field(column.position)), stored[column.field]
        cells = cells.astype(cells.dtype.newbyteorder("="), copy=False)
        is_logical = cells.dtype.kind == "b" and stored_cells.dtype.kind == "i"
        null: Any = 0 if is_logical else None  # neither true nor false
        if stored_cells.dtype.kind in "iu" and not is_logical:
            null = column.null
        if cells.ndim == 1:
            yield column.name, _with_missing(cells, stored_cells, null)
            continue
        cells = cells.reshape(rows, -1)
        stored_cells = cells if null is None else stored_cells.reshape(rows, -1)
        for i in range(cells.shape[1]):
            yield f"{column.name}_{i + 1}", _with_missing(cells[:, i], stored_cells[:, i], null)


def _with_missing(cells: np.ndarray, stored: np.ndarray, null: Any) -> Any:
    """Convert cells and mark those with the null value as missing."""
    if cells.dtype.kind == "S":
        return np.char.rstrip(np.char.decode(cells, "utf-8", errors="replace")).astype(object)
    if null is None:
        return cells
    missing = np.asarray(stored == null)
    if cells.dtype.kind in "iu":
        return pd.arrays.IntegerArray(np.array(cells), missing)
    if cells.dtype.kind == "b":
        return pd.arrays.BooleanArray(np.array(cells), missing)
    return np.where(missing, np.nan, cells)


def _of_text(table: _Table, raw: bytes) -> Iterator[tuple[str, Any]]:
    """Iterate over the columns of an ASCII table as text."""
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
    for column in _supported_columns(table)[0]:
        words = np.char.strip(np.char.decode(packed[column.field], "utf-8", errors="replace"))
        if column.null is not None:
            words[words == str(column.null).strip()] = ""
        if "A" not in str(table.header[f"TFORM{column.position + 1}"]):
            words = np.char.replace(words, "D", "E")  # exponents of Fortran
        yield column.name, words.astype(object)


def _damaged(file: str) -> BadInput:
    return BadInput(f"{file} is damaged or not a FITS file; write it again.")


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
