"""Reading and writing of tables of any length in blocks of rows, with constant memory.

CSV text (also compressed) is split between records, and each block is parsed with the header of the
file; JSON lines (also compressed), Parquet, Feather, HDF5, FITS and ECSV are split by their format
modules. Excel files, fixed-width text and other compressed formats are read whole, up to the size
limit of the table reader. Text cells are written as they were read. All formats except Excel and
fixed-width text are written in blocks.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from scant.errors import BadInput
from scant.tables.cells import Cells, from_series, from_texts
from scant.tables.csv_parser import RawTable, parse
from scant.tables.encoding import decode, load, regular
from scant.tables.formats import files, registry
from scant.tables.formats.registry import Rows, Style
from scant.tables.number_style import NumberStyle, number_style
from scant.tables.opening import columns_of

ROWS = 5000  # rows of a block
_CHARACTERS = 1 << 21  # characters of a CSV file parsed at once
_ENCODINGS = (  # encodings with a byte order mark last: they cannot decode later blocks
    *("utf-8-sig", "utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be", "utf-32", "utf-16"),
    "cp1252",
)


@dataclass(frozen=True)
class Piece:
    """Block of rows of a table.

    Attributes:
        frame: Cells as in the file, indexed by row number in a spreadsheet (the header is row 1).
        cells: Cells converted to numbers, by column name.
        share: Fraction of the file that is read after this block.
        notes: Sentences on how the file was read.
    """

    frame: pd.DataFrame
    cells: dict[str, Cells]
    share: float
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, notes: tuple[str, ...] = ()) -> Piece:
        """Return the only block of a table in memory, whose index has the row numbers."""
        return cls(frame, {str(n): from_series(str(n), frame[n]) for n in frame}, 1.0, notes)


def ending(path: Path) -> str:
    """Return the file extension of the format, such as ".csv.gz".

    Raises:
        BadInput: The extension belongs to no table format.
    """
    kind = files.by_ending(path.name)
    if kind is None:
        raise BadInput(
            f"{path.name}: a table to predict, and its result, end in one of "
            f"{', '.join(files.endings())}; "
            "save it as one of these."
        )
    inner = Path(path.stem).suffix.lower() if kind.unpack and files.by_ending(path.stem) else ""
    return f"{inner}{path.suffix.lower()}"


def pieces(path: Path, columns: int, part: str = "") -> tuple[Style, Iterator[Piece]]:
    """Read the style of a table and iterate over its blocks of rows.

    Args:
        path: Path of the file.
        columns: Maximum number of columns.
        part: Sheet, archive member or group; "" for the first.

    Raises:
        BadInput: The file cannot be read, at the call or during the iteration.
    """
    regular(path)
    ending(path)
    with files.opened(path, part) as opened:
        kind = registry.of(opened.stream.read(registry.HEAD), opened.name)
        read_whole = opened.packed and not kind.lines
    if kind.pieces and not read_whole:
        rows = kind.pieces(partial(files.opened, path, part), path.name, part, ROWS)
        return Style(), _frames(rows, path.name, columns)
    return (
        _whole(path, columns, part) if read_whole or not kind.lines else _text(path, columns, part)
    )


def _whole(path: Path, columns: int, part: str) -> tuple[Style, Iterator[Piece]]:
    """Read a whole table and return its style and blocks."""
    content = files.read(path, path.name, part=part)
    if isinstance(content.table, pd.DataFrame):
        return Style(), _frames([Rows(content.table, 1.0, content.notes)], path.name, columns)
    assert isinstance(content.table, str)
    raw = parse(content.table, path.name, columns, ends=False)
    numbers = number_style(dict(zip(raw.names, raw.columns)), raw.delimiter)
    notes = (*content.notes, *raw.notes, *([numbers.note] if numbers.note else []))
    return Style(), _cut(raw, numbers, 0, 1.0, notes)


def _frames(rows: Iterable[Rows], file: str, columns: int) -> Iterator[Piece]:
    """Convert blocks from a format module."""
    start = 2
    for read in rows:
        frame, n = read.frame, len(read.frame)
        if n:
            cells = columns_of(frame, file, columns)
            own = frame.set_axis(pd.RangeIndex(start, start + n)).set_axis(list(cells), axis=1)
            start += n
            yield Piece(own, cells, read.share, read.notes)
    if start == 2:
        raise BadInput(f"{file} has no rows; give those that are to be predicted.")


def _text(path: Path, columns: int, part: str) -> tuple[Style, Iterator[Piece]]:
    blocks = _blocks(path, part)
    text, share, head_notes = next(blocks)
    first = parse(text, path.name, columns, ends=False)
    if first.delimiter == " ":  # the columns are located from all lines
        return _whole(path, columns, part)
    numbers = number_style(dict(zip(first.names, first.columns)), first.delimiter)
    note = numbers.note
    style = Style(first.delimiter, numbers.decimal)
    header = "".join(_lines(text, int(first.rows[0]) - 1))
    notes = (*head_notes, *first.notes, *([note] if note else []))

    def rows() -> Iterator[Piece]:
        raw, share_read, block_notes, rows_before = first, share, notes, 0
        while True:
            yield from _cut(raw, numbers, rows_before, share_read, block_notes)
            last = int(raw.rows[-1]) + rows_before
            following = next((block for block in blocks if block[0].strip()), None)
            if following is None:
                return
            body, share_read, block_notes = following
            raw = parse(header + body, path.name, columns, ends=False)
            rows_before = last - int(first.rows[0]) + 1
            if raw.names != first.names:
                raise BadInput(
                    f"{path.name}: a column without a name is filled in some of the rows only; "
                    "give each column a name."
                )

    return style, rows()


def _cut(
    raw: RawTable, style: NumberStyle, before: int, share: float, notes: tuple[str, ...]
) -> Iterator[Piece]:
    """Split parsed rows into blocks; `before` is the number of rows in the file before them."""
    for start in range(0, len(raw.rows), ROWS):
        own = [column[start : start + ROWS] for column in raw.columns]
        text = pa.table(dict(zip(raw.names, own))).to_pandas(types_mapper=pd.ArrowDtype)
        frame = text.set_axis(raw.rows[start : start + ROWS] + before)
        cells = from_texts(dict(zip(raw.names, own)), style)
        yield Piece(frame, cells, share, notes if not start else ())


def _blocks(path: Path, part: str) -> Iterator[tuple[str, float, tuple[str, ...]]]:
    """Iterate over text that ends with a record, the fraction of the file read, and notes."""
    with files.opened(path, part) as opened:
        head = opened.stream.read(_CHARACTERS)
        load(head, path.name)
    end = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1 or len(head)
    while head[end : end + 1] == b"\x00":  # remainder of a line break in UTF-16 or UTF-32
        end += 1
    encoding = _encoding(head[:end], path.name)
    with files.opened(path, part) as opened:
        notes = opened.notes
        try:
            with io.TextIOWrapper(cast(Any, opened.stream), encoding, newline="") as lines:
                while text := lines.read(_CHARACTERS):
                    text += _line(lines, path.name)
                    # A quoted cell may contain line breaks, and a quotation mark may be unpaired.
                    while text.count('"') % 2 and len(text) < 2 * _CHARACTERS:
                        if not (more := _line(lines, path.name)):
                            break
                        text += more
                    yield text, opened.share(), notes
                    notes = ()
        except UnicodeError:
            raise BadInput(
                f"{path.name} begins as {encoding[:6].upper()} text but is not further down; save "
                "it as UTF-8."
            ) from None


def _line(lines: io.TextIOWrapper, name: str) -> str:
    """Read the remainder of a line, of limited length since compressed data can be endless."""
    line = lines.readline(_CHARACTERS)
    if len(line) >= _CHARACTERS:
        raise BadInput(
            f"{name} has a line of over {_CHARACTERS:,} characters; put each row on a line of its "
            "own."
        )
    return line


def _encoding(head: bytes, name: str) -> str:
    """Return the encoding that `decode` detects."""
    text, _ = decode(head, name)
    for encoding in _ENCODINGS:
        try:
            if head.decode(encoding) == text:
                return encoding
        except UnicodeError:
            continue
    return "cp1252"


def _lines(text: str, count: int) -> list[str]:
    """Return the first `count` lines with their line breaks."""
    return [line for _, line in zip(range(count), io.StringIO(text, newline=""))]


def write(frames: Iterable[pd.DataFrame], path: Path, style: Style) -> int:
    """Write blocks of rows in the format of the file extension and return the number of rows.

    In CSV files, text that a spreadsheet would evaluate as a formula gets an apostrophe.
    """
    rows = 0

    def counted() -> Iterator[pd.DataFrame]:
        nonlocal rows
        for frame in frames:
            rows += len(frame)
            yield frame

    files.write(counted(), path, style)
    return rows
