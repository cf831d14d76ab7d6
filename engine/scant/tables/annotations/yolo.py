"""YOLO format: one text file per picture with one line per box, relative to the picture.

A line is `class x y width height` with the center and sides of the box divided by those of the
picture; a confidence may follow. Polygons (`class x y x y x y …`) are replaced by their bounding
boxes. Names of classes are in `classes.txt`, `obj.names` or `data.yaml`.

The format has no labelers, times, uncertain labels and unlabeled boxes. A label of a whole picture
is a box that covers it. Size and file extension of pictures are in an additional file
`pictures.csv`, which other programs ignore; without it, boxes stay relative (`Annotation.size` of
1 x 1) until the picture is read.

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
    """Return the label files, found by folder `labels`, picture or class names."""
    pictures = {p.with_suffix("") for _, p in members if p.suffix.lower() in ENDINGS}
    has_class_names = any(path.name.lower() in _NAMES for _, path in members)
    found = []
    for member, path in members:
        if path.suffix.lower() != ".txt" or path.name.lower() in _NAMES:
            continue
        in_labels_folder = LABELS in (part.lower() for part in path.parts[:-1])
        is_plausible = has_class_names and path.stem.lower().split(".")[0] not in _OTHER
        if in_labels_folder or path.with_suffix("") in pictures or is_plausible:
            found.append((member, path))
    return found


def read(archive: zipfile.ZipFile, members: Sequence[Member], file: str) -> Entries:
    """Read the annotations of an archive.

    Raises:
        BadInput: A line is invalid or its class has no name; file and line are named.
    """
    entries = Entries(file)
    names = _names(archive, members, file)
    pictures = _pictures(archive, members, file)
    images = {p.with_suffix("").parts: p for _, p in members if p.suffix.lower() in ENDINGS}
    for member, path in label_files(members):
        picture, size = pictures.get(str(path), (_picture(path, images), None))
        text = content_of(archive, member, file).decode("utf-8", errors="replace")
        for line, row in enumerate(text.splitlines(), 1):
            if row.strip():
                where = f"{member.filename[:80]!r}, line {line}"
                label, relative = _line(row.split(), names, f"{file}, {where}")
                is_whole = relative == [0, 0, 1, 1]
                scale_x, scale_y = size or (1, 1)
                box = [
                    relative[0] * scale_x,
                    relative[1] * scale_y,
                    relative[2] * scale_x,
                    relative[3] * scale_y,
                ]
                entries.add(
                    where, picture, label, None if is_whole else box,
                    size if size or is_whole else (1, 1),
                )  # fmt: skip
    return entries


def write(annotations: Sequence[Annotation]) -> bytes:
    """Encode a ZIP archive with `labels/`, `classes.txt`, `data.yaml` and `pictures.csv`.

    Raises:
        BadInput: The size of a picture with a box is unknown, since boxes are relative.
    """
    classes = list(
        dict.fromkeys(annotation.label for annotation in annotations if annotation.label)
    )
    index = {name: i for i, name in enumerate(classes)}
    sizes: dict[str, tuple[int, int] | None] = {}
    lines: dict[str, list[str]] = {}
    for annotation in annotations:
        label_lines = lines.setdefault(annotation.picture, [])
        sizes[annotation.picture] = annotation.size or sizes.get(annotation.picture)
        if annotation.label:
            relative = (0.5, 0.5, 1.0, 1.0) if annotation.box is None else _relative(annotation)
            label_lines.append(
                " ".join([str(index[annotation.label]), *(repr(v) for v in relative)])
            )
    files: dict[str, bytes] = {}
    rows = []
    for picture, label_lines in lines.items():
        path = path_name(picture)
        label_path = f"{LABELS}/{PurePosixPath(path).with_suffix('.txt')}"
        if label_path in files:
            label_path = f"{LABELS}/{path}.txt"
        files[label_path] = "".join(f"{line}\n" for line in label_lines).encode()
        rows.append((picture, *(sizes[picture] or ("", "")), label_path))
    files["classes.txt"] = "".join(f"{name}\n" for name in classes).encode()
    config = {"path": ".", "train": "images", "val": "images", "names": dict(enumerate(classes))}
    files["data.yaml"] = yaml.safe_dump(config, allow_unicode=True, sort_keys=False).encode()
    files[_PICTURES] = csv_rows.table(("picture", "width", "height", "labels"), rows)
    return packed(files)


def _line(cells: list[str], names: list[str] | None, where: str) -> tuple[str, list[float]]:
    """Parse the class of a line and left, top, width and height relative to the picture."""
    polygon = len(cells) >= 7 and len(cells) % 2 == 1
    if len(cells) not in (5, 6) and not polygon:
        raise BadInput(
            f"{where}: {len(cells)} numbers; a line is 'class x y width height', in shares of the "
            "picture."
        )
    if not cells[0].isascii() or not cells[0].isdigit() or len(cells[0]) > 9:
        raise BadInput(f"{where}: the class is {cells[0][:40]!r}; give its number, from 0.")
    index = int(cells[0])
    if names is not None and index >= len(names):
        raise BadInput(
            f"{where}: there is no class {index} among {len(names)} names; add it to classes.txt."
        )
    values = [number(cell, where) for cell in cells[1:]]
    if any(not -1 <= v <= 2 for v in values[:4]):
        raise BadInput(
            f"{where}: {max(values[:4], key=abs):g} is not a share of the picture (0 to 1); divide "
            "pixels by its width and height."
        )
    if polygon:
        xs, ys = values[::2], values[1::2]
        box = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
    else:
        x, y, width, height = values[:4]
        box = [x - width / 2, y - height / 2, width, height]
    return str(index) if names is None else names[index], box


def _names(archive: zipfile.ZipFile, members: Sequence[Member], file: str) -> list[str] | None:
    """Return the names of the classes; None if no file has them."""
    members_by_name = {path.name.lower(): member for member, path in members}
    for name in _NAMES:
        if name not in members_by_name:
            continue
        text = content_of(archive, members_by_name[name], file).decode(
            "utf-8-sig", errors="replace"
        )
        if not name.endswith(("yaml", "yml")):
            return [line.strip() for line in text.rstrip().splitlines()]
        if (
            names := _of_yaml(text, f"{file}, {members_by_name[name].filename[:80]!r}")
        ) is not None:
            return names
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
    if not all(isinstance(n, str | int | float) for n in names):  # also rejects nested YAML aliases
        raise BadInput(f"{where}: 'names' is not a list of names; write 'names: [first, second]'.")
    return [str(n) for n in names]


def _pictures(
    archive: zipfile.ZipFile, members: Sequence[Member], file: str
) -> dict[str, tuple[str, tuple[int, int] | None]]:
    """Return names and sizes of pictures by label file, from the file that `write` adds."""
    index_member = next((m for m, path in members if str(path) == _PICTURES), None)
    if index_member is None:
        return {}
    where = f"{file}, {_PICTURES}"
    pictures: dict[str, tuple[str, tuple[int, int] | None]] = {}
    rows = csv_rows.cells(content_of(archive, index_member, file), where)
    for line, row in enumerate(rows[1:], 2):
        if len(row) != 4:
            raise BadInput(f"{where}, row {line}: {len(row)} cells; give picture to labels.")
        size = tuple(round(number(v, f"{where}, row {line}")) for v in row[1:3] if v)
        pictures[row[3]] = row[0], (size[0], size[1]) if len(size) == 2 else None
    return pictures


def _picture(path: PurePosixPath, images: dict[tuple[str, ...], PurePosixPath]) -> str:
    """Return the picture of a label file: in folder `images` instead of `labels`, else its stem."""
    stem = path.with_suffix("").parts
    for i in reversed(range(len(stem) - 1)):
        if stem[i].lower() == LABELS:
            image_stem = (*stem[:i], "images", *stem[i + 1 :])
            return str(images.get(image_stem, PurePosixPath(*stem[i + 1 :])))
    return str(images.get(stem, PurePosixPath(*stem)))


def _relative(item: Annotation) -> tuple[float, float, float, float]:
    if item.size is None:
        raise BadInput(
            f"{item.picture}: YOLO has boxes in shares of the picture, and its size is not known; "
            "choose CSV or COCO."
        )
    assert item.box is not None
    left, top, width, height = item.box
    picture_width, picture_height = item.size
    return (
        (left + width / 2) / picture_width,
        (top + height / 2) / picture_height,
        width / picture_width,
        height / picture_height,
    )
