"""A ZIP of photographs as a pool of patches, read in memory and checked as every archive is."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from scant.errors import BadInput
from scant.studies.clamp.table import SIDE, TABLE, bring, cut, table_of
from scant.tables.assembly import noted
from scant.tables.images.archives import (
    FORMATS,
    IMAGE_LIMIT_BYTES,
    ArchiveLimits,
    checked,
    opened,
    readable,
)
from scant.tables.read import read_frame
from scant.tables.schema import Table

LIMITS = ArchiveLimits(files=2_000, pixels=60_000_000)
MOST_PICTURES = 500  # 10,500 patches


def read_photographs(
    source: Path | bytes,
    *,
    name: str | None = None,
    purpose: str = "fit",
    limits: ArchiveLimits = LIMITS,
    limit_bytes: int = IMAGE_LIMIT_BYTES,
) -> Table:
    """Photographs cut into patches that nobody has labeled.

    Args:
        source: A path or the archive's bytes.
        name: What messages call the file.
        purpose: "fit" or "predict", as of `read_table`.
        limits: How much it may hold.
        limit_bytes: Larger archives are refused before they are read.

    Returns:
        The table, 21 rows a picture. Folders do not become labels of patches: a photograph of a
        clamp is mostly of something else, and a note says so.

    Raises:
        BadInput: Not a ZIP, encrypted, too much inside, paths that lead out, links, no
            image that can be read.
    """
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    cuts, folders, stretched = [], set(), 0
    with opened(source, file, limit_bytes) as archive:
        members = checked(archive, file, limits)
        if len(members) > MOST_PICTURES:
            raise BadInput(
                f"{file} holds {len(members):,} photographs and the limit is {MOST_PICTURES:,}; "
                "keep fewer."
            )
        members, pictures, lost = readable(
            members, file, lambda m: _picture(archive, m, f"{file}, {m.filename[:80]!r}", limits)
        )
        for (_, path), (image, wide) in zip(members, pictures):
            stretched += wide
            folders.add(str(path.parent))
            cuts += cut(np.asarray(image), str(path))
    read = read_frame(table_of(cuts), TABLE, name=file, purpose=purpose)
    notes = [
        f"{file}: {len(members):,} photographs were cut into {len(cuts):,} patches of {SIDE} x "
        f"{SIDE} pixels, half a patch apart.",
        *lost,
    ]
    if stretched:
        notes.append(f"{stretched:,} photographs of another shape were stretched to 16 : 9.")
    if len(folders) > 1:
        notes.append(
            "Folders were not taken for labels: what is true of a photograph is not true of every "
            "patch of it."
        )
    notes += read.notes
    return noted(
        Table(read.frame, read.features, read.ignored, read.rows, tuple(notes), read.sha256)
    )


def _picture(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str, limits: ArchiveLimits
) -> tuple[Image.Image, bool]:
    with Image.open(io.BytesIO(archive.read(member)), formats=FORMATS) as image:
        if image.width * image.height > limits.pixels:
            raise BadInput(
                f"{where} has {image.width:,} x {image.height:,} pixels and the limit is "
                f"{limits.pixels:,}; make it smaller."
            )
        return bring(image)
