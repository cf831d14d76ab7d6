"""Parsing of delimited text into columns of text, with Arrow: delimiter, header, ragged rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int
from pyarrow import csv as arrow_csv

from scant.errors import BadInput
from scant.tables import margins
from scant.tables.fixed_width import delimited

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MAX_LINES = 5_000_000  # no study can fit more rows, and even short ones take gigabytes
_FOOTNOTES = 6  # most lines without a delimiter at the end of a file
_SNIFFED = 50  # records used to detect the delimiter
_HEAD = 200_000  # characters that contain them
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class RawTable:
    """Cells as text (blanks trimmed), with the spreadsheet row number of each record.

    The delimiter is " " for columns aligned by spaces.
    """

    names: tuple[str, ...]
    columns: tuple[pa.StringArray, ...]
    rows: Int[np.ndarray, " n"]
    delimiter: str
    notes: tuple[str, ...]


def parse(text: str, name: str, maximum_columns: int, *, ends: bool = True) -> RawTable:
    """Parse delimited or space-aligned text.

    Args:
        text: Text of the file.
        name: Name of the file for messages.
        maximum_columns: Maximum number of columns.
        ends: True if the last lines may be totals or footnotes; False for truncated files.

    Raises:
        BadInput: There are no rows, too many rows or columns, an ambiguous delimiter, ragged rows,
            or missing or duplicate headers.
    """
    lines = max(text.count("\n"), text.count("\r"))
    if lines > MAX_LINES:
        raise BadInput(
            f"{name} has {lines:,} lines and the limit is {MAX_LINES:,}; keep fewer rows."
        )
    body = text.lstrip("\r\n")
    if not body.strip():
        raise BadInput(f"{name} is empty; give a CSV file with a header and rows.")
    blank = len(re.findall(r"\r\n|\r|\n", text[: len(text) - len(body)]))
    notes: list[str] = []
    delimiter, above = _delimiter(body, name)
    aligned = False
    if not delimiter:
        aligned_body = delimited(body)
        delimiter, aligned = "\t" if aligned_body else ",", bool(aligned_body)
        if aligned_body:
            body = aligned_body
            notes.append(f"{name}: its columns are aligned by spaces.")
    elif delimiter != ",":
        notes.append(f"{name}: its columns are separated by {DELIMITERS[delimiter]}.")
    if above:
        body = "".join(islice(_lines(body), above, None))
        notes.append(f"{name}: the text above row {blank + above + 1} was read as a title.")
        blank += above
    try:
        header = next(csv.reader(_lines(body), delimiter=delimiter, strict=False))
    except csv.Error:
        raise BadInput(
            f"{name}, row {blank + 1}: the header has a name of over {csv.field_size_limit():,} "
            "characters; close its quotes, or save the table as CSV again."
        ) from None
    if len(header) > maximum_columns:
        raise BadInput(
            f"{name} has {len(header):,} columns and the limit is {maximum_columns:,}; "
            "keep the columns you need (or transpose, if rows and columns are swapped)."
        )
    if not margins.has_header(header):
        names = [f"column {i}" for i in range(1, len(header) + 1)]
        body, blank = f"{delimiter.join(names)}\n{body}", blank - 1
        notes.append(f"{name} has no header; its columns are called {names[0]!r} and so on.")
    cells, uneven = _cells(body, delimiter, len(header), name, ends)
    if uneven.ragged:
        row, expected, got = uneven.first
        more = f" ({uneven.ragged:,} rows differ)" if uneven.ragged > 1 else ""
        raise BadInput(
            f"{name}, row {row + blank}: {got} cells where the header has {expected}{more}; "
            "correct the row, and put quotes around text that holds a delimiter."
        )
    n = cells.num_rows
    # Drop rows without any filled cell (blank lines, padding of spreadsheets).
    filled = np.zeros(n, dtype=bool)
    columns: list[pa.StringArray] = []
    untrimmed = cells.columns[::-1]
    del cells
    while untrimmed:  # one by one, to limit memory
        columns.append(pc.utf8_trim_whitespace(untrimmed.pop()).combine_chunks())
        filled |= np.asarray(pc.not_equal(columns[-1], ""), dtype=bool)
    names = [_clean(str(c[0])) for c in columns]
    rows = np.delete(np.arange(1, n + len(uneven.padding) + 1), np.array(uneven.padding, int) - 1)
    rows = rows[1:] + blank
    if not filled[1:].any():
        raise BadInput(f"{name} has a header but no rows; add the data below the header.")
    if filled[1:].all():
        columns = [c[1:] for c in columns]
    else:
        rows = rows[filled[1:]]
        filled[0] = False
        columns = [c.filter(pa.array(filled)) for c in columns]
    if ends and (count := margins.footnotes(columns)):
        what = columns[0][len(rows) - count].as_py()[:40]
        notes.append(
            f"{name}: row {rows[-count]} ({what!r}) is not part of the table and was left out."
        )
        columns, rows = [c[:-count] for c in columns], rows[:-count]
    if (units := margins.units(columns)) is not None:
        notes.append(f"{name}, row {rows[0]}: it was read as the units of the columns.")
        names = [f"{n} [{unit}]" if n and unit else n for n, unit in zip(names, units)]
        columns, rows = [c[1:] for c in columns], rows[1:]
    names, columns = _named(names, columns, name, notes)
    separator = " " if aligned else delimiter
    return RawTable(tuple(names), tuple(columns), rows, separator, tuple(notes))


@dataclass
class _Uneven:
    """Records whose number of cells differs from the header's.

    Attributes:
        ragged: Number of such records with content.
        short: Numbers of the records with a single cell, such as footnotes.
        first: Number, expected and actual cells of the first ragged record.
        padding: Numbers of empty records, which spreadsheets write with fewer cells.
    """

    ragged: int = 0
    short: list[int] = field(default_factory=list)
    first: tuple[int, int, int] = (0, 0, 0)
    padding: list[int] = field(default_factory=list)


def _lines(body: str) -> Iterator[str]:
    """Iterate over the lines of a text, including line ends."""
    return (line[0] for line in _LINE.finditer(body))


def _cells(
    body: str, delimiter: str, width: int, name: str, ends: bool
) -> tuple[pa.Table, _Uneven]:
    """All records as text, including the header, and the uneven records."""
    uneven = _Uneven()

    def note(row: Any) -> str:
        if not row.text.strip(f'{delimiter}" \t\r\n'):
            uneven.padding.append(row.number)
            return "skip"
        if not uneven.ragged:
            uneven.first = (row.number, row.expected_columns, row.actual_columns)
        uneven.ragged += 1
        if row.actual_columns == 1:
            uneven.short.append(row.number)
        return "skip"

    data = body.encode("utf-8", errors="replace")
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                autogenerate_column_names=True,
                block_size=min(max(1 << 24, 4 * data.find(b"\n")), 1 << 30),
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=note,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={f"f{i}": pa.string() for i in range(width)},
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0][:120]
        raise BadInput(f"{name} cannot be read as CSV ({reason}); save it as CSV again.") from None
    end = table.num_rows + len(uneven.padding) + uneven.ragged
    at_end = all(number > end - _FOOTNOTES for number in uneven.short)
    if ends and at_end and uneven.ragged == len(uneven.short) and table.num_rows > 4:
        uneven.padding = sorted(uneven.padding + uneven.short)
        uneven.ragged = 0
    return table, uneven


def _delimiter(body: str, name: str) -> tuple[str, int]:
    """Detect the delimiter: header and first records have the same number of cells.

    Returns:
        The delimiter ("" if there is none), and the number of lines above the header.
    """
    head = body[:_HEAD]
    counts: dict[str, list[int]] = {}
    above: dict[str, int] = {}
    for candidate in DELIMITERS:
        reader = csv.reader(_lines(head), delimiter=candidate, strict=False)
        records, starts, line = [], [], 0
        try:
            for record in islice(reader, _SNIFFED):
                if record:
                    records.append(record)
                    starts.append(line)
                line = reader.line_num
        except csv.Error:
            continue
        # The last record of the head may be truncated.
        if len(head) < len(body) and len(records) > 1:
            records.pop()
        first = margins.titles(records)
        above[candidate] = starts[first] if first else 0
        counts[candidate] = [len(r) for r in records[first:]]
    split = {d: c for d, c in counts.items() if c and c[0] > 1}
    even = [d for d, c in split.items() if len(set(c)) == 1]
    even = [d for d in even if not above[d]] or even
    if len(even) > 1:
        result = " or ".join(DELIMITERS[d] for d in even)
        raise BadInput(
            f"{name} could be separated by {result} (row 1 splits either way); "
            "save it again with commas."
        )
    if not split:
        return "", 0
    result = even[0] if even else max(split, key=lambda d: split[d][0])
    return result, above[result]


def _clean(name: str) -> str:
    """Header without control characters, line breaks and enclosing quotes."""
    if len(name) > 2 and name[0] == name[-1] == "'":
        name = name[1:-1]
    return " ".join(
        re.sub(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]", " ", name).split()
    )


def _named(
    names: list[str], columns: list[pa.StringArray], file: str, notes: list[str]
) -> tuple[list[str], list[pa.StringArray]]:
    """Drop empty unnamed columns, number the other unnamed ones, and refuse duplicate names."""
    named: list[tuple[str, pa.StringArray]] = []
    for position, (name, column) in enumerate(zip(names, columns), start=1):
        if not name:
            if pc.all(pc.equal(column, "")).as_py():
                continue
            if position == 1 and pc.count_distinct(column).as_py() == len(column):
                notes.append(f"{file}, column 1 has no name and was left out as a row number.")
                continue
            name = f"column {position}"
            notes.append(f"{file}, column {position} has no name and is called {name!r}.")
        named.append((name, column))
    positions: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name and name in positions:
            raise BadInput(
                f"{file}, row 1: the column name {name!r} is used for columns {positions[name]} "
                f"and {position}; rename one of them."
            )
        positions[name] = position
    if not named:
        raise BadInput(f"{file}, row 1: no column has a name; add a header.")
    return [n for n, _ in named], [c for _, c in named]
