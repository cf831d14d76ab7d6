"""Reading of ZIP archives of images as tables in which each image has views of its own.

The views are colors, gradients and binary patterns, and features of a pretrained network where the
extra `vision` is installed (`scant.tables.images.features`). A table in the archive that names the
images, one a row, adds its own columns; without one, the folder of an image is its class.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
from PIL import Image

from scant.errors import BadInput
from scant.tables.annotations.matching import Names
from scant.tables.assembly import noted
from scant.tables.column_matching import listed, schema_names
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats.files import by_ending
from scant.tables.images import kinds
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
from scant.tables.images.decoding import Conversions, decoded
from scant.tables.images.features import GROUPS, features
from scant.tables.images.pixels import jpeg
from scant.tables.opening import Reading, opened_file, suggestion_of
from scant.tables.read import read_frame
from scant.tables.schema import Table, TableSchema

MOST_IMAGES = 5000  # at 15 ms an image a network takes 75 s
SIDE = 300  # pixels to which larger images are reduced; a network sees 224
QUALITY = 95  # of JPEG, in which images are given to the features
PROSE = (".txt", ".json")  # of files that are rather a licence or metadata than a table
IMAGE = "image number"  # of a row, until its views are computed


def read_image_views(
    source: Path | bytes,
    schema: TableSchema,
    *,
    name: str | None = None,
    purpose: str = "fit",
    limit_bytes: int = IMAGE_LIMIT_BYTES,
) -> Table:
    """Read images, and a table that names them, as a table with views of each image.

    Args:
        source: Path or content of the archive.
        schema: Columns that the study takes.
        name: Name of the file for messages.
        purpose: "fit" or "predict", as in `read_table`.
        limit_bytes: Maximum size of the archive in bytes.

    Returns:
        One row per image, or per row of the table in the archive that names an image. The features
        are called `<view>.<number>`, beside the numeric ones of that table; `ignored` has the
        names of the images, `file`.

    Raises:
        BadInput: The file is no ZIP archive, is encrypted, exceeds a limit, has unsafe paths or
            links, has no readable image, or its table names none of the images.
    """
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    limits, conversions = ArchiveLimits(), Conversions()
    with opened(source, file, limit_bytes) as archive:
        every = harmless(archive, file, limits)
        members = images_of(every, file)
        if len(members) > MOST_IMAGES:
            raise BadInput(
                f"{file} holds {len(members):,} images and the limit is {MOST_IMAGES:,}; keep "
                "fewer."
            )

        def read(member: zipfile.ZipInfo) -> bytes:
            image = decoded(
                archive.read(member), f"{file}, {member.filename[:80]!r}", limits.pixels
            )
            conversions.add(member.filename[:80], image.done)
            small = image.image.convert("RGB")
            small.thumbnail((SIDE, SIDE), Image.Resampling.BOX)
            return jpeg(np.asarray(small), QUALITY)

        members, images, notes = readable(members, file, read, threads=True)
        notes += [*conversions.notes(file), *unread(every, file)]
        tables = [m for m in every if by_ending(m[1].name) and m[1].suffix.lower() not in PROSE]
        if len(tables) > 1:
            names = listed([str(path) for _, path in tables])
            raise BadInput(f"{file} holds {len(tables)} tables ({names}); keep one.")
        paths = [path for _, path in members]
        if tables:
            frame, more = _beside(archive, tables[0], paths, schema, file, purpose)
        else:
            frame, more = _by_folder(paths), []
    used = frame.pop(IMAGE).to_numpy(dtype=np.int64)
    views = _views([images[i] for i in used])
    joined = pd.concat([frame, views], axis=1)
    # Without `views`, constant columns are kept, which few images to predict have many of.
    table = read_frame(joined, replace(schema, views=False), name=file, purpose=purpose)
    view_names = list(dict.fromkeys(str(column).partition(".")[0] for column in views))
    notes += [*more, f"{file}: every image has the views {listed(view_names)}.", *table.notes]
    if kinds.NETWORK not in view_names:
        notes.append(kinds.GAIN)
    ignored = table.ignored.assign(file=[str(paths[i]) for i in used])
    return noted(replace(table, ignored=ignored, notes=tuple(notes)))


def _views(images: Sequence[bytes]) -> pd.DataFrame:
    """Compute the columns of all views."""
    handmade = features(images, kinds.HANDMADE)
    parts = {view: handmade[:, view == GROUPS] for view in dict.fromkeys(GROUPS.tolist())}
    if kinds.automatic() != kinds.HANDMADE:
        parts[kinds.NETWORK] = features(images, kinds.NETWORK)
    return pd.concat(
        [
            pd.DataFrame(x, columns=[f"{view}.{i + 1}" for i in range(x.shape[1])])
            for view, x in parts.items()
        ],
        axis=1,
    )


def _by_folder(paths: Sequence[PurePosixPath]) -> pd.DataFrame:
    """The class of each image by its folder; no classes where all images lie in one."""
    frame = pd.DataFrame({IMAGE: np.arange(len(paths))})
    labels = [path.parent.name for path in paths]
    if len(set(labels)) > 1:
        frame["label"] = labels
    return frame


def _beside(
    archive: zipfile.ZipFile,
    table: Member,
    paths: Sequence[PurePosixPath],
    schema: TableSchema,
    file: str,
    purpose: str,
) -> tuple[pd.DataFrame, list[str]]:
    """The rows of the table in the archive with the number of their image in `IMAGE`, and notes."""
    member, path = table
    where = f"{file}, {path}"
    reading = Reading(purpose=purpose)
    opened_table = opened_file(archive.read(member), where, schema, LIMIT_BYTES, reading)
    cells, names = opened_table.cells, Names([str(one) for one in paths])
    found = {n: [names.find(w) for w in c.labels()] for n, c in cells.items() if c.is_text}
    named = {n: sum(number is not None for number in numbers) for n, numbers in found.items()}
    if not any(named.values()):
        raise BadInput(
            f"{where}: no column names the images of the archive, such as {str(paths[0])!r}; add "
            "one, with the image of each row."
        )
    column = max(named, key=lambda n: named[n])
    mapping, known = suggestion_of(opened_table, schema, reading)[0], schema_names(schema)
    # Words that are inputs would be numbered by this table, which a table to predict does not know.
    words = [n for n, c in cells.items() if c.is_text and mapping[n] not in known and n != column]
    own = {
        n: c.labels() if c.is_text else c.values
        for n, c in cells.items()
        if n not in (column, *words)
    }
    numbers = pd.Series(found[column], dtype="Int64")
    frame = pd.DataFrame(own).assign(**{IMAGE: numbers})[numbers.notna()].reset_index(drop=True)
    notes = [f"{file}: column {column!r} of {path} names the image of each row."]
    if words:
        notes.append(f"{file}: columns of words in {path} were left out: {listed(words)}.")
    if lost := int(numbers.isna().sum()):
        notes.append(f"{file}: rows of {path} without an image were left out: {lost:,}.")
    if spare := len(paths) - frame[IMAGE].nunique():
        notes.append(f"{file}: images that no row names were left out: {spare:,}.")
    return frame, [*opened_table.findings.notes, *notes]
