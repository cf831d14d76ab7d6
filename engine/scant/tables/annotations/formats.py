"""Detection, reading and writing of annotation formats."""

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

_ARCHIVE_BYTES = 500_000_000  # maximum unpacked size of an archive with pictures


@dataclass(frozen=True)
class Format:
    """Annotation format for export.

    Attributes:
        name: Name of the format.
        file: File name of the export.
        media_type: Media type of the file.
        pictures: True if `write` needs the pictures.
        carries: Sentence on fields that the format lacks; "" for a lossless format.
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
    """Return the format with this name, ignoring case.

    Raises:
        BadInput: There is no format with this name.
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
    """Encode annotations as a file.

    Args:
        name: Name of a format.
        annotations: Annotations.
        image: Function that returns the image file of an annotation, for ImageFolder.

    Raises:
        BadInput: The format does not exist, needs the sizes of pictures that are unknown, or needs
            the pictures.
    """
    format_ = format_named(name)
    if format_.pictures:
        if image is None:
            raise BadInput(
                f"{format_.name} needs images, and these pictures have none; choose another format."
            )
        return image_folders.write(annotations, image)
    writers = {"CSV": csv_rows, "Label Studio": label_studio, "COCO": coco, "YOLO": yolo}
    return writers[format_.name].write(annotations)


def read(content: bytes, name: str, notes: list[str] | None = None) -> list[Annotation]:
    """Read annotations in any supported format, which is detected by content.

    Args:
        content: Content of the file.
        name: Name of the file for messages.
        notes: List to which sentences on ignored entries are added.

    Raises:
        BadInput: The file is too large, in no supported format, or has an invalid entry.
    """
    if content.startswith(b"PK\x03\x04"):
        entries = _of_zip(content, name)
    else:
        if len(content) > LIMIT_BYTES:
            raise BadInput(
                f"{name} has {len(content) / 1e6:,.0f} MB and the limit is "
                f"{LIMIT_BYTES / 1e6:,.0f} MB; give fewer labels."
            )
        entries = of_text(content, name)
    if not entries.annotations:
        raise BadInput(f"{name} holds no labels; {'; '.join(entries.notes) or 'add some.'}")
    if notes is not None:
        notes += entries.notes
    return entries.annotations


def of_text(content: bytes, name: str) -> Entries:
    """Read the annotations of a JSON or CSV file.

    Raises:
        BadInput: The file is in no supported format, or has an invalid entry.
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
    """Read the annotation files in an archive; class folders are not considered.

    Returns:
        Annotations and the names of the files with annotations.

    Raises:
        BadInput: An annotation file is invalid.
    """
    entries, used = Entries(file), list[str]()
    for member, path in members:
        ending = path.suffix.lower()
        if ending not in (".json", ".csv", ".tsv") or path.name == "pictures.csv":
            continue
        content = content_of(archive, member, file)
        where = f"{file}, {member.filename[:80]!r}"
        if ending == ".json":
            value = parsed(content, where)
            if not coco.is_like(value) and not label_studio.is_like(value):
                entries.messages.append(f"{member.filename[:80]!r} holds no labels")
                continue
        elif not csv_rows.is_like(content):
            entries.messages.append(f"{member.filename[:80]!r} {csv_rows.why_not(content)}")
            continue
        _join(entries, of_text(content, where))
        used.append(member.filename)
    lines = yolo.label_files(members)
    if lines:
        _join(entries, yolo.read(archive, members, file))
        used.append(f"{len(lines):,} text file{'s' * (len(lines) > 1)} of YOLO")
    return entries, used


def _join(entries: Entries, added: Entries) -> None:
    entries.annotations += added.annotations
    entries.passed_over += added.passed_over
    entries.messages += added.messages


def _of_zip(content: bytes, name: str) -> Entries:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except BROKEN:
        raise BadInput(f"{name} is a damaged ZIP archive; pack it again.") from None
    with archive:
        members = harmless(archive, name, ArchiveLimits(unpacked_bytes=_ARCHIVE_BYTES))
        entries, used = inside(archive, members, name)
        if used:
            return entries
        if any(path.suffix.lower() in ENDINGS for _, path in members):
            return image_folders.read(members, name)
    raise BadInput(
        f"{name} holds no labels: no JSON of Label Studio or COCO, no CSV file, no YOLO text files "
        "in a folder labels/, no pictures in folders."
    )
