"""A ZIP of images as a table that a study can be fitted to: in gray, or ink 1 and paper 0."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from scant.tables.assembly import noted
from scant.tables.formats.files import by_ending
from scant.tables.images.archives import ENDINGS, IMAGE_LIMIT_BYTES, read_images, zips_inside
from scant.tables.images.decoding import BROKEN
from scant.tables.images.photographs import read_photographs
from scant.tables.read import read_frame
from scant.tables.schema import Table, TableSchema

SIDE = 20  # of an image, where nothing is said
PIXEL = "p"  # p0, p1, ... are the columns of an image, row by row


def is_archive(name: str, content: bytes | Path) -> bool:
    """Whether a file is meant to be a ZIP of images; workbooks and packed tables are ZIPs too."""
    ending = Path(name).suffix.lower()
    if ending in (".xlsx", ".xlsm", ".ods"):
        return False
    try:
        with zipfile.ZipFile(
            io.BytesIO(content) if isinstance(content, bytes) else content
        ) as zipped:
            inside = zipped.namelist()
            for member in zips_inside(zipped):
                if member.file_size <= IMAGE_LIMIT_BYTES and is_archive("", zipped.read(member)):
                    return True
    except BROKEN:
        return ending == ".zip"
    if any(Path(member).suffix.lower() in ENDINGS for member in inside):
        return not any(member.startswith("xl/") for member in inside)
    return not any(by_ending(member) or member.startswith("xl/") for member in inside)


def image_folders(content: bytes) -> int:
    """How many folders of a ZIP have images in them; 0 of another file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            paths = [PurePosixPath(name) for name in zipped.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError):
        return 0
    return len({path.parent for path in paths if path.suffix.lower() in ENDINGS})


def folders(schema: TableSchema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What folders above an image mean, outermost first, and those further inside, if any."""
    levels = tuple(c.name for c in schema.columns if c.required or c.default)
    return levels, tuple(c.name for c in schema.columns if c.name not in levels)


def read_image_table(
    source: Path | bytes,
    schema: TableSchema,
    *,
    size: int = SIDE,
    name: str | None = None,
    purpose: str = "fit",
    features: Sequence[str] | None = None,
    limit_bytes: int = IMAGE_LIMIT_BYTES,
) -> Table:
    """A ZIP of `alphabet/character/*.png`, or `class/*.png`, as a table, checked as a CSV file is.

    Where the schema wants them cut, images are photographs: see `read_photographs`.

    Args:
        source: A path or the archive's bytes.
        schema: What the study takes; its named columns are what the folders mean, outermost first.
            One with a default may be absent; so may others that are not required, whose folders
            are further inside.
        size: Side in pixels to which every image is brought, by box average.
        name: What messages call the file.
        purpose: "fit" or "predict", as of `read_table`.
        features: For "predict": the columns that the model was trained on.
        limit_bytes: Larger archives are refused before they are read.

    Returns:
        The table; pixels are float32 in [0, 1]. Where the schema wants ink, most of them are paper,
        which is 0: what is dark on light is turned over, with a note.

    Raises:
        BadInput: As `read_images` and `read_frame` raise it.
    """
    if schema.cut:
        return read_photographs(source, schema, name=name, purpose=purpose, limit_bytes=limit_bytes)
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    levels, inner = folders(schema)
    outer = sum(bool(column.default) for column in schema.columns)
    frame = read_images(
        source, levels=levels, outer=outer, inner=inner, size=(size, size), name=file,
        limit_bytes=limit_bytes,
    )  # fmt: skip
    pixels = [f"{PIXEL}{i}" for i in range(size * size)]
    ink = frame[pixels].to_numpy(np.float32)
    notes = [f"{file}: every image was brought to {size} x {size} pixels."]
    notes += frame.attrs.pop("notes")
    if schema.turned and ink.mean() > 0.5:
        ink = 1 - ink
        notes.append(f"{file}: images are light on the whole; what is dark was taken as ink.")
    named = frame.drop(columns=pixels)
    frame = pd.concat([named, pd.DataFrame(ink, columns=pixels)], axis=1)
    table = read_frame(frame, schema, name=file, purpose=purpose, features=features)
    kept = table.frame.astype(dict.fromkeys(table.features, np.float32))
    notes += table.notes
    return noted(Table(kept, table.features, table.ignored, table.rows, tuple(notes), table.sha256))
