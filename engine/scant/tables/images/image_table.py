"""Reading of ZIP archives of images as tables of gray values, or of ink with 1 and paper with 0."""

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
from scant.tables.images.image_views import read_image_views
from scant.tables.images.photographs import read_photographs
from scant.tables.read import read_frame
from scant.tables.schema import Table, TableSchema

SIDE = 20  # default side of an image in pixels
PIXEL = "p"  # prefix of pixel columns p0, p1, ... in row-major order


def is_archive(name: str, content: bytes | Path) -> bool:
    """Return True for a ZIP archive of images, but not of workbooks or tables."""
    ending = Path(name).suffix.lower()
    if ending in (".xlsx", ".xlsm", ".ods"):
        return False
    try:
        with zipfile.ZipFile(
            io.BytesIO(content) if isinstance(content, bytes) else content
        ) as zipped:
            names = zipped.namelist()
            for member in zips_inside(zipped):
                if member.file_size <= IMAGE_LIMIT_BYTES and is_archive("", zipped.read(member)):
                    return True
    except BROKEN:
        return ending == ".zip"
    if any(Path(member).suffix.lower() in ENDINGS for member in names):
        return not any(member.startswith("xl/") for member in names)
    return not any(by_ending(member) or member.startswith("xl/") for member in names)


def image_folders(content: bytes) -> int:
    """Count the folders with images in a ZIP archive; 0 for other files."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            paths = [PurePosixPath(name) for name in zipped.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError):
        return 0
    return len({path.parent for path in paths if path.suffix.lower() in ENDINGS})


def folders(schema: TableSchema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return column names for the folders of an image, outermost first, and for inner folders."""
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
    """Read a ZIP archive of `alphabet/character/*.png` or `class/*.png` as a checked table.

    If the schema cuts images, they are read by `read_photographs`; if it has views, by
    `read_image_views`.

    Args:
        source: Path or content of the archive.
        schema: Columns that the study takes, which are the folders, outermost first. Folders of
            columns with a default may be absent, as well as inner folders of optional columns.
        size: Side in pixels to which images are resized by area averages.
        name: Name of the file for messages.
        purpose: "fit" or "predict", as in `read_table`.
        features: Columns that the model was trained on, for "predict".
        limit_bytes: Maximum size of the archive in bytes.

    Returns:
        Table with pixels as float32 in [0, 1]. If the schema inverts images with a light
        background, 1 is ink and 0 is paper, with a note.

    Raises:
        BadInput: An error of `read_images` or `read_frame`.
    """
    if schema.cut:
        return read_photographs(source, schema, name=name, purpose=purpose, limit_bytes=limit_bytes)
    if schema.views:
        return read_image_views(source, schema, name=name, purpose=purpose, limit_bytes=limit_bytes)
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    levels, inner = folders(schema)
    outer = sum(bool(column.default) for column in schema.columns)
    frame = read_images(
        source, levels=levels, outer=outer, inner=inner, size=(size, size), name=file,
        limit_bytes=limit_bytes,
    )  # fmt: skip
    pixels = [f"{PIXEL}{i}" for i in range(size * size)]
    ink = frame[pixels].to_numpy(np.float32)
    notes = [f"{file}: every image was resized to {size} x {size} pixels."]
    notes += frame.attrs.pop("notes")
    if schema.turned and ink.mean() > 0.5:
        ink = 1 - ink
        notes.append(f"{file}: most of the images' area is light; dark pixels were read as ink.")
    labels = frame.drop(columns=pixels)
    frame = pd.concat([labels, pd.DataFrame(ink, columns=pixels)], axis=1)
    table = read_frame(frame, schema, name=file, purpose=purpose, features=features)
    frame32 = table.frame.astype(dict.fromkeys(table.features, np.float32))
    notes += table.notes
    return noted(
        Table(frame32, table.features, table.ignored, table.rows, tuple(notes), table.sha256)
    )
