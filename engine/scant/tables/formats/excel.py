"""Excel workbooks (.xlsx, .xlsm), converted to CSV text for the CSV parser."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from scant.errors import BadInput
from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats.registry import HEAD, MOST_CELLS, Content, Format, Style, chosen

_RATIO = 200  # maximum compression ratio; ordinary sheets have 5 to 20
_MEMBERS = (b"[Content_Types].xml", b"docProps/", b"xl/workbook", b"xl/worksheets")
_MAX_ROWS = 1_048_575  # maximum rows of a sheet below its header


def _is_workbook(data: bytes) -> bool:
    if not data.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return any(name in data[:HEAD] for name in _MEMBERS)  # truncated workbook


def _read(data: bytes, file: str, part: str) -> Content:
    import openpyxl

    try:
        _check(data, file)
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = tuple(s.title for s in book.worksheets)
        if not sheets:
            raise BadInput(f"{file} has no sheet with cells; give a sheet with a table.")
        name = chosen(sheets, part, file, "sheet")
        text, gaps = _as_text(book[name], file)
        book.close()
        if gaps:
            _refuse_formulas(data, file, name)
    except BadInput:
        raise
    except Exception as error:  # openpyxl raises many kinds
        raise BadInput(f"{file} is damaged or not an Excel workbook; save it again.") from error
    if not text.strip(",\r\n"):
        raise BadInput(f"{file}, sheet {name!r} is empty; choose another sheet or fill it.")
    notes: tuple[str, ...] = ()
    if len(sheets) > 1 and not part:
        notes = (f"{file} has {len(sheets)} sheets; {name!r} was read.",)
    return Content(text, notes, sheets if len(sheets) > 1 else (), name)


def _check(data: bytes, file: str) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if any(m.flag_bits & 1 for m in members):
            raise BadInput(f"{file} is encrypted; save it without a password.")
        size = sum(m.file_size for m in members)
    if size > 3 * LIMIT_BYTES or size > _RATIO * max(len(data), 50_000):
        raise BadInput(
            f"{file} unpacks to {size / 1e6:,.0f} MB from {len(data) / 1e6:.2g} MB, which is more "
            "than a sheet of a table needs; save the table as CSV."
        )


class _Lines(list[str]):
    """List of lines that a CSV writer can write to."""

    write = list.append


def _as_text(sheet: Any, file: str) -> tuple[str, bool]:
    """Convert a sheet to CSV text; the second result is True if cells within its rows are empty."""
    lines, widths, has_gaps, cells, size = _Lines(), [], False, 0, 0
    writer = csv.writer(lines, lineterminator="\r\n")  # both characters are quoted in cells
    sheet.reset_dimensions()  # the size in the file may be wrong
    for row in sheet.iter_rows(values_only=True):
        words = [_word(value) for value in row]
        while words and not words[-1]:
            words.pop()
        has_gaps = has_gaps or "" in words
        writer.writerow(words)
        widths.append(max(len(words), 1))
        cells, size = cells + max(len(row), 1), size + len(lines[-1])
        if cells > MOST_CELLS or size > LIMIT_BYTES:
            raise BadInput(f"{file} has a sheet that is too large; keep fewer rows or columns.")
    width = max(widths, default=0)
    # Sheets omit empty cells at the end of a row.
    return "".join(f"{line[:-2]}{',' * (width - n)}\n" for line, n in zip(lines, widths)), has_gaps


def _word(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return value.date().isoformat()
    if isinstance(value, date):  # and times
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _refuse_formulas(data: bytes, file: str, name: str) -> None:
    """Raise `BadInput` for formulas without a computed value, which are read as empty cells."""
    import openpyxl

    values = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)[name]
    formulas = openpyxl.load_workbook(io.BytesIO(data), read_only=True)[name]
    values.reset_dimensions(), formulas.reset_dimensions()
    for row, (value_row, formula_row) in enumerate(
        zip(values.iter_rows(), formulas.iter_rows()), start=1
    ):
        for value, cell in zip(value_row, formula_row):
            if value.value is None and cell.data_type == "f":
                raise BadInput(
                    f"{file}, sheet {name!r}, row {row}, column {cell.column}: a formula without a "
                    "computed value; open the file in a spreadsheet program, save it and try again."
                )


def _write(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    frame = safe_for_spreadsheet(pd.concat(frames, ignore_index=True))
    if len(frame) > _MAX_ROWS:
        raise BadInput(
            f"{path.name}: a sheet holds {_MAX_ROWS:,} rows, and these are {len(frame):,}; write "
            ".csv or .parquet."
        )
    frame.to_excel(path, index=False)


FORMATS = (Format("Excel", (".xlsx", ".xlsm"), _read, _is_workbook, _write),)
