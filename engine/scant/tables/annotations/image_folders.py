"""Folders of pictures, a folder a class, as torchvision's ImageFolder has them, in a ZIP.

The class of a picture is the folder that it lies in. What is labeled may be a part of a picture:
then its file is called `picture@left,top,width,height.png`, and is read so. The format has no place
for labelers, times, doubts and the sizes of the pictures: these are left out. What has no label
lies in no folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from scant.tables.annotations.annotation import DECIMALS, Annotation, Box
from scant.tables.annotations.entries import Entries
from scant.tables.annotations.zip_files import file_name, packed
from scant.tables.images.archives import ENDINGS, Member

_NUMBER = r"-?\d{1,7}(?:\.\d{1,6})?"
_PART = re.compile(rf"(.+)@({_NUMBER}),({_NUMBER}),({_NUMBER}),({_NUMBER})")
_ENDING = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"BM": ".bmp"}


def read(members: Sequence[Member], file: str) -> Entries:
    """The annotations of the pictures of an archive, by their paths alone.

    Raises:
        BadInput: A part without width or height.
    """
    entries = Entries(file)
    for member, path in members:
        if path.suffix.lower() in ENDINGS:
            picture, box = part_of(path.name)
            label = class_of(path.parts[-2]) if len(path.parts) > 1 else ""
            entries.add(f"{member.filename[:80]!r}", picture, label, box)
    return entries


def class_of(folder: str) -> str:
    """The class that a folder is of."""
    return unquote(folder)


def part_of(name: str) -> tuple[str, Box | None]:
    """The picture that a file is of, and the box of its part; None: all of it."""
    stem = name.rpartition(".")[0]
    if (found := _PART.fullmatch(stem)) is None:
        return unquote(name), None
    left, top, width, height = (float(v) for v in found.groups()[1:])
    return unquote(found[1]), (left, top, width, height)


def write(annotations: Sequence[Annotation], image: Callable[[Annotation], bytes]) -> bytes:
    """A ZIP of pictures and of parts of pictures; what two people labeled alike is there once.

    Args:
        annotations: The labels.
        image: The file of what an annotation labels: PNG, JPEG, GIF or BMP.
    """
    files: dict[str, bytes] = {}
    for one in annotations:
        content = image(one)
        ending = next((e for mark, e in _ENDING.items() if content.startswith(mark)), ".png")
        name = file_name(one.picture)
        if one.box is not None:
            name += "@" + ",".join(_digits(v) for v in one.box) + ending
        elif not one.picture.lower().endswith(tuple(ENDINGS)):
            name += ending
        folder = f"{file_name(one.label)}/" if one.label else ""
        files[f"{folder}{name}"] = content
    return packed(files)


def _digits(value: float) -> str:
    """A number of pixels without an exponent."""
    return f"{value:.{DECIMALS}f}".rstrip("0").rstrip(".")
