"""A CSV file with a row a label: picture, left, top, width, height, label, labeler and so on.

Columns are found by these names and by those of other programs (filename, class, xmin, xmax …).
Without columns of a box a label is of the whole picture; so is a row whose box is empty.
`picture_width` and `picture_height` say the picture's size. Nothing is lost; text that a
spreadsheet would take for a formula gets an apostrophe in front, which is taken off on reading.
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
_HEAD = 20_000  # bytes in which a header is sought
_ESCAPED = re.compile(r"'+ *[=+\-@\t\r\n＝＋－＠]")  # with one apostrophe more than it had


def read(content: bytes, file: str) -> Entries:
    """The annotations of a table.

    Raises:
        BadInput: Not text, no header, no column of pictures, half a box; the row is named.
    """
    body, _ = decode(content, file)
    rows = _rows(body, file)
    header = next(rows, [])
    places = named(header)
    if "picture" not in places:
        raise BadInput(
            f"{file} has no column that names pictures, but {listed(header)}; call it 'picture'."
        )
    if not places.keys() - {"picture", "picture_width", "picture_height"}:
        raise BadInput(f"{file} has pictures and no labels; add a column 'label'.")
    entries = Entries(file)
    for line, row in enumerate(rows, 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > len(header):
            raise BadInput(
                f"{file}, row {line}: {len(row)} cells where the header has {len(header)}; put "
                "quotes around text that holds a delimiter."
            )
        own = {n: plain(row[i].strip()) for n, i in places.items() if i < len(row)}
        get = own.get
        entries.add(
            f"row {line}",
            get("picture", ""),
            get("label", ""),
            _box(own, f"{file}, row {line}"),
            _size(own),
            labeler=get("labeler", ""),
            created=get("created"),
            unsure=get("unsure", ""),
        )
    return entries


def is_like(content: bytes) -> bool:
    """Whether a file has a header that names pictures, and labels or boxes."""
    return _like(named(_header(content)))


def _like(places: Mapping[str, int]) -> bool:
    return "picture" in places and bool(places.keys() & {"label", "left", "labeler"})


def why_not(content: bytes) -> str:
    """Why a file holds no labels, to be said behind its name."""
    header = _header(content)
    if "picture" in named(header):
        return (
            f"names pictures and holds no labels: no column is called 'label', but {listed(header)}"
        )
    return "holds no labels of pictures"


def _header(content: bytes) -> list[str]:
    """The first row of a file; nothing of one that is no text."""
    try:
        return next(_rows(decode(content[:_HEAD], "")[0], ""), [])
    except BadInput:
        return []


def write(annotations: Sequence[Annotation]) -> bytes:
    """A table with all columns; times are in UTC, to the microsecond."""
    rows = [
        (
            one.picture,
            *(("",) * 4 if one.box is None else (f"{v:.15g}" for v in one.box)),
            one.label,
            one.labeler,
            "" if one.created is None else moment(one.created),
            "yes" if one.unsure else "",
            *(one.size or ("", "")),
        )
        for one in annotations
    ]
    return table(COLUMNS, rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    """A CSV file whose cells no spreadsheet takes for formulas; `plain` gives them back."""
    frame = pd.DataFrame(
        [[_kept(v) for v in row] for row in rows], columns=list(columns), dtype=object
    )
    made = safe_for_spreadsheet(frame).to_csv(index=False, lineterminator="\r\n")
    return str(made).encode()


def named(header: Sequence[str]) -> dict[str, int]:
    """The column of each thing that a header names."""
    keys = [re.sub(r"[^a-z0-9]", "", plain(cell.strip()).lower()) for cell in header]
    made: dict[str, int] = {}
    for name, aliases in _ALIASES.items():
        there = [keys.index(alias) for alias in aliases if alias in keys]
        if there:
            made[name] = there[0]
    if "right" in made and "bottom" in made:  # then these are the picture's own
        for side in ("width", "height"):
            if side in made and keys[made[side]] == side:
                made.setdefault(f"picture_{side}", made[side])
            made.pop(side, None)
    return made


def cells(content: bytes, file: str) -> list[list[str]]:
    """The rows of a table that `table` has written, the header among them.

    Raises:
        BadInput: It is no text.
    """
    body, _ = decode(content, file)
    return [[plain(cell) for cell in row] for row in _rows(body, file)]


def plain(cell: str) -> str:
    """A cell without the apostrophe that kept a spreadsheet from taking it for a formula."""
    return cell[1:] if _ESCAPED.match(cell) else cell


def _kept(value: object) -> object:
    """A cell that begins as if it were escaped gets an apostrophe, too."""
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
        lacks = names[values.index("")]
        raise BadInput(f"{where}: the box has no {lacks}; give {listed(names)}, or none of them.")
    if names[2] == "width":
        return list(values)
    try:
        left, top, right, bottom = (float(v) for v in values)
    except ValueError:
        return list(values)  # whose sentence is that of any cell which is no number
    return [left, top, right - left, bottom - top]


def _size(cells: Mapping[str, str]) -> list[object] | None:
    size = [cells.get("picture_width", ""), cells.get("picture_height", "")]
    return list(size) if all(size) else None
