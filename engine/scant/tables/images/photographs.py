"""Reading of ZIP archives of photographs as tables of patches."""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from PIL import Image

from scant.errors import BadInput
from scant.tables.annotations import formats, image_folders
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.matching import Names
from scant.tables.assembly import noted
from scant.tables.column_matching import listed
from scant.tables.images import patches
from scant.tables.images.archives import (
    IMAGE_LIMIT_BYTES,
    ArchiveLimits,
    Member,
    harmless,
    images_of,
    opened,
    readable,
    unread,
)
from scant.tables.images.cutting import SHORT, SIDE
from scant.tables.images.decoding import BROKEN, FORMATS, Conversions, decoded
from scant.tables.images.patches import Patches
from scant.tables.read import read_frame
from scant.tables.schema import Table, TableSchema

LIMITS = ArchiveLimits(files=10_000, pixels=60_000_000)
MOST_PICTURES = 500  # maximum number of photographs
MOST_PATCHES = 20_000  # maximum total number of patches
MOST_SMALL = 5_000  # maximum number of pictures that are single patches


def read_photographs(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    purpose: str = "fit",
    limits: ArchiveLimits = LIMITS,
    limit_bytes: int = IMAGE_LIMIT_BYTES,
) -> Table:
    """Read photographs as patches with the labels of annotation files in the archive.

    Args:
        source: Path or content of the archive.
        schema: Columns that the study takes, as in `table_of`.
        name: Name of the file for messages.
        purpose: "fit" or "predict", as in `read_table`.
        limits: Limits on the content.
        limit_bytes: Maximum size of the archive in bytes.

    Returns:
        Table of patches. Regions with annotations (Label Studio, COCO, YOLO or CSV) are labeled
        patches. Other photographs are cut into unlabeled squares, or are single patches if all
        annotations are of whole pictures. Small pictures are single patches, labeled by folder.
        Folders of photographs are no labels, since most patches of a photograph show other things.

    Raises:
        BadInput: The file is no ZIP archive, is encrypted, exceeds a limit, has unsafe paths or
            links, no readable image or an invalid annotation file.
    """
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    with opened(source, file, limit_bytes) as archive:
        all_members = harmless(archive, file, limits)
        members = images_of(all_members, file)
        entries, used = formats.inside(archive, all_members, file)
        patched = not used and _are_patches(archive, members)
        limit = MOST_SMALL if patched else MOST_PICTURES
        if len(members) > limit:
            raise BadInput(
                f"{file} holds {len(members):,} {'pictures' if patched else 'photographs'} and the "
                f"limit is {limit:,}; keep fewer."
            )
        annotations_of, unknown_pictures = _by_picture(members, entries.annotations)
        whole_pictures = bool(used) and all(one.box is None for one in entries.annotations)
        conversions, folders = Conversions(), _folders(members) if patched else {}

        def read(member: zipfile.ZipInfo) -> Patches:
            annotations = annotations_of.get(member.filename, [])
            has_boxes = any(one.box is not None for one in annotations)
            image = decoded(
                archive.read(member),
                f"{file}, {member.filename[:80]!r}",
                limits.pixels,
                None if has_boxes or patched else (SHORT, SHORT),
            )
            conversions.add(member.filename[:80], image.done)
            path = paths[member.filename]
            if patched:
                picture, box = image_folders.part_of(Path(path).name)
                label = folders.get(member.filename)
                return patches.single(image, path if box is None else picture, label, box)
            if annotations:
                return patches.labeled(image, path, annotations)
            return (
                patches.single(image, path, None)
                if whole_pictures
                else patches.unlabeled(image, path)
            )

        paths = {member.filename: str(path) for member, path in members}
        members, made, lost = readable(members, file, read, threads=True)
    frame = pd.concat([one.frame for one in made], ignore_index=True)
    if len(frame) > MOST_PATCHES:
        raise BadInput(
            f"{file} gives {len(frame):,} patches and the limit is {MOST_PATCHES:,}; keep fewer "
            "photographs, or fewer boxes."
        )
    table = read_frame(frame, schema, name=file, purpose=purpose)
    notes = [
        f"{file}: {sentence}"
        for sentence in (
            _cut(made)
            if not patched and not whole_pictures
            else f"{len(frame):,} pictures are patches as they are, in their own shape.",
            *_labels(frame, used, unknown_pictures, made),
            *_of_folders(members, patched, folders),
            *_renamed([*folders.values(), *(one.label for one in entries.annotations)]),
        )
    ]
    notes += [
        *lost,
        *conversions.notes(file),
        *unread(all_members, file),
        *entries.notes,
        *table.notes,
    ]
    return noted(
        Table(table.frame, table.features, table.ignored, table.rows, tuple(notes), table.sha256)
    )


def _are_patches(archive: zipfile.ZipFile, members: Sequence[Member]) -> bool:
    """Return True if pictures are single patches: small, in class folders or with box names.

    Other pictures are single patches if they are at most as large as one.
    """
    have_boxes = any(image_folders.part_of(path.name)[1] is not None for _, path in members)
    max_side = patches.WHOLE if have_boxes or _folders(members) else SIDE
    sides = []
    for member, _ in members:
        try:
            with archive.open(member) as stream, Image.open(stream, formats=FORMATS) as image:
                sides.append(max(image.size))  # from the header, without decoding
        except Image.DecompressionBombError:
            return False
        except BROKEN:
            continue
        if sides[-1] > max_side:
            return False
    return bool(sides)


def _by_picture(
    members: Sequence[Member], annotations: Sequence[Annotation]
) -> tuple[dict[str, list[Annotation]], list[str]]:
    """Group annotations by picture file; the second result has the names without a file."""
    names = Names([str(path) for _, path in members])
    annotations_of: dict[str, list[Annotation]] = defaultdict(list)
    unknown: dict[str, None] = {}
    for annotation in annotations:
        number = names.find(annotation.picture)
        if number is None:
            unknown[annotation.picture] = None
        else:
            annotations_of[members[number][0].filename].append(annotation)
    return annotations_of, list(unknown)


def _folders(members: Sequence[Member]) -> dict[str, str]:
    """Return the class of each picture by folder; empty if there is only one folder."""
    classes = {m.filename: path.parts[-2] if len(path.parts) > 1 else "" for m, path in members}
    if len({c for c in classes.values() if c}) < 2:
        return {}
    return {name: image_folders.class_of(folder) for name, folder in classes.items()}


def _cut(made: Sequence[Patches]) -> str:
    """Describe the numbers of photographs and patches."""
    boxes, whole = sum(one.own for one in made), sum(one.whole for one in made)
    parts = sum(len(one.frame) for one in made) - boxes - whole
    if whole:
        n = f"{whole:,} picture{'s' * (whole > 1)} of at most {SIDE} pixels"
        small = f"{n} {'are patches as they are' if whole > 1 else 'is a patch as it is'}"
        return (
            f"{small}; {_cut([p for p in made if not p.whole])}" if boxes + parts else f"{small}."
        )
    photographs = f"{len(made):,} photograph{'s' * (len(made) > 1)}"
    side = f"{SIDE} x {SIDE} pixels where the shorter side has {SHORT}, half a patch apart"
    if not boxes:
        was = "were" if len(made) > 1 else "was"
        return f"{photographs} {was} cut into {parts:,} patches of {side}."
    if not parts:
        return f"{photographs} have {boxes:,} patches, which are the boxes of the annotations."
    return (
        f"{photographs} have {boxes:,} patches that are boxes of the annotations, and {parts:,} of "
        f"{side}."
    )


def _labels(
    frame: pd.DataFrame,
    used: Sequence[str],
    unknown: Sequence[str],
    made: Sequence[Patches],
) -> list[str]:
    """Describe the labels from annotations."""
    if not used:
        return []
    count, conflicting = int(frame["label"].notna().sum()), sum(one.differ for one in made)
    unsure = sum(one.unsure for one in made)
    notes = [f"{count:,} of {len(frame):,} patches have labels from {listed(used)}."]
    if unknown:
        notes.append(
            f"annotations of {len(unknown):,} picture{'s' * (len(unknown) > 1)} that "
            f"{'are' if len(unknown) > 1 else 'is'} not in the archive were skipped: "
            f"{listed(unknown)}."
        )
    if conflicting:
        notes.append(f"patches with labels that differ: {conflicting:,}; the last label was used.")
    if outside := sum(one.outside for one in made):
        notes.append(f"boxes outside their pictures: {outside:,}; these were skipped.")
    if unsure:
        notes.append(f"labels marked as uncertain: {unsure:,}; their patches count as unlabeled.")
    return notes


def _renamed(labels: Sequence[str]) -> list[str]:
    """Return a note on renamed classes."""
    return [
        f"the class {label!r} is called {patches.class_of(label)!r}, because a cell {label!r} of a "
        "table is read as empty."
        for label in dict.fromkeys(labels)
        if label and patches.class_of(label) != label
    ]


def _of_folders(members: Sequence[Member], small: bool, folders: dict[str, str]) -> list[str]:
    if folders:
        return ["folder names were read as labels, because each picture is a patch."]
    if not small and len({path.parent for _, path in members}) > 1:
        return [
            "folder names were not read as labels, because the label of a photograph need not hold "
            "for each of its patches. To label whole pictures, add a file labels.csv with the "
            "columns picture and label."
        ]
    return []
