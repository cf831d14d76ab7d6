"""ZIP archives with one folder of pictures per class, as in ImageFolder of torchvision.

A box of a picture is stored as `picture@left,top,width,height.png`. Unlabeled pictures are not in a
folder. The format has no labelers, times, uncertain labels and sizes of pictures.
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
    """Read the annotations of an archive from the paths of its pictures.

    Raises:
        BadInput: A box has no width or height.
    """
    entries = Entries(file)
    for member, path in members:
        if path.suffix.lower() in ENDINGS:
            picture, box = part_of(path.name)
            label = class_of(path.parts[-2]) if len(path.parts) > 1 else ""
            entries.add(f"{member.filename[:80]!r}", picture, label, box)
    return entries


def class_of(folder: str) -> str:
    """Return the class of a folder."""
    return unquote(folder)


def part_of(name: str) -> tuple[str, Box | None]:
    """Parse a file name as a picture and a box; None for the whole picture."""
    stem = name.rpartition(".")[0]
    if (match := _PART.fullmatch(stem)) is None:
        return unquote(name), None
    left, top, width, height = (float(v) for v in match.groups()[1:])
    return unquote(match[1]), (left, top, width, height)


def write(annotations: Sequence[Annotation], image: Callable[[Annotation], bytes]) -> bytes:
    """Encode a ZIP archive of pictures and boxes, without duplicates.

    Args:
        annotations: Annotations.
        image: Function that returns the image file of an annotation (PNG, JPEG, GIF or BMP).
    """
    files: dict[str, bytes] = {}
    for annotation in annotations:
        content = image(annotation)
        ending = next(
            (e for signature, e in _ENDING.items() if content.startswith(signature)), ".png"
        )
        name = file_name(annotation.picture)
        if annotation.box is not None:
            name += "@" + ",".join(_digits(v) for v in annotation.box) + ending
        elif not annotation.picture.lower().endswith(tuple(ENDINGS)):
            name += ending
        folder = f"{file_name(annotation.label)}/" if annotation.label else ""
        files[f"{folder}{name}"] = content
    return packed(files)


def _digits(value: float) -> str:
    """Format a number of pixels without an exponent."""
    return f"{value:.{DECIMALS}f}".rstrip("0").rstrip(".")
