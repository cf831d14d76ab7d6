"""Tables of any length, piece by piece: read in constant memory, written under their name at once.

The text of a CSV file is cut between records, and each piece goes through the common parser with
the file's own header in front; Parquet comes in its own batches. A table in another format is one
piece. What is read goes out as it came: cells of text are not made numbers here.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd
import pyarrow as pa
from pyarrow import parquet
from scant.errors import BadInput
from scant.tables.cells import Cells, comma_style, from_series, from_text
from scant.tables.csv_parser import RawTable, parse
from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.encoding import decode, load, regular

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".txt")
FORMATS = (*TEXT, *(f"{ending}.gz" for ending in TEXT), *PARQUET)
ROWS = 5000  # of a piece
_CHARACTERS = 1 << 21  # of a CSV file that are parsed at once
_ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")


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


@dataclass(frozen=True)
class Style:
    """How a CSV file is written, for one that is to look alike."""

    delimiter: str = ","
    decimal: str = "."


def ending(path: Path) -> str:
    """The format's ending: of `x.csv.gz` both parts.

    Raises:
        BadInput: No format that can be read in pieces.
    """
    name = path.name.lower()
    found = next((e for e in sorted(FORMATS, key=len, reverse=True) if name.endswith(e)), None)
    if found is None:
        raise BadInput(
            f"{path.name}: a table to predict, and its result, end in one of {', '.join(FORMATS)}; "
            "save it as one of these."
        )
    return found


def pieces(path: Path, columns: int) -> tuple[Style, Iterator[Piece]]:
    """A table's style and its rows.

    Args:
        path: The file.
        columns: As many may it have.

    Raises:
        BadInput: It cannot be read, at once or when its rows are asked for.
    """
    regular(path)
    if ending(path) in PARQUET:
        return Style(), _batches(path, columns)
    return _text(path, columns)


def _batches(path: Path, columns: int) -> Iterator[Piece]:
    try:
        with parquet.ParquetFile(path) as file:
            total, start = file.metadata.num_rows, 0
            if not total:
                raise BadInput(f"{path.name} has no rows; give those that are to be predicted.")
            if file.metadata.num_columns > columns:
                raise BadInput(
                    f"{path.name} has {file.metadata.num_columns:,} columns and the limit is "
                    f"{columns:,}; keep the columns you need."
                )
            for batch in file.iter_batches(ROWS):
                table = pa.Table.from_batches([batch])
                frame = table.to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype)
                frame.index = pd.RangeIndex(start + 2, start + 2 + len(frame))
                start += len(frame)
                yield _piece(frame, start / total)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:120]
        raise BadInput(
            f"{path.name} cannot be read as Parquet ({reason}); write it again."
        ) from None


def _piece(frame: pd.DataFrame, share: float) -> Piece:
    names = [str(name) for name in frame.columns]
    frame.columns = pd.Index(names)
    return Piece(frame, {name: from_series(name, frame[name]) for name in names}, share)


def _text(path: Path, columns: int) -> tuple[Style, Iterator[Piece]]:
    blocks = _blocks(path)
    text, share = next(blocks)
    first = parse(text, path.name, columns)
    commas, note = comma_style(first.columns, first.delimiter)
    if commas == "unclear":
        commas, note = "", ""
    style = Style(first.delimiter, "," if commas == "decimal" else ".")
    header = "".join(_lines(text, int(first.rows[0]) - 1))
    notes = (*first.notes, note) if note else first.notes

    def rows() -> Iterator[Piece]:
        raw, at, known, before = first, share, notes, 0
        while True:
            yield from _cut(raw, commas, before, at, known)
            last = int(raw.rows[-1]) + before
            following = next((block for block in blocks if block[0].strip()), None)
            if following is None:
                return
            body, at = following
            raw, known = parse(header + body, path.name, columns), ()
            before = last - int(first.rows[0]) + 1
            if raw.names != first.names:
                raise BadInput(
                    f"{path.name}: a column without a name is filled in some of the rows only; "
                    "give each column a name."
                )

    return style, rows()


def _cut(
    raw: RawTable, commas: str, before: int, share: float, notes: tuple[str, ...]
) -> Iterator[Piece]:
    """Pieces of what was parsed at once; `before` rows came earlier."""
    for start in range(0, len(raw.rows), ROWS):
        own = [column[start : start + ROWS] for column in raw.columns]
        frame = pd.DataFrame(
            {n: c.to_pandas() for n, c in zip(raw.names, own)},
            dtype=object,
        ).set_axis(raw.rows[start : start + ROWS] + before)
        cells = {n: from_text(n, c, commas) for n, c in zip(raw.names, own)}
        yield Piece(frame, cells, share, notes if not start else ())


def _blocks(path: Path) -> Iterator[tuple[str, float]]:
    """Parts of a text file that end with a record, and how much of it is read with each."""
    size = max(path.stat().st_size, 1)
    with path.open("rb") as whole:
        packed = path.name.lower().endswith(".gz")
        file = cast("IO[bytes]", gzip.GzipFile(fileobj=whole) if packed else whole)
        try:
            head = file.read(_CHARACTERS)
            load(head, path.name)
            end = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1 or len(head)
            encoding = _encoding(head[:end], path.name)
            file.seek(0)
            with io.TextIOWrapper(file, encoding, newline="") as lines:
                while text := lines.read(_CHARACTERS):
                    text += _line(lines, path.name)
                    # A cell may have line breaks in it; a quotation mark may stand alone.
                    while text.count('"') % 2 and len(text) < 2 * _CHARACTERS:
                        if not (more := _line(lines, path.name)):
                            break
                        text += more
                    yield text, min(whole.tell() / size, 1.0)
        except (gzip.BadGzipFile, EOFError):
            raise BadInput(f"{path.name} is no whole gzip archive; pack it again.") from None
        except UnicodeError:
            raise BadInput(
                f"{path.name} begins as {encoding[:6].upper()} text and is none further down; save "
                "it as UTF-8."
            ) from None
        except OSError as error:
            raise BadInput(f"{path.name} cannot be read: {error.strerror}; check it.") from None


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
    if ending(path) in PARQUET:
        out: Any = None
        try:
            for frame in frames:
                table = pa.Table.from_pandas(frame, preserve_index=False)
                out = out or parquet.ParquetWriter(path, table.schema)
                out.write_table(table.cast(out.schema))
                rows += len(frame)
        finally:
            if out is not None:
                out.close()
        return rows
    opened = gzip.open if path.suffix == ".gz" else open
    with cast("IO[str]", opened(path, "wt", encoding="utf-8", newline="")) as file:
        for frame in frames:
            safe_for_spreadsheet(frame).to_csv(
                file, index=False, header=not rows, sep=style.delimiter, decimal=style.decimal
            )
            rows += len(frame)
    return rows
