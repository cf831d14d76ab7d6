"""ECSV format of astropy: a header in comment lines, then CSV with spaces or commas.

Only the delimiter is read from the comments; types and units are ignored.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pandas as pd

from scant.errors import BadInput
from scant.tables.encoding import decode
from scant.tables.formats.registry import Content, Format, Opener, Rows, Style

_MARK = b"# %ECSV"
_COMMA = re.compile(r"#\s*delimiter:\s*['\"]?,")  # the default is a space


def _read(data: bytes, file: str, part: str) -> Content:
    """Convert to comma-separated text, with blank lines for comments to keep the row numbers."""
    text, notes = decode(data, file)
    lines, delimiter, n_comments = _skip_comments(io.StringIO(text, newline=""))
    if delimiter == ",":
        return Content("\n" * n_comments + "".join(lines), tuple(notes))
    out = io.StringIO()
    out.write("\n" * n_comments)
    try:
        csv.writer(out, lineterminator="\n").writerows(_records(lines, delimiter))
    except csv.Error as error:
        raise _damaged(file, error) from None
    return Content(out.getvalue(), tuple(notes))


def _pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    with open_file() as opened:
        text = io.TextIOWrapper(cast(Any, opened.stream), "utf-8", errors="replace", newline="")
        with text:
            lines, delimiter, n_comments = _skip_comments(text)
            records = _records(lines, delimiter)
            try:
                header = next(records, [])
                row = n_comments + 2
                while block := list(islice(records, rows)):
                    for i, record in enumerate(block):
                        if len(record) != len(header):
                            raise BadInput(
                                f"{file}, row {row + i}: {len(record)} cells where the header has "
                                f"{len(header)}; correct the row."
                            )
                    row += len(block)
                    frame = pd.DataFrame(block, columns=pd.Index(header), dtype=object)
                    yield Rows(frame, opened.share())
            except csv.Error as error:
                raise _damaged(file, error) from None


def _skip_comments(text: Iterator[str]) -> tuple[Iterator[str], str, int]:
    """Return the lines after the comments, the delimiter, and the number of comment lines."""
    delimiter, n_comments = " ", 0
    for line in text:
        if not line.startswith("#"):
            return _chained(line, text), delimiter, n_comments
        n_comments += 1
        if _COMMA.match(line):
            delimiter = ","
    return iter(()), delimiter, n_comments


def _chained(line: str, text: Iterator[str]) -> Iterator[str]:
    yield line
    yield from text


def _records(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    """Iterate over the rows without blank lines."""
    stripped = (line.strip() + "\n" for line in lines) if delimiter == " " else lines
    return (r for r in csv.reader(stripped, delimiter=delimiter, skipinitialspace=True) if r)


def _damaged(file: str, error: Exception) -> BadInput:
    return BadInput(f"{file} cannot be read as ECSV ({error}); write it again.")


def _write(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        for i, frame in enumerate(frames):
            if not i:
                out.write("# %ECSV 1.0\n# ---\n# delimiter: ','\n# datatype:\n")
                for name, column in frame.items():
                    own = json.dumps(str(name), ensure_ascii=False)
                    out.write(f"# - {{name: {own}, datatype: {_kind(column)}}}\n")
                out.write("# schema: astropy-2.0\n")
            frame.to_csv(out, index=False, header=not i, lineterminator="\n")


def _kind(column: pd.Series) -> str:
    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind):
        return "bool"
    if pd.api.types.is_integer_dtype(kind):
        return "int64"
    return "float64" if pd.api.types.is_float_dtype(kind) else "string"


FORMATS = (
    Format("ECSV", (".ecsv",), _read, lambda data: data.startswith(_MARK), _write, pieces=_pieces),
)
