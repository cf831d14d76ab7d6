"""YOLO's labels: a text file a picture, a line a box, in shares of the picture; names apart.

A line is `class x y width height`, the middle and sides of the box, each divided by those of the
picture; a confidence may follow. Polygons (`class x y x y x y …`) are read as the box around them.
Names of classes stand in `classes.txt`, `obj.names` or `data.yaml`.

The format has no place for labelers, times and doubts, nor for boxes without a label: these are
left out. A label of a whole picture is a box of all of it, and is read so. It also leaves out the
size and the ending of a picture; a file `pictures.csv` beside the labels keeps them, which other
programs pass over. Where it is missing, boxes stay in shares (`Annotation.size` of 1 x 1) until
the picture is there.

Source: https://docs.ultralytics.com/datasets/detect (2026).
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import yaml

from scant.errors import BadInput
from scant.tables.annotations import csv_rows
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.entries import Entries, number
from scant.tables.annotations.zip_files import content_of, packed, path_name
from scant.tables.images.archives import ENDINGS, Member

LABELS = "labels"
_NAMES = ("classes.txt", "obj.names", "data.yaml", "data.yml", "dataset.yaml")
_PICTURES = "pictures.csv"
_OTHER = ("readme", "license", "licence", "requirements", "train", "val", "valid", "test", "notes")


def label_files(members: Sequence[Member]) -> list[Member]:
    """The files that hold boxes: those in a folder `labels`, or beside a picture of their name."""
    pictures = {p.with_suffix("") for _, p in members if p.suffix.lower() in ENDINGS}
    named = any(path.name.lower() in _NAMES for _, path in members)
    made = []
    for member, path in members:
        if path.suffix.lower() != ".txt" or path.name.lower() in _NAMES:
            continue
        inside = LABELS in (part.lower() for part in path.parts[:-1])
        known = named and path.stem.lower().split(".")[0] not in _OTHER
        if inside or path.with_suffix("") in pictures or known:
            made.append((member, path))
    return made


def read(archive: zipfile.ZipFile, members: Sequence[Member], file: str) -> Entries:
    """The annotations of an archive.

    Raises:
        BadInput: A line that is none, a class that has no name; file and line are named.
    """
    entries = Entries(file)
    names = _names(archive, members, file)
    known = _pictures(archive, members, file)
    beside = {p.with_suffix("").parts: p for _, p in members if p.suffix.lower() in ENDINGS}
    for member, path in label_files(members):
        picture, size = known.get(str(path), (_picture(path, beside), None))
        text = content_of(archive, member, file).decode("utf-8", errors="replace")
        for line, row in enumerate(text.splitlines(), 1):
            if row.strip():
                where = f"{member.filename[:80]!r}, line {line}"
                label, shares = _line(row.split(), names, f"{file}, {where}")
                whole = shares == [0, 0, 1, 1]
                across, down = size or (1, 1)
                box = [shares[0] * across, shares[1] * down, shares[2] * across, shares[3] * down]
                entries.add(
                    where, picture, label, None if whole else box,
                    size if size or whole else (1, 1),
                )  # fmt: skip
    return entries


def write(annotations: Sequence[Annotation]) -> bytes:
    """A ZIP with `labels/`, `classes.txt`, `data.yaml` and `pictures.csv`.

    Raises:
        BadInput: A box in a picture whose size is not known: the format is in shares.
    """
    classes = list(dict.fromkeys(one.label for one in annotations if one.label))
    index = {name: i for i, name in enumerate(classes)}
    sizes: dict[str, tuple[int, int] | None] = {}
    lines: dict[str, list[str]] = {}
    for one in annotations:
        own = lines.setdefault(one.picture, [])
        sizes[one.picture] = one.size or sizes.get(one.picture)
        if one.label:
            shares = (0.5, 0.5, 1.0, 1.0) if one.box is None else _shares(one)
            own.append(" ".join([str(index[one.label]), *(repr(v) for v in shares)]))
    files: dict[str, bytes] = {}
    rows = []
    for picture, own in lines.items():
        path = path_name(picture)
        place = f"{LABELS}/{PurePosixPath(path).with_suffix('.txt')}"
        if place in files:
            place = f"{LABELS}/{path}.txt"
        files[place] = "".join(f"{line}\n" for line in own).encode()
        rows.append((picture, *(sizes[picture] or ("", "")), place))
    files["classes.txt"] = "".join(f"{name}\n" for name in classes).encode()
    described = {"path": ".", "train": "images", "val": "images", "names": dict(enumerate(classes))}
    files["data.yaml"] = yaml.safe_dump(described, allow_unicode=True, sort_keys=False).encode()
    files[_PICTURES] = csv_rows.table(("picture", "width", "height", "labels"), rows)
    return packed(files)


def _line(cells: list[str], names: list[str] | None, where: str) -> tuple[str, list[float]]:
    """The class of a line, and left, top, width and height in shares."""
    polygon = len(cells) >= 7 and len(cells) % 2 == 1
    if len(cells) not in (5, 6) and not polygon:
        raise BadInput(
            f"{where}: {len(cells)} numbers; a line is 'class x y width height', in shares of the "
            "picture."
        )
    if not cells[0].isascii() or not cells[0].isdigit() or len(cells[0]) > 9:
        raise BadInput(f"{where}: the class is {cells[0][:40]!r}; give its number, from 0.")
    at = int(cells[0])
    if names is not None and at >= len(names):
        raise BadInput(
            f"{where}: there is no class {at} among {len(names)} names; add it to classes.txt."
        )
    values = [number(cell, where) for cell in cells[1:]]
    if any(not -1 <= v <= 2 for v in values[:4]):
        raise BadInput(
            f"{where}: {max(values[:4], key=abs):g} is no share of the picture; divide pixels by "
            "its width and height."
        )
    if polygon:
        xs, ys = values[::2], values[1::2]
        shares = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
    else:
        x, y, width, height = values[:4]
        shares = [x - width / 2, y - height / 2, width, height]
    return str(at) if names is None else names[at], shares


def _names(archive: zipfile.ZipFile, members: Sequence[Member], file: str) -> list[str] | None:
    """Names of the classes by number; None where no file says them."""
    there = {path.name.lower(): member for member, path in members}
    for name in _NAMES:
        if name not in there:
            continue
        text = content_of(archive, there[name], file).decode("utf-8-sig", errors="replace")
        if not name.endswith(("yaml", "yml")):
            return [line.strip() for line in text.rstrip().splitlines()]
        if (found := _of_yaml(text, f"{file}, {there[name].filename[:80]!r}")) is not None:
            return found
    return None


def _of_yaml(text: str, where: str) -> list[str] | None:
    try:
        value: Any = yaml.safe_load(text[:200_000])
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput(f"{where} is not YAML; write 'names: [first, second]'.") from None
    names = value.get("names") if isinstance(value, dict) else None
    if isinstance(names, dict):
        if sorted(map(str, names)) != sorted(map(str, range(len(names)))):
            raise BadInput(f"{where}: the names of classes are not numbered from 0; number them.")
        names = [v for _, v in sorted(names.items(), key=lambda pair: int(pair[0]))]
    if not isinstance(names, list):
        return None
    if not all(isinstance(n, str | int | float) for n in names):  # aliases of aliases among them
        raise BadInput(f"{where}: 'names' is no list of names; write 'names: [first, second]'.")
    return [str(n) for n in names]


def _pictures(
    archive: zipfile.ZipFile, members: Sequence[Member], file: str
) -> dict[str, tuple[str, tuple[int, int] | None]]:
    """Names and sizes of pictures by the path of their labels, as `write` keeps them."""
    own = next((m for m, path in members if str(path) == _PICTURES), None)
    if own is None:
        return {}
    where = f"{file}, {_PICTURES}"
    made: dict[str, tuple[str, tuple[int, int] | None]] = {}
    rows = csv_rows.cells(content_of(archive, own, file), where)
    for line, row in enumerate(rows[1:], 2):
        if len(row) != 4:
            raise BadInput(f"{where}, row {line}: {len(row)} cells; give picture to labels.")
        size = tuple(round(number(v, f"{where}, row {line}")) for v in row[1:3] if v)
        made[row[3]] = row[0], (size[0], size[1]) if len(size) == 2 else None
    return made


def _picture(path: PurePosixPath, beside: dict[tuple[str, ...], PurePosixPath]) -> str:
    """The picture of a file of labels: where `labels` is `images` in its path, else its stem."""
    bare = path.with_suffix("").parts
    for at in reversed(range(len(bare) - 1)):
        if bare[at].lower() == LABELS:
            moved = (*bare[:at], "images", *bare[at + 1 :])
            return str(beside.get(moved, PurePosixPath(*bare[at + 1 :])))
    return str(beside.get(bare, PurePosixPath(*bare)))


def _shares(one: Annotation) -> tuple[float, float, float, float]:
    if one.size is None:
        raise BadInput(
            f"{one.picture}: YOLO has boxes in shares of the picture, and its size is not known; "
            "choose CSV or COCO."
        )
    assert one.box is not None
    left, top, width, height = one.box
    across, down = one.size
    return (left + width / 2) / across, (top + height / 2) / down, width / across, height / down
