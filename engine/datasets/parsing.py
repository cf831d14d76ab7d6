"""From text to columns of text: delimiter, header, ragged rows. The parser is Arrow's."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int
from pyarrow import csv as arrow_csv

from engine.errors import BadInput

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SNIFFED = 50  # records that decide on the delimiter


@dataclass(frozen=True)
class RawTable:
    """Cells as text (blanks trimmed), with the row of each record as a spreadsheet shows it."""

    names: tuple[str, ...]
    columns: tuple[pa.StringArray, ...]
    rows: Int[np.ndarray, " n"]
    delimiter: str
    notes: tuple[str, ...]


def parse(text: str, name: str, maximum_columns: int) -> RawTable:
    """Columns of text.

    Raises:
        BadInput: Header only, too many columns, unclear delimiter, ragged rows, names that are
            missing or there twice.
    """
    body = text.lstrip("\r\n")
    blank = len(re.findall(r"\r\n|\r|\n", text[: len(text) - len(body)]))
    delimiter = _delimiter(body, name)
    try:
        header = next(csv.reader(io.StringIO(body, newline=""), delimiter=delimiter, strict=False))
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
    cells, ragged, padding = _cells(body, delimiter, len(header), name)
    if ragged:
        row, expected, got = ragged[0]
        more = f" (and {len(ragged) - 1:,} more rows)" if len(ragged) > 1 else ""
        raise BadInput(
            f"{name}, row {row + blank}: {got} cells where the header has {expected}{more}; "
            "mend the row, and put quotes around text that holds a delimiter."
        )
    columns = [pc.utf8_trim_whitespace(c.combine_chunks()) for c in cells.columns]
    names = [_clean(str(c[0])) for c in columns]
    # Rows without a single filled cell (blank lines, a spreadsheet's padding) say nothing.
    filled = np.zeros(cells.num_rows, dtype=bool)
    for column in columns:
        filled |= np.asarray(pc.not_equal(column, ""), dtype=bool)
    filled[0] = False
    kept = np.flatnonzero(filled)
    if not len(kept):
        raise BadInput(f"{name} has a header but no rows; add the data below the header.")
    columns = [c.take(pa.array(kept)) for c in columns]
    notes = []
    if delimiter != ",":
        notes.append(f"{name} is separated by {DELIMITERS[delimiter]}.")
    names, columns = _named(names, columns, name, notes)
    shown = np.setdiff1d(np.arange(1, cells.num_rows + len(padding) + 1), padding)
    return RawTable(tuple(names), tuple(columns), shown[kept] + blank, delimiter, tuple(notes))


def _cells(
    body: str, delimiter: str, width: int, name: str
) -> tuple[pa.Table, list[tuple[int, int, int]], list[int]]:
    """All records as text, the header among them; number, expected and got of ragged ones; and the
    numbers of those that hold nothing, which a spreadsheet leaves with fewer cells than the header.
    """
    ragged: list[tuple[int, int, int]] = []
    padding: list[int] = []

    def note(row: Any) -> str:
        if not row.text.strip(f'{delimiter}" \t\r\n'):
            padding.append(row.number)
            return "skip"
        ragged.append((row.number, row.expected_columns, row.actual_columns))
        return "skip"

    data = body.encode("utf-8", errors="replace")
    try:
        table = arrow_csv.read_csv(
            io.BytesIO(data),
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
    return table, ragged, padding


def _delimiter(body: str, name: str) -> str:
    """The delimiter by which header and first records have the same number of cells."""
    head = body[:200_000]
    counts: dict[str, list[int]] = {}
    for candidate in DELIMITERS:
        reader = csv.reader(io.StringIO(head, newline=""), delimiter=candidate, strict=False)
        try:
            records = [len(r) for r in islice(reader, _SNIFFED) if r]
        except csv.Error:
            continue
        # The last record may be cut where the head ends.
        counts[candidate] = records[:-1] if len(head) < len(body) and len(records) > 1 else records
    split = {d: c for d, c in counts.items() if c and c[0] > 1}
    even = [d for d, c in split.items() if len(set(c)) == 1]
    if len(even) == 1:
        return even[0]
    if len(even) > 1:
        found = " or ".join(DELIMITERS[d] for d in even)
        raise BadInput(
            f"{name} could be separated by {found} (row 1 splits either way); "
            "save it again with commas."
        )
    if split:
        return max(split, key=lambda d: split[d][0])
    lines = [line.split() for line in body.splitlines()[:_SNIFFED] if line.strip()]
    if len(lines) > 1 and len({len(words) for words in lines}) == 1 and len(lines[0]) > 1:
        raise BadInput(
            f"{name} seems to be separated by spaces (row 1 has {len(lines[0])} words); "
            "save it again with commas."
        )
    return ","


def _clean(name: str) -> str:
    """A header without control characters and line breaks; anything else stays as it is."""
    return " ".join(
        re.sub(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]", " ", name).split()
    )


def _named(
    names: list[str], columns: list[pa.StringArray], file: str, notes: list[str]
) -> tuple[list[str], list[pa.StringArray]]:
    """Columns with a name of their own: empty ones left out, nameless ones numbered."""
    kept: list[tuple[str, pa.StringArray]] = []
    for place, (name, column) in enumerate(zip(names, columns), start=1):
        if not name:
            if pc.all(pc.equal(column, "")).as_py():
                continue
            if place == 1 and pc.count_distinct(column).as_py() == len(column):
                notes.append(f"{file}, column 1 has no name and was left out as a row number.")
                continue
            name = f"column {place}"
            notes.append(f"{file}, column {place} has no name and is called {name!r}.")
        kept.append((name, column))
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name and name in seen:
            raise BadInput(
                f"{file}, row 1: the column name {name!r} stands in columns {seen[name]} and "
                f"{place}; rename one of them."
            )
        seen[name] = place
    if not kept:
        raise BadInput(f"{file}, row 1: no column has a name; add a header.")
    return [n for n, _ in kept], [c for _, c in kept]
