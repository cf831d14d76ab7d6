"""Tables of any length, piece by piece: read in constant memory, written under their name at once.

The text of a CSV file, also a packed one, is cut between records, and each piece goes through the
common parser with the file's own header in front; JSON lines, also packed, Parquet, Feather, HDF5,
FITS and ECSV come as their formats cut them. Excel, fixed-width text, and what is packed without
being lines, are read at once, up to the limit of the common reader. What is read goes out as it
came: cells of text are not made numbers here. All formats but Excel and fixed-width text are
written piece by piece.
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
from scant.tables.cells import Cells, from_texts
from scant.tables.csv_parser import RawTable, parse
from scant.tables.encoding import decode, load, regular
from scant.tables.formats import files, registry
from scant.tables.formats.registry import Rows, Style
from scant.tables.number_style import NumberStyle, number_style
from scant.tables.opening import columns_of

ROWS = 5000  # of a piece
_CHARACTERS = 1 << 21  # of a CSV file that are parsed at once
_ENCODINGS = (  # those with a byte order mark last: without one, the rest is not read by them
    *("utf-8-sig", "utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be", "utf-32", "utf-16"),
    "cp1252",
)


@dataclass(frozen=True)
class Piece:
    """Some rows of a table.

    Attributes:
        frame: Cells as they stand in the file; its index has the rows' numbers, as a spreadsheet
            counts them.
        cells: The same, read as numbers too, by the columns' names.
        share: How much of the file is read with it.
        notes: What is worth knowing of how the file was read.
    """

    frame: pd.DataFrame
    cells: dict[str, Cells]
    share: float
    notes: tuple[str, ...] = ()


def ending(path: Path) -> str:
    """The format's ending: of `x.csv.gz` both parts.

    Raises:
        BadInput: No format of tables.
    """
    known = files.by_ending(path.name)
    if known is None:
        raise BadInput(
            f"{path.name}: a table to predict, and its result, end in one of "
            f"{', '.join(files.endings())}; "
            "save it as one of these."
        )
    inner = Path(path.stem).suffix.lower() if known.unpack and files.by_ending(path.stem) else ""
    return f"{inner}{path.suffix.lower()}"


def pieces(path: Path, columns: int, part: str = "") -> tuple[Style, Iterator[Piece]]:
    """A table's style and its rows.

    Args:
        path: The file.
        columns: As many may it have.
        part: Which sheet, member or group; "" for the first.

    Raises:
        BadInput: It cannot be read, at once or when its rows are asked for.
    """
    regular(path)
    ending(path)
    with files.opened(path, part) as opened:
        known = registry.of(opened.stream.read(registry.HEAD), opened.name)
        at_once = opened.packed and not known.lines
    if known.pieces and not at_once:
        rows = known.pieces(partial(files.opened, path, part), path.name, part, ROWS)
        return Style(), _frames(rows, path.name, columns)
    return _whole(path, columns, part) if at_once or not known.lines else _text(path, columns, part)


def _whole(path: Path, columns: int, part: str) -> tuple[Style, Iterator[Piece]]:
    """A table in a format that is read at once."""
    content = files.read(path, path.name, part=part)
    if isinstance(content.table, pd.DataFrame):
        return Style(), _frames([Rows(content.table, 1.0, content.notes)], path.name, columns)
    assert isinstance(content.table, str)
    raw = parse(content.table, path.name, columns, ends=False)
    numbers = number_style(dict(zip(raw.names, raw.columns)), raw.delimiter)
    notes = (*content.notes, *raw.notes, *([numbers.note] if numbers.note else []))
    return Style(), _cut(raw, numbers, 0, 1.0, notes)


def _frames(rows: Iterable[Rows], file: str, columns: int) -> Iterator[Piece]:
    """Pieces of data frames."""
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
    text, share, told = next(blocks)
    first = parse(text, path.name, columns, ends=False)
    if first.delimiter == " ":  # all lines tell where its columns lie
        return _whole(path, columns, part)
    numbers = number_style(dict(zip(first.names, first.columns)), first.delimiter)
    note = numbers.note
    style = Style(first.delimiter, numbers.decimal)
    header = "".join(_lines(text, int(first.rows[0]) - 1))
    notes = (*told, *first.notes, *([note] if note else []))

    def rows() -> Iterator[Piece]:
        raw, at, known, before = first, share, notes, 0
        while True:
            yield from _cut(raw, numbers, before, at, known)
            last = int(raw.rows[-1]) + before
            following = next((block for block in blocks if block[0].strip()), None)
            if following is None:
                return
            body, at, known = following
            raw = parse(header + body, path.name, columns, ends=False)
            before = last - int(first.rows[0]) + 1
            if raw.names != first.names:
                raise BadInput(
                    f"{path.name}: a column without a name is filled in some of the rows only; "
                    "give each column a name."
                )

    return style, rows()


def _cut(
    raw: RawTable, style: NumberStyle, before: int, share: float, notes: tuple[str, ...]
) -> Iterator[Piece]:
    """Pieces of what was parsed at once; `before` rows came earlier."""
    for start in range(0, len(raw.rows), ROWS):
        own = [column[start : start + ROWS] for column in raw.columns]
        text = pa.table(dict(zip(raw.names, own))).to_pandas(types_mapper=pd.ArrowDtype)
        frame = text.set_axis(raw.rows[start : start + ROWS] + before)
        cells = from_texts(dict(zip(raw.names, own)), style)
        yield Piece(frame, cells, share, notes if not start else ())


def _blocks(path: Path, part: str) -> Iterator[tuple[str, float, tuple[str, ...]]]:
    """Parts of a text file that end with a record, how much of it is read with each, and notes."""
    with files.opened(path, part) as opened:
        head = opened.stream.read(_CHARACTERS)
        load(head, path.name)
    end = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1 or len(head)
    while head[end : end + 1] == b"\x00":  # the rest of a line's end in UTF-16 or UTF-32
        end += 1
    encoding = _encoding(head[:end], path.name)
    with files.opened(path, part) as opened:
        notes = opened.notes
        try:
            with io.TextIOWrapper(cast(Any, opened.stream), encoding, newline="") as lines:
                while text := lines.read(_CHARACTERS):
                    text += _line(lines, path.name)
                    # A cell may have line breaks in it; a quotation mark may stand alone.
                    while text.count('"') % 2 and len(text) < 2 * _CHARACTERS:
                        if not (more := _line(lines, path.name)):
                            break
                        text += more
                    yield text, opened.share(), notes
                    notes = ()
        except UnicodeError:
            raise BadInput(
                f"{path.name} begins as {encoding[:6].upper()} text and is none further down; save "
                "it as UTF-8."
            ) from None


def _line(lines: io.TextIOWrapper, name: str) -> str:
    """The rest of a line; what is packed may have no end."""
    line = lines.readline(_CHARACTERS)
    if len(line) >= _CHARACTERS:
        raise BadInput(
            f"{name} has a line of over {_CHARACTERS:,} characters; give each row a line."
        )
    return line


def _encoding(head: bytes, name: str) -> str:
    """The encoding that the common reader takes the file to have."""
    text, _ = decode(head, name)
    for encoding in _ENCODINGS:
        try:
            if head.decode(encoding) == text:
                return encoding
        except UnicodeError:
            continue
    return "cp1252"


def _lines(text: str, count: int) -> list[str]:
    """The first lines of a text, with their ends."""
    return [line for _, line in zip(range(count), io.StringIO(text, newline=""))]


def write(frames: Iterable[pd.DataFrame], path: Path, style: Style) -> int:
    """Write pieces one below another, in the format that the ending names; how many rows.

    Text that a spreadsheet would take for a formula gets an apostrophe in CSV files.
    """
    rows = 0

    def counted() -> Iterator[pd.DataFrame]:
        nonlocal rows
        for frame in frames:
            rows += len(frame)
            yield frame

    files.write(counted(), path, style)
    return rows
