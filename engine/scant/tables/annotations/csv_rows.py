"""CSV files with one row per label: picture, left, top, width, height, label, labeler and others.

Column names of other programs are recognized, such as filename, class, xmin and xmax. A label
without a box applies to the whole picture. `picture_width` and `picture_height` are its size. The
format is lossless; text that a spreadsheet would evaluate as a formula gets an apostrophe, which is
removed on reading.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from scant.errors import BadInput
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.entries import Entries, moment
from scant.tables.column_matching import listed
from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.encoding import decode

COLUMNS = (
    "picture", "left", "top", "width", "height", "label", "labeler", "created", "unsure",
    "picture_width", "picture_height",
)  # fmt: skip
_ALIASES: dict[str, tuple[str, ...]] = {
    "picture": ("picture", "image", "file", "filename", "photo", "photograph", "imagename",
                "imagepath", "path", "imageid"),
    "label": ("label", "class", "category", "classname", "labelname"),
    "left": ("left", "x", "xmin", "x1", "bboxx"),
    "top": ("top", "y", "ymin", "y1", "bboxy"),
    "right": ("right", "xmax", "x2"),
    "bottom": ("bottom", "ymax", "y2"),
    "width": ("width", "w", "size", "boxwidth", "bboxwidth"),
    "height": ("height", "h", "size", "boxheight", "bboxheight"),
    "labeler": ("labeler", "labeller", "annotator", "labeledby", "user"),
    "created": ("created", "time", "createdat", "date"),
    "unsure": ("unsure", "uncertain"),
    "picture_width": ("picturewidth", "imagewidth"),
    "picture_height": ("pictureheight", "imageheight"),
}  # fmt: skip
_DELIMITERS = ",;\t|"
_HEAD = 20_000  # bytes searched for a header
_ESCAPED = re.compile(r"'+ *[=+\-@\t\r\n＝＋－＠]")  # text with an added apostrophe


def read(content: bytes, file: str) -> Entries:
    """Read the annotations of a table.

    Raises:
        BadInput: The file is not text, lacks a header or a column of pictures, or has an incomplete
            box; the row is named.
    """
    body, _ = decode(content, file)
    rows = _rows(body, file)
    header = next(rows, [])
    columns = named(header)
    if "picture" not in columns:
        raise BadInput(
            f"{file} has no column 'picture'; give this name to the column with the pictures' "
            f"names, one of {listed(header)}."
        )
    if not columns.keys() - {"picture", "picture_width", "picture_height"}:
        raise BadInput(f"{file} names pictures but has no labels; add a column 'label'.")
    entries = Entries(file)
    for line, row in enumerate(rows, 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > len(header):
            raise BadInput(
                f"{file}, row {line}: {len(row)} cells where the header has {len(header)}; put "
                "quotes around text that holds a delimiter."
            )
        values = {n: plain(row[i].strip()) for n, i in columns.items() if i < len(row)}
        get = values.get
        entries.add(
            f"row {line}",
            get("picture", ""),
            get("label", ""),
            _box(values, f"{file}, row {line}"),
            _size(values),
            labeler=get("labeler", ""),
            created=get("created"),
            unsure=get("unsure", ""),
        )
    return entries


def is_like(content: bytes) -> bool:
    """Return True if the header has pictures and labels or boxes."""
    return _like(named(_header(content)))


def _like(places: Mapping[str, int]) -> bool:
    return "picture" in places and bool(places.keys() & {"label", "left", "labeler"})


def why_not(content: bytes) -> str:
    """Describe why a file has no labels, to follow its name in a sentence."""
    header = _header(content)
    if "picture" in named(header):
        return (
            f"names pictures but holds no labels: its columns are {listed(header)}, and none is "
            "called 'label'"
        )
    return "holds no labels of pictures"


def _header(content: bytes) -> list[str]:
    """Return the first row of a file; empty if it is not text."""
    try:
        return next(_rows(decode(content[:_HEAD], "")[0], ""), [])
    except BadInput:
        return []


def write(annotations: Sequence[Annotation]) -> bytes:
    """Encode annotations with all columns; times are in UTC with microseconds."""
    rows = [
        (
            annotation.picture,
            *(("",) * 4 if annotation.box is None else (f"{v:.15g}" for v in annotation.box)),
            annotation.label,
            annotation.labeler,
            "" if annotation.created is None else moment(annotation.created),
            "yes" if annotation.unsure else "",
            *(annotation.size or ("", "")),
        )
        for annotation in annotations
    ]
    return table(COLUMNS, rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    """Encode a CSV file with escaped formulas; `plain` is the inverse."""
    frame = pd.DataFrame(
        [[_escaped(v) for v in row] for row in rows], columns=list(columns), dtype=object
    )
    csv_text = safe_for_spreadsheet(frame).to_csv(index=False, lineterminator="\r\n")
    return str(csv_text).encode()


def named(header: Sequence[str]) -> dict[str, int]:
    """Return the column index by field name."""
    keys = [re.sub(r"[^a-z0-9]", "", plain(cell.strip()).lower()) for cell in header]
    columns: dict[str, int] = {}
    for name, aliases in _ALIASES.items():
        found = [keys.index(alias) for alias in aliases if alias in keys]
        if found:
            columns[name] = found[0]
    if "right" in columns and "bottom" in columns:  # then width and height are those of the picture
        for side in ("width", "height"):
            if side in columns and keys[columns[side]] == side:
                columns.setdefault(f"picture_{side}", columns[side])
            columns.pop(side, None)
    return columns


def cells(content: bytes, file: str) -> list[list[str]]:
    """Read the rows of a table written by `table`, including the header.

    Raises:
        BadInput: The file is not text.
    """
    body, _ = decode(content, file)
    return [[plain(cell) for cell in row] for row in _rows(body, file)]


def plain(cell: str) -> str:
    """Remove the apostrophe that prevents evaluation as a formula."""
    return cell[1:] if _ESCAPED.match(cell) else cell


def _escaped(value: object) -> object:
    """Add an apostrophe to text that looks like an escaped formula."""
    return f"'{value}" if isinstance(value, str) and _ESCAPED.match(value) else value


def _rows(body: str, file: str) -> Iterator[list[str]]:
    head = body[:_HEAD].splitlines()
    first = head[0] if head else ""
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        yield from csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
    except csv.Error:
        raise BadInput(f"{file} cannot be read as CSV; save it as CSV again.") from None


def _box(cells: Mapping[str, str], where: str) -> list[object] | None:
    names = ["left", "top", "width", "height"]
    if "right" in cells and "bottom" in cells:
        names = ["left", "top", "right", "bottom"]
    values = [cells.get(n, "") for n in names]
    if not any(values):
        return None
    if not all(values):
        missing = names[values.index("")]
        raise BadInput(f"{where}: the box has no {missing}; give {listed(names)}, or none of them.")
    if names[2] == "width":
        return list(values)
    try:
        left, top, right, bottom = (float(v) for v in values)
    except ValueError:
        return list(values)  # reported as an invalid number by `Entries.add`
    return [left, top, right - left, bottom - top]


def _size(cells: Mapping[str, str]) -> list[object] | None:
    size = [cells.get("picture_width", ""), cells.get("picture_height", "")]
    return list(size) if all(size) else None
