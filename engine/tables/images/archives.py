"""ZIPs of images: read in memory, nothing is ever written under a name from the archive."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float
from PIL import Image
from scant.errors import BadInput
from scant.tables.column_matching import listed
from scant.tables.encoding import LIMIT_BYTES, load

ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff"})
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF")
# What zipfile and Pillow raise on damaged bytes (UnidentifiedImageError is an OSError).
BROKEN = (
    zipfile.BadZipFile,
    Image.DecompressionBombError,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    RuntimeError,  # NotImplementedError among them
)


Read = TypeVar("Read")
Member = tuple[zipfile.ZipInfo, PurePosixPath]
IMAGE_LIMIT_BYTES = LIMIT_BYTES  # of one archive


@dataclass(frozen=True)
class ArchiveLimits:
    """What an archive may hold; the defaults take the whole of Omniglot."""

    files: int = 50_000
    unpacked_bytes: int = 500_000_000
    ratio: float = 100.0  # unpacked over packed, of a file
    pixels: int = 16_000_000  # of an image
    values: int = 60_000_000  # of the table: images times the pixels to which each is brought


def read_images(
    source: Path | bytes,
    *,
    levels: Sequence[str] = ("output", "label"),
    outer: int = 0,
    inner: Sequence[str] = (),
    size: tuple[int, int] = (28, 28),
    name: str | None = None,
    limits: ArchiveLimits | None = None,
    limit_bytes: int = LIMIT_BYTES,
) -> pd.DataFrame:
    """A ZIP of `alphabet/character/*.png` as a table.

    Args:
        source: A path or the archive's bytes.
        levels: What the folders above an image mean, outermost first; a folder around
            everything is allowed.
        outer: How many of the first levels may be absent: where images lie in fewer folders.
        inner: What further folders inside mean, where every image lies in as many.
        size: Width and height in pixels to which every image is brought.
        name: What messages call the file.
        limits: How much it may hold.
        limit_bytes: Larger archives are refused before they are read.

    Returns:
        A row an image in order of path: the levels as text, then `p0 … p{w*h-1}`, gray values in
        [0, 1] row by row. Images that cannot be read are passed over; `attrs["notes"]` lists them.

    Raises:
        BadInput: Not a ZIP, encrypted, too much inside, paths that lead out, links, no image that
            can be read.
    """
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    with opened(source, file, limit_bytes) as archive:
        members = checked(archive, file, limits or ArchiveLimits())
        values, most = len(members) * size[0] * size[1], (limits or ArchiveLimits()).values
        if values > most:
            raise BadInput(
                f"{file} holds {len(members):,} images, which at {size[0]} x {size[1]} pixels are "
                f"{values / 1e6:,.0f} million values and the limit is {most / 1e6:,.0f} million; "
                "choose a smaller size or keep fewer images."
            )
        members, rows, notes = readable(
            members, file, lambda m: _pixels(archive, m, file, size, limits or ArchiveLimits())
        )
    fewest = min(len(path.parts) for _, path in members) - 1
    levels = levels[min(max(len(levels) - fewest, 0), outer) :]
    for member, path in members:
        if len(path.parts) <= len(levels):
            raise BadInput(
                f"{file}, {member.filename[:80]!r}: images must lie in folders "
                f"{'/'.join(levels)}/; move it there."
            )
    levels = (*levels, *inner[: _deeper([path for _, path in members], len(levels))])
    above = {
        level: [path.parts[i - len(levels) - 1] for _, path in members]
        for i, level in enumerate(levels)
    }
    values_of = np.array(rows).reshape(len(rows), -1)
    pixels = pd.DataFrame(values_of, columns=[f"p{i}" for i in range(size[0] * size[1])])
    frame = pd.concat([pd.DataFrame(above), pixels], axis=1)
    frame.attrs["notes"] = notes
    return frame


def readable(
    members: Sequence[Member], file: str, read: Callable[[zipfile.ZipInfo], Read]
) -> tuple[list[Member], list[Read], list[str]]:
    """The members that can be read, what they hold, and a note on those that cannot.

    Raises:
        BadInput: There is none, or one is refused for another reason than damage.
    """
    kept, made, lost = [], [], []
    for member, path in members:
        try:
            made.append(read(member))
            kept.append((member, path))
        except BadInput:
            raise
        except BROKEN:
            lost.append(member.filename[:80])
    if not kept:
        raise BadInput(f"{file}, {lost[0]!r} is not an image that can be read; replace it.")
    notes = [
        f"{file}: {len(lost):,} image{'s' * (len(lost) > 1)} cannot be read and "
        f"{'were' if len(lost) > 1 else 'was'} passed over: {listed(lost)}."
    ]
    return kept, made, notes if lost else []


def _deeper(paths: Sequence[PurePosixPath], levels: int) -> int:
    """How many folders more than `levels` there are around every image, those of all left out."""
    folders = [path.parts[:-1] for path in paths]
    shared = 0
    while len(folders[0]) > shared and len({f[: shared + 1] for f in folders}) == 1:
        shared += 1
    deep = {len(f) - shared for f in folders}
    return max(0, deep.pop() - levels) if len(deep) == 1 else 0


def opened(source: Path | bytes, file: str, limit_bytes: int) -> zipfile.ZipFile:
    """An archive of images that is in memory.

    Raises:
        BadInput: No such file, too large, or not a ZIP.
    """
    data = load(source, file, limit_bytes)
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except BROKEN:
        raise BadInput(f"{file} is not a ZIP archive; pack the images again.") from None


def checked(
    archive: zipfile.ZipFile, file: str, limits: ArchiveLimits
) -> list[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """The images of an archive by path, after every member was found harmless."""
    members = archive.infolist()
    if len(members) > limits.files:
        raise BadInput(
            f"{file} holds {len(members):,} files and the limit is {limits.files:,}; keep fewer."
        )
    unpacked = sum(m.file_size for m in members)
    if unpacked > limits.unpacked_bytes:
        raise BadInput(
            f"{file} unpacks to {unpacked / 1e6:,.0f} MB and the limit is "
            f"{limits.unpacked_bytes / 1e6:,.0f} MB; keep fewer or smaller images."
        )
    images = []
    for member in members:
        path = _harmless(member, file, limits)
        hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
        if not member.is_dir() and not hidden and path.suffix.lower() in ENDINGS:
            images.append((member, path))
    if not images:
        raise BadInput(f"{file} holds no images (PNG, JPEG, BMP, GIF or TIFF); add some.")
    return sorted(images, key=lambda found: found[1])


def _harmless(member: zipfile.ZipInfo, file: str, limits: ArchiveLimits) -> PurePosixPath:
    """The path of a member that neither leads out of the archive nor unpacks without end."""
    where = f"{file}, {member.filename[:80]!r}"
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]:
        raise BadInput(f"{where}: the path leads out of the archive; pack the folder again.")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise BadInput(f"{where} is a link; pack the file itself.")
    if member.flag_bits & 1:
        raise BadInput(f"{where} is encrypted; pack it without a password.")
    if member.file_size > limits.ratio * max(member.compress_size, 1_000):
        raise BadInput(
            f"{where} unpacks to {member.file_size / max(member.compress_size, 1):,.0f} times its "
            f"size and the limit is {limits.ratio:g}; pack ordinary images."
        )
    return path


def _pixels(
    archive: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    file: str,
    size: tuple[int, int],
    limits: ArchiveLimits,
) -> Float[np.ndarray, "h w"]:
    where = f"{file}, {member.filename[:80]!r}"
    return _gray(archive.read(member), where, size, limits.pixels)


def read_image(
    content: bytes, *, name: str, size: tuple[int, int], limits: ArchiveLimits | None = None
) -> Float[np.ndarray, "h w"]:
    """The bytes of one image file as gray values in [0, 1], 1 for white.

    Args:
        content: PNG, JPEG, BMP, GIF or TIFF.
        name: What messages call it.
        size: Width and height in pixels to which it is brought, by averages over area.
        limits: How many pixels it may have.

    Raises:
        BadInput: It is no image, a damaged one, or too large.
    """
    try:
        return _gray(content, name, size, (limits or ArchiveLimits()).pixels)
    except BROKEN:
        raise BadInput(f"{name} is not an image that can be read; replace it.") from None


def _gray(content: bytes, name: str, size: tuple[int, int], most: int) -> Float[np.ndarray, "h w"]:
    """As `read_image`; damage raises one of `BROKEN`."""
    with Image.open(io.BytesIO(content), formats=FORMATS) as image:
        if image.width * image.height > most:
            raise BadInput(
                f"{name} has {image.width:,} x {image.height:,} pixels and the limit is "
                f"{most:,}; make it smaller."
            )
        gray = image.convert("L").resize(size, Image.Resampling.BOX)
    return np.asarray(gray, dtype=np.float32) / np.float32(255)
