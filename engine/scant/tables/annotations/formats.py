"""The formats of annotations: recognized by content, read and written."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scant.errors import BadInput
from scant.tables.annotations import coco, csv_rows, image_folders, label_studio, yolo
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.entries import LIMIT_BYTES, Entries
from scant.tables.annotations.json_text import parsed
from scant.tables.annotations.zip_files import content_of
from scant.tables.images.archives import (
    BROKEN,
    ENDINGS,
    ArchiveLimits,
    Member,
    harmless,
)

_ARCHIVE_BYTES = 500_000_000  # of a ZIP with pictures in it, unpacked


@dataclass(frozen=True)
class Format:
    """A way to write annotations.

    Attributes:
        name: By which `write` knows it and people choose it.
        file: What its file is called.
        media_type: Of the file.
        pictures: Whether `write` needs the pictures themselves.
        carries: A sentence on what it has no place for; "" where nothing is lost.
    """

    name: str
    file: str
    media_type: str
    pictures: bool = False
    carries: str = ""


FORMATS = (
    Format("CSV", "labels.csv", "text/csv"),
    Format("Label Studio", "labels.label-studio.json", "application/json"),
    Format("COCO", "labels.coco.json", "application/json"),
    Format(
        "YOLO", "labels.yolo.zip", "application/zip",
        carries="Without labelers, times, doubts and boxes that nobody has labeled.",
    ),
    Format(
        "ImageFolder", "labels.folders.zip", "application/zip", True,
        carries="Without labelers, times, doubts and the sizes of the pictures.",
    ),
)  # fmt: skip


def format_named(name: str) -> Format:
    """The format of this name.

    Raises:
        BadInput: There is none.
    """
    for one in FORMATS:
        if one.name.lower() == name.strip().lower():
            return one
    raise BadInput(
        f"There is no format {name[:40]!r} of labels; there are "
        f"{', '.join(one.name for one in FORMATS)}."
    )


def write(
    name: str,
    annotations: Sequence[Annotation],
    image: Callable[[Annotation], bytes] | None = None,
) -> bytes:
    """Annotations as a file.

    Args:
        name: Of a format.
        annotations: The labels.
        image: The file of what an annotation labels; ImageFolder needs it.

    Raises:
        BadInput: No such format; boxes whose pictures have no known size, where the format is in
            shares of them; no pictures, where it needs them.
    """
    own = format_named(name)
    if own.pictures:
        if image is None:
            raise BadInput(f"{own.name} holds the pictures themselves, and there are none.")
        return image_folders.write(annotations, image)
    writers = {"CSV": csv_rows, "Label Studio": label_studio, "COCO": coco, "YOLO": yolo}
    return writers[own.name].write(annotations)


def read(content: bytes, name: str, notes: list[str] | None = None) -> list[Annotation]:
    """The annotations of a file of any of the formats, which its content tells.

    Args:
        content: Of the file.
        name: What messages call it.
        notes: Gets a sentence on each kind of what was passed over.

    Raises:
        BadInput: Too large, of no known format, or an entry that cannot be; it is named.
    """
    if content.startswith(b"PK\x03\x04"):
        found = _of_zip(content, name)
    else:
        if len(content) > LIMIT_BYTES:
            raise BadInput(
                f"{name} has {len(content) / 1e6:,.0f} MB and the limit is "
                f"{LIMIT_BYTES / 1e6:,.0f} MB; give fewer labels."
            )
        found = of_text(content, name)
    if not found.annotations:
        raise BadInput(f"{name} holds no labels; {'; '.join(found.notes) or 'add some.'}")
    if notes is not None:
        notes += found.notes
    return found.annotations


def of_text(content: bytes, name: str) -> Entries:
    """The annotations of a JSON or CSV file.

    Raises:
        BadInput: As `read`.
    """
    if content[:200].lstrip(b"\xef\xbb\xbf \r\n\t")[:1] not in (b"[", b"{"):
        if not content.strip():
            raise BadInput(f"{name} is empty; export the labels again.")
        return csv_rows.read(content, name)
    value = parsed(content, name)
    if coco.is_like(value):
        return coco.read(content, name)
    if label_studio.is_like(value):
        return label_studio.read(content, name)
    raise BadInput(
        f"{name} is JSON, but not of Label Studio (tasks with 'data') nor COCO ('images', "
        "'annotations'); export the labels as one of these."
    )


def inside(
    archive: zipfile.ZipFile, members: Sequence[Member], file: str
) -> tuple[Entries, list[str]]:
    """The annotations of the files of an archive that hold some, but not of its folders.

    Returns:
        They, and the names of these files; none where there are none.

    Raises:
        BadInput: As `read`, where a file is one of annotations.
    """
    every, used = Entries(file), list[str]()
    for member, path in members:
        ending = path.suffix.lower()
        if ending not in (".json", ".csv", ".tsv") or path.name == "pictures.csv":
            continue
        content = content_of(archive, member, file)
        where = f"{file}, {member.filename[:80]!r}"
        if ending == ".json":
            value = parsed(content, where)
            if not coco.is_like(value) and not label_studio.is_like(value):
                every.messages.append(f"{member.filename[:80]!r} holds no labels")
                continue
        elif not csv_rows.is_like(content):
            every.messages.append(f"{member.filename[:80]!r} {csv_rows.why_not(content)}")
            continue
        _join(every, of_text(content, where))
        used.append(member.filename)
    lines = yolo.label_files(members)
    if lines:
        _join(every, yolo.read(archive, members, file))
        used.append(f"{len(lines):,} text file{'s' * (len(lines) > 1)} of YOLO")
    return every, used


def _join(every: Entries, found: Entries) -> None:
    every.annotations += found.annotations
    every.passed_over += found.passed_over
    every.messages += found.messages


def _of_zip(content: bytes, name: str) -> Entries:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except BROKEN:
        raise BadInput(f"{name} is a damaged ZIP archive; pack it again.") from None
    with archive:
        members = harmless(archive, name, ArchiveLimits(unpacked_bytes=_ARCHIVE_BYTES))
        found, used = inside(archive, members, name)
        if used:
            return found
        if any(path.suffix.lower() in ENDINGS for _, path in members):
            return image_folders.read(members, name)
    raise BadInput(
        f"{name} holds no labels: no JSON of Label Studio or COCO, no CSV file, no YOLO text files "
        "in a folder labels/, no pictures in folders."
    )
