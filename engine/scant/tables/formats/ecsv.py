"""ECSV, astropy's text tables: a header of comments, then CSV with spaces or commas.

The comments tell the delimiter; types and units are not needed to read numbers and words.
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
_COMMA = re.compile(r"#\s*delimiter:\s*['\"]?,")  # a space where nothing is said


def _read(data: bytes, file: str, part: str) -> Content:
    """Text for the CSV parser, with commas; comments are blank, so that rows keep their numbers."""
    text, notes = decode(data, file)
    lines, delimiter, above = _below(io.StringIO(text, newline=""))
    if delimiter == ",":
        return Content("\n" * above + "".join(lines), tuple(notes))
    out = io.StringIO()
    out.write("\n" * above)
    try:
        csv.writer(out, lineterminator="\n").writerows(_records(lines, delimiter))
    except csv.Error as error:
        raise _damaged(file, error) from None
    return Content(out.getvalue(), tuple(notes))


def _pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    with open_file() as opened:
        text = io.TextIOWrapper(cast(Any, opened.stream), "utf-8", errors="replace", newline="")
        with text:
            lines, delimiter, above = _below(text)
            records = _records(lines, delimiter)
            try:
                header = next(records, [])
                at = above + 2
                while some := list(islice(records, rows)):
                    for i, record in enumerate(some):
                        if len(record) != len(header):
                            raise BadInput(
                                f"{file}, row {at + i}: {len(record)} cells where the header has "
                                f"{len(header)}; mend the row."
                            )
                    at += len(some)
                    frame = pd.DataFrame(some, columns=pd.Index(header), dtype=object)
                    yield Rows(frame, opened.share())
            except csv.Error as error:
                raise _damaged(file, error) from None


def _below(text: Iterator[str]) -> tuple[Iterator[str], str, int]:
    """The lines below the comments, the delimiter that these tell, and their number."""
    delimiter, above = " ", 0
    for line in text:
        if not line.startswith("#"):
            return _chained(line, text), delimiter, above
        above += 1
        if _COMMA.match(line):
            delimiter = ","
    return iter(()), delimiter, above


def _chained(line: str, text: Iterator[str]) -> Iterator[str]:
    yield line
    yield from text


def _records(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    """Rows, blank lines left out; what is between quotes is one cell."""
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
