"""A ZIP of photographs as a pool of patches, read in memory and checked as every archive is."""

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
MOST_PICTURES = 500
MOST_PATCHES = 20_000  # of all photographs
MOST_SMALL = 5_000  # pictures that are patches by themselves


def read_photographs(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    purpose: str = "fit",
    limits: ArchiveLimits = LIMITS,
    limit_bytes: int = IMAGE_LIMIT_BYTES,
) -> Table:
    """Photographs as patches, with the labels that files of annotations beside them give.

    Args:
        source: A path or the archive's bytes.
        schema: What the study takes; `table_of` makes its columns.
        name: What messages call the file.
        purpose: "fit" or "predict", as of `read_table`.
        limits: How much it may hold.
        limit_bytes: Larger archives are refused before they are read.

    Returns:
        The table. Where the archive has annotations (Label Studio, COCO, YOLO or CSV), what they
        label are patches with labels; other photographs are cut into squares that nobody has
        labeled, or are patches as a whole where all annotations are of whole pictures. Small
        pictures are patches as they are, labeled by their folders. Folders of photographs do not
        become labels of patches: a photograph of a clamp is mostly of something else.

    Raises:
        BadInput: Not a ZIP, encrypted, too much inside, paths that lead out, links, no
            image that can be read, a file of annotations that cannot be.
    """
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    with opened(source, file, limit_bytes) as archive:
        every = harmless(archive, file, limits)
        members = images_of(every, file)
        entries, used = formats.inside(archive, every, file)
        small = not used and _are_patches(archive, members)
        most = MOST_SMALL if small else MOST_PICTURES
        if len(members) > most:
            raise BadInput(
                f"{file} holds {len(members):,} {'pictures' if small else 'photographs'} and the "
                f"limit is {most:,}; keep fewer."
            )
        of, strangers = _by_picture(members, entries.annotations)
        wholes = bool(used) and all(one.box is None for one in entries.annotations)
        done, folders = Conversions(), _folders(members) if small else {}

        def read(member: zipfile.ZipInfo) -> Patches:
            own = of.get(member.filename, [])
            close = any(one.box is not None for one in own)
            made = decoded(
                archive.read(member),
                f"{file}, {member.filename[:80]!r}",
                limits.pixels,
                None if close or small else (SHORT, SHORT),
            )
            done.add(member.filename[:80], made.done)
            path = paths[member.filename]
            if small:
                picture, box = image_folders.part_of(Path(path).name)
                label = folders.get(member.filename)
                return patches.single(made, path if box is None else picture, label, box)
            if own:
                return patches.labeled(made, path, own)
            return patches.single(made, path, None) if wholes else patches.unlabeled(made, path)

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
            _cut(members, made, of)
            if not small and not wholes
            else f"{len(frame):,} pictures are patches as they are, in their own shape.",
            *_labels(frame, used, strangers, made),
            *_of_folders(members, small, folders),
            *_renamed([*folders.values(), *(one.label for one in entries.annotations)]),
        )
    ]
    notes += [*lost, *done.notes(file), *unread(every, file), *entries.notes, *table.notes]
    return noted(
        Table(table.frame, table.features, table.ignored, table.rows, tuple(notes), table.sha256)
    )


def _are_patches(archive: zipfile.ZipFile, members: Sequence[Member]) -> bool:
    """Whether the pictures are patches already: small, in folders by class or with a part's name.

    Those without such folders are, if they are no larger than a patch.
    """
    parts = any(image_folders.part_of(path.name)[1] is not None for _, path in members)
    most = patches.WHOLE if parts or _folders(members) else SIDE
    sides = []
    for member, _ in members:
        try:
            with archive.open(member) as stream, Image.open(stream, formats=FORMATS) as image:
                sides.append(max(image.size))  # of the header; nothing is decoded
        except Image.DecompressionBombError:
            return False
        except BROKEN:
            continue
        if sides[-1] > most:
            return False
    return bool(sides)


def _by_picture(
    members: Sequence[Member], annotations: Sequence[Annotation]
) -> tuple[dict[str, list[Annotation]], list[str]]:
    """Annotations by the file that they are of, and the names that no file has."""
    names = Names([str(path) for _, path in members])
    of: dict[str, list[Annotation]] = defaultdict(list)
    strangers: dict[str, None] = {}
    for one in annotations:
        number = names.find(one.picture)
        if number is None:
            strangers[one.picture] = None
        else:
            of[members[number][0].filename].append(one)
    return of, list(strangers)


def _folders(members: Sequence[Member]) -> dict[str, str]:
    """The class of each picture by its folder; none where all lie in one."""
    classes = {m.filename: path.parts[-2] if len(path.parts) > 1 else "" for m, path in members}
    if len({c for c in classes.values() if c}) < 2:
        return {}
    return {name: image_folders.class_of(folder) for name, folder in classes.items()}


def _cut(
    members: Sequence[Member], made: Sequence[Patches], of: dict[str, list[Annotation]]
) -> str:
    """How many photographs became how many patches, and of which kind."""
    own = sum(one.own for one in made)
    pieces = sum(len(one.frame) for one in made) - own
    photographs = f"{len(members):,} photograph{'s' * (len(members) > 1)}"
    side = f"{SIDE} x {SIDE} pixels where the shorter side has {SHORT}, half a patch apart"
    if not own:
        return f"{photographs} were cut into {pieces:,} patches of {side}."
    if not pieces:
        return f"{photographs} have {own:,} patches, which are the boxes of the annotations."
    return (
        f"{photographs} have {own:,} patches that are boxes of the annotations, and {pieces:,} of "
        f"{side}."
    )


def _labels(
    frame: pd.DataFrame, used: Sequence[str], strangers: Sequence[str], made: Sequence[Patches]
) -> list[str]:
    """What came of the annotations."""
    if not used:
        return []
    count, differ = int(frame["label"].notna().sum()), sum(one.differ for one in made)
    unsure = sum(one.unsure for one in made)
    notes = [f"{count:,} of {len(frame):,} patches have labels from {listed(used)}."]
    if strangers:
        notes.append(
            f"annotations of {len(strangers):,} picture{'s' * (len(strangers) > 1)} that "
            f"{'are' if len(strangers) > 1 else 'is'} not in the archive were passed over: "
            f"{listed(strangers)}."
        )
    if differ:
        notes.append(f"{differ:,} patches have labels that differ; the last one was taken.")
    if outside := sum(one.outside for one in made):
        notes.append(f"{outside:,} boxes lie outside of their pictures and were passed over.")
    if unsure:
        notes.append(f"{unsure:,} labels were given in doubt; their patches wait for a label.")
    return notes


def _renamed(labels: Sequence[str]) -> list[str]:
    """A note on classes that would be empty cells."""
    return [
        f"the class {label!r} is called {patches.class_of(label)!r}, as a cell {label!r} of a "
        "table is read as empty."
        for label in dict.fromkeys(labels)
        if label and patches.class_of(label) != label
    ]


def _of_folders(members: Sequence[Member], small: bool, folders: dict[str, str]) -> list[str]:
    if folders:
        return ["folders were taken for labels, as the pictures are patches by themselves."]
    if not small and len({path.parent for _, path in members}) > 1:
        return [
            "folders were not taken for labels: what is true of a photograph is not true of every "
            "patch of it. A file labels.csv with columns picture and label labels whole pictures."
        ]
    return []
