"""Reading of ZIP archives of images in memory; nothing is extracted to disk."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float
from PIL import Image

from scant.errors import BadInput
from scant.hardware import on_all_cores
from scant.tables.column_matching import listed
from scant.tables.encoding import LIMIT_BYTES, load
from scant.tables.images.decoding import BROKEN, Conversions, Decoded, decoded, why

ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff"})
# Unsupported image formats, listed in a note.
UNREAD = frozenset(
    {".heic", ".heif", ".webp", ".avif", ".jp2", ".jxl", ".svg", ".psd", ".dng", ".cr2", ".cr3"}
    | {".nef", ".arw", ".raw", ".pdf", ".mp4", ".mov"}
)
TEXTS = frozenset({".json", ".csv", ".tsv", ".txt", ".yaml", ".yml", ".names"})  # label files
Read = TypeVar("Read")
Member = tuple[zipfile.ZipInfo, PurePosixPath]
IMAGE_LIMIT_BYTES = LIMIT_BYTES  # maximum size of an archive


@dataclass(frozen=True)
class ArchiveLimits:
    """Limits on the content of an archive; the defaults admit the full Omniglot data set."""

    files: int = 50_000
    unpacked_bytes: int = 500_000_000
    ratio: float = 100.0  # compression ratio of a file
    pixels: int = 16_000_000  # pixels of an image
    values: int = 60_000_000  # number of images times pixels after resizing


def read_images(
    source: Path | bytes,
    *,
    levels: Sequence[str] = ("output", "label"),
    outer: int = 0,
    inner: Sequence[str] = (),
    size: tuple[int, int] = (28, 28),
    resampling: Image.Resampling = Image.Resampling.BOX,
    name: str | None = None,
    limits: ArchiveLimits | None = None,
    limit_bytes: int = LIMIT_BYTES,
) -> pd.DataFrame:
    """Read a ZIP archive of images `alphabet/character/*.png` as a table.

    Args:
        source: Path or content of the archive.
        levels: Column names for the folders of an image, outermost first; a common parent folder
            is ignored.
        outer: Number of first levels that may be absent.
        inner: Column names for further inner folders, used if all images have the same depth.
        size: Width and height in pixels to which images are resized.
        resampling: How; by default by area averages.
        name: Name of the file for messages.
        limits: Limits on the content.
        limit_bytes: Maximum size of the archive in bytes.

    Returns:
        One row per image in the order of paths: levels as text, then `p0 … p{w*h-1}`, gray values
        in [0, 1] in row-major order. Unreadable images are left out and listed in `attrs["notes"]`.

    Raises:
        BadInput: The file is no ZIP archive, is encrypted, exceeds a limit, has unsafe paths or
            links, or has no readable image.
    """
    file = name or (source.name if isinstance(source, Path) else "file.zip")
    with opened(source, file, limit_bytes) as archive:
        all_members = harmless(archive, file, limits or ArchiveLimits())
        members = images_of(all_members, file)
        values, limit = len(members) * size[0] * size[1], (limits or ArchiveLimits()).values
        if values > limit:
            raise BadInput(
                f"{file} holds {len(members):,} images, which at {size[0]} x {size[1]} pixels are "
                f"{values / 1e6:,.0f} million values and the limit is {limit / 1e6:,.0f} million; "
                "choose a smaller size or keep fewer images."
            )
        limit, conversions = (limits or ArchiveLimits()).pixels, Conversions()

        def pixels_of(member: zipfile.ZipInfo) -> Float[np.ndarray, "h w"]:
            decoded_image = decoded(archive.read(member), _location(member, file), limit)
            conversions.add(member.filename[:80], decoded_image.done)
            return _gray(decoded_image, size, resampling)

        members, rows, notes = readable(members, file, pixels_of)
        notes += [*conversions.notes(file), *unread(all_members, file)]
    min_depth = min(len(path.parts) for _, path in members) - 1
    levels = levels[min(max(len(levels) - min_depth, 0), outer) :]
    for member, path in members:
        if len(path.parts) <= len(levels):
            raise BadInput(
                f"{file}, {member.filename[:80]!r}: images must lie in folders "
                f"{'/'.join(levels)}/; move it there."
            )
    levels = (*levels, *inner[: _deeper([path for _, path in members], len(levels))])
    folder_names = {
        level: [path.parts[i - len(levels) - 1] for _, path in members]
        for i, level in enumerate(levels)
    }
    pixel_values = np.array(rows).reshape(len(rows), -1)
    pixels = pd.DataFrame(pixel_values, columns=[f"p{i}" for i in range(size[0] * size[1])])
    frame = pd.concat([pd.DataFrame(folder_names), pixels], axis=1)
    frame.attrs["notes"] = notes
    return frame


def readable(
    members: Sequence[Member],
    file: str,
    read: Callable[[zipfile.ZipInfo], Read],
    *,
    threads: bool = False,
) -> tuple[list[Member], list[Read], list[str]]:
    """Read members of an archive and skip unreadable ones.

    Args:
        members: Members of the archive.
        file: Name of the archive for messages.
        read: Function that reads a member.
        threads: True to read in parallel, which is faster for large images.

    Returns:
        Readable members, their contents, and a note on the others.

    Raises:
        BadInput: No member is readable, or `read` raises it.
    """

    def attempt(member: Member) -> tuple[Read | None, Exception | None]:
        try:
            return read(member[0]), None
        except BadInput:
            raise
        except BROKEN as error:
            return None, error

    results = on_all_cores(attempt, members) if threads else map(attempt, members)
    readable_members, contents, failed = list[Member](), list[Read](), list[tuple[str, str]]()
    for member, (value, error) in zip(members, results):
        if error is not None:
            failed.append((member[0].filename[:80], why(error)))
        elif value is not None:
            readable_members.append(member)
            contents.append(value)
    if not readable_members:
        first, reason = failed[0]
        raise BadInput(f"{file}, {first!r} is not an image that can be read{reason}; replace it.")
    descriptions = [name + reason for name, reason in failed]
    notes = [
        f"{file}: {len(failed):,} image{'s' * (len(failed) > 1)} cannot be read and "
        f"{'were' if len(failed) > 1 else 'was'} skipped: {listed(descriptions)}."
    ]
    return readable_members, contents, notes if failed else []


def _deeper(paths: Sequence[PurePosixPath], levels: int) -> int:
    """Count the folders of each image beyond `levels` and common parents; 0 if depths differ."""
    folders = [path.parts[:-1] for path in paths]
    common = 0
    while len(folders[0]) > common and len({f[: common + 1] for f in folders}) == 1:
        common += 1
    depths = {len(f) - common for f in folders}
    return max(0, depths.pop() - levels) if len(depths) == 1 else 0


def opened(source: Path | bytes, file: str, limit_bytes: int) -> zipfile.ZipFile:
    """Open an archive of images in memory.

    Raises:
        BadInput: The file is missing, too large or no ZIP archive.
    """
    data = load(source, file, limit_bytes)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        inner = zips_inside(archive)
        return _flat(archive, inner, file) if inner else archive
    except BadInput:
        raise
    except BROKEN:
        raise BadInput(f"{file} is not a ZIP archive; pack the images again.") from None


def zips_inside(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the nested ZIP archives of an archive without images of its own."""
    names = [PurePosixPath(name.replace("\\", "/")) for name in archive.namelist()]
    if any(path.suffix.lower() in ENDINGS for path in names):
        return []
    return [
        member
        for member, path in zip(archive.infolist(), names)
        if path.suffix.lower() == ".zip" and not path.name.startswith(".")
    ]


def _flat(archive: zipfile.ZipFile, inner: Sequence[zipfile.ZipInfo], file: str) -> zipfile.ZipFile:
    """Unpack nested ZIP archives into folders with their names."""
    limits, size = ArchiveLimits(), 0
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as flat:
        for member, path in harmless(archive, file, limits):
            if member not in inner:
                flat.writestr(str(path), archive.read(member))
                continue
            with zipfile.ZipFile(io.BytesIO(archive.read(member))) as nested:
                location = f"{file}, {member.filename[:80]!r}"
                for nested_member, nested_path in harmless(nested, location, limits):
                    if (size := size + nested_member.file_size) > limits.unpacked_bytes:
                        raise BadInput(
                            f"{file} unpacks to over {limits.unpacked_bytes / 1e6:,.0f} MB, which "
                            "is the limit; keep fewer or smaller images."
                        )
                    folder = path.with_suffix("")
                    flat.writestr(str(folder / nested_path), nested.read(nested_member))
    return zipfile.ZipFile(out)


def images_of(members: Sequence[Member], file: str) -> list[Member]:
    """Return the members with the extension of an image, sorted by path.

    Raises:
        BadInput: There are no images.
    """
    images = [m for m in members if m[1].suffix.lower() in ENDINGS]
    if not images:
        other = sorted({p.suffix.lower() for _, p in members} & UNREAD)
        hint = f", but {listed(other)}" if other else ""
        raise BadInput(
            f"{file} holds no images (PNG, JPEG, BMP, GIF or TIFF){hint}; "
            f"{'save these as JPEG or PNG' if other else 'add some'}."
        )
    return sorted(images, key=lambda found: found[1])


def unread(members: Sequence[Member], file: str) -> list[str]:
    """Return a note on images in other formats."""
    other = [member.filename[:80] for member, path in members if path.suffix.lower() in UNREAD]
    return [
        f"{file}: {len(other):,} picture{'s' * (len(other) > 1)} of a kind that is not read "
        f"{'were' if len(other) > 1 else 'was'} skipped: {listed(other)}; save them as JPEG or PNG."
    ] * bool(other)


def harmless(archive: zipfile.ZipFile, file: str, limits: ArchiveLimits) -> list[Member]:
    """Check all members of an archive and return the files that are not hidden.

    Raises:
        BadInput: A member is unsafe, or the archive exceeds a limit.
    """
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
    result = []
    for member in members:
        path = _harmless(member, file, limits)
        hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
        if not member.is_dir() and not hidden:
            result.append((member, path))
    return result


def _harmless(member: zipfile.ZipInfo, file: str, limits: ArchiveLimits) -> PurePosixPath:
    """Return the path of a member after checks for unsafe paths, links and compression bombs."""
    at = _location(member, file)
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]:
        raise BadInput(f"{at}: the path leads out of the archive; pack the folder again.")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise BadInput(f"{at} is a link; pack the file itself.")
    if member.flag_bits & 1:
        raise BadInput(f"{at} is encrypted; pack it without a password.")
    is_text = path.suffix.lower() in TEXTS  # highly compressible, with their own size limit
    if not is_text and member.file_size > limits.ratio * max(member.compress_size, 1_000):
        raise BadInput(
            f"{at} unpacks to {member.file_size / max(member.compress_size, 1):,.0f} times its "
            f"size and the limit is {limits.ratio:g}; pack ordinary images."
        )
    return path


def _location(member: zipfile.ZipInfo, file: str) -> str:
    """Return the name of an archive member for messages."""
    return f"{file}, {member.filename[:80]!r}"


def read_image(
    content: bytes, *, name: str, size: tuple[int, int], limits: ArchiveLimits | None = None
) -> Float[np.ndarray, "h w"]:
    """Decode an image file to gray values in [0, 1] with 1 for white.

    Args:
        content: Content of a PNG, JPEG, BMP, GIF or TIFF file.
        name: Name of the file for messages.
        size: Width and height in pixels to which the image is resized by area averages.
        limits: Limit on the number of pixels.

    Raises:
        BadInput: The file is no image, damaged or too large.
    """
    try:
        return _gray(decoded(content, name, (limits or ArchiveLimits()).pixels), size)
    except BadInput:
        raise
    except BROKEN as error:
        raise BadInput(
            f"{name} is not an image that can be read{why(error)}; replace it."
        ) from None


def _gray(
    made: Decoded, size: tuple[int, int], resampling: Image.Resampling = Image.Resampling.BOX
) -> Float[np.ndarray, "h w"]:
    gray = made.image.convert("L").resize(size, resampling)
    return np.asarray(gray, dtype=np.float32) / np.float32(255)
