"""Text formats: CSV, TSV and fixed-width columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.encoding import decode
from scant.tables.formats import csv_rows
from scant.tables.formats.registry import Content, Format, Style


def _read(data: bytes, file: str, part: str) -> Content:
    text, notes = decode(data, file)
    return Content(text, tuple(notes))


def _write(own: str, frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    delimiter = _delimiter(own, style)
    with path.open("wb") as out:
        for i, frame in enumerate(frames):
            safe = safe_for_spreadsheet(frame)
            if not i:
                out.write(safe.iloc[:0].to_csv(sep=delimiter, index=False).encode())
            lines = csv_rows.rows(safe, delimiter, style.decimal)
            if lines is None:
                text = safe.to_csv(sep=delimiter, decimal=style.decimal, index=False, header=False)
                lines = text.encode()
            out.write(lines)


def _delimiter(own: str, style: Style) -> str:
    """Return the delimiter of the style if the file extension allows it."""
    usable = style.delimiter not in ("", " ") and (not own or "\t" not in (own, style.delimiter))
    delimiter = style.delimiter if usable else own or "\t"
    return ";" if delimiter == style.decimal else delimiter


def _write_fixed(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    frame = pd.concat(frames, ignore_index=True)
    with path.open("w", encoding="utf-8") as out:
        frame.to_string(out, index=False, na_rep="NA", float_format="{:.15g}".format)
        out.write("\n")


FORMATS = (
    Format("fixed-width text", (".fwf", ".prn"), _read, write=_write_fixed),
    Format("text", (".txt", ".dat"), _read, write=partial(_write, ""), lines=True),
    Format("TSV", (".tsv", ".tab"), _read, write=partial(_write, "\t"), lines=True),
    Format("CSV", (".csv",), _read, write=partial(_write, ","), lines=True),
)
