"""ZIPs of images: read in memory, nothing is ever written under a name from the archive."""

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
# Pictures as well, and not read; nobody should wonder where they are.
UNREAD = frozenset(
    {".heic", ".heif", ".webp", ".avif", ".jp2", ".jxl", ".svg", ".psd", ".dng", ".cr2", ".cr3"}
    | {".nef", ".arw", ".raw", ".pdf", ".mp4", ".mov"}
)
TEXTS = frozenset({".json", ".csv", ".tsv", ".txt", ".yaml", ".yml", ".names"})  # of labels
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
        every = harmless(archive, file, limits or ArchiveLimits())
        members = images_of(every, file)
        values, most = len(members) * size[0] * size[1], (limits or ArchiveLimits()).values
        if values > most:
            raise BadInput(
                f"{file} holds {len(members):,} images, which at {size[0]} x {size[1]} pixels are "
                f"{values / 1e6:,.0f} million values and the limit is {most / 1e6:,.0f} million; "
                "choose a smaller size or keep fewer images."
            )
        most, done = (limits or ArchiveLimits()).pixels, Conversions()

        def pixels_of(member: zipfile.ZipInfo) -> Float[np.ndarray, "h w"]:
            made = decoded(archive.read(member), _place(member, file), most)
            done.add(member.filename[:80], made.done)
            return _gray(made, size)

        members, rows, notes = readable(members, file, pixels_of)
        notes += [*done.notes(file), *unread(every, file)]
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
    members: Sequence[Member],
    file: str,
    read: Callable[[zipfile.ZipInfo], Read],
    *,
    threads: bool = False,
) -> tuple[list[Member], list[Read], list[str]]:
    """The members that can be read, what they hold, and a note on those that cannot.

    Args:
        members: Of an archive.
        file: What messages call it.
        read: What a member holds.
        threads: Whether several are read at once, which pays for large images.

    Raises:
        BadInput: There is none, or one is refused for another reason than damage.
    """

    def attempt(member: Member) -> tuple[Read | None, Exception | None]:
        try:
            return read(member[0]), None
        except BadInput:
            raise
        except BROKEN as error:
            return None, error

    results = on_all_cores(attempt, members) if threads else map(attempt, members)
    kept, made, lost = list[Member](), list[Read](), list[tuple[str, str]]()
    for member, (value, error) in zip(members, results):
        if error is not None:
            lost.append((member[0].filename[:80], why(error)))
        elif value is not None:
            kept.append(member)
            made.append(value)
    if not kept:
        first, reason = lost[0]
        raise BadInput(f"{file}, {first!r} is not an image that can be read{reason}; replace it.")
    named = [name + reason for name, reason in lost]
    notes = [
        f"{file}: {len(lost):,} image{'s' * (len(lost) > 1)} cannot be read and "
        f"{'were' if len(lost) > 1 else 'was'} passed over: {listed(named)}."
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
        archive = zipfile.ZipFile(io.BytesIO(data))
        inner = zips_inside(archive)
        return _flat(archive, inner, file) if inner else archive
    except BadInput:
        raise
    except BROKEN:
        raise BadInput(f"{file} is not a ZIP archive; pack the images again.") from None


def zips_inside(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The ZIPs in an archive that has no images beside them, as of files dropped together."""
    names = [PurePosixPath(name.replace("\\", "/")) for name in archive.namelist()]
    if any(path.suffix.lower() in ENDINGS for path in names):
        return []
    return [
        member
        for member, path in zip(archive.infolist(), names)
        if path.suffix.lower() == ".zip" and not path.name.startswith(".")
    ]


def _flat(archive: zipfile.ZipFile, inner: Sequence[zipfile.ZipInfo], file: str) -> zipfile.ZipFile:
    """An archive with what the ZIPs in it hold, each in a folder of its name."""
    limits, size = ArchiveLimits(), 0
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for member, path in harmless(archive, file, limits):
            if member not in inner:
                made.writestr(str(path), archive.read(member))
                continue
            with zipfile.ZipFile(io.BytesIO(archive.read(member))) as own:
                place = f"{file}, {member.filename[:80]!r}"
                for part, below in harmless(own, place, limits):
                    if (size := size + part.file_size) > limits.unpacked_bytes:
                        raise BadInput(
                            f"{file} unpacks to over {limits.unpacked_bytes / 1e6:,.0f} MB, which "
                            "is the limit; keep fewer or smaller images."
                        )
                    folder = path.with_suffix("")
                    made.writestr(str(folder / below), own.read(part))
    return zipfile.ZipFile(out)


def images_of(members: Sequence[Member], file: str) -> list[Member]:
    """Those of the members that are images by their names, by path.

    Raises:
        BadInput: There are none.
    """
    images = [m for m in members if m[1].suffix.lower() in ENDINGS]
    if not images:
        other = sorted({p.suffix.lower() for _, p in members} & UNREAD)
        but = f", but {listed(other)}" if other else ""
        raise BadInput(
            f"{file} holds no images (PNG, JPEG, BMP, GIF or TIFF){but}; "
            f"{'save these as JPEG or PNG' if other else 'add some'}."
        )
    return sorted(images, key=lambda found: found[1])


def unread(members: Sequence[Member], file: str) -> list[str]:
    """A note on pictures of kinds that are not read."""
    other = [member.filename[:80] for member, path in members if path.suffix.lower() in UNREAD]
    return [
        f"{file}: {len(other):,} picture{'s' * (len(other) > 1)} of a kind that is not read "
        f"{'were' if len(other) > 1 else 'was'} passed over: {listed(other)}; save as JPEG or PNG."
    ] * bool(other)


def harmless(archive: zipfile.ZipFile, file: str, limits: ArchiveLimits) -> list[Member]:
    """The files of an archive but hidden ones, after every member was found harmless.

    Raises:
        BadInput: One is not, or there is too much.
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
    """The path of a member that neither leads out of the archive nor unpacks without end."""
    where = _place(member, file)
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]:
        raise BadInput(f"{where}: the path leads out of the archive; pack the folder again.")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise BadInput(f"{where} is a link; pack the file itself.")
    if member.flag_bits & 1:
        raise BadInput(f"{where} is encrypted; pack it without a password.")
    texts = path.suffix.lower() in TEXTS  # alike line by line; read up to a limit of their own
    if not texts and member.file_size > limits.ratio * max(member.compress_size, 1_000):
        raise BadInput(
            f"{where} unpacks to {member.file_size / max(member.compress_size, 1):,.0f} times its "
            f"size and the limit is {limits.ratio:g}; pack ordinary images."
        )
    return path


def _place(member: zipfile.ZipInfo, file: str) -> str:
    """What messages call a file of an archive."""
    return f"{file}, {member.filename[:80]!r}"


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
        return _gray(decoded(content, name, (limits or ArchiveLimits()).pixels), size)
    except BadInput:
        raise
    except BROKEN as error:
        raise BadInput(
            f"{name} is not an image that can be read{why(error)}; replace it."
        ) from None


def _gray(made: Decoded, size: tuple[int, int]) -> Float[np.ndarray, "h w"]:
    gray = made.image.convert("L").resize(size, Image.Resampling.BOX)
    return np.asarray(gray, dtype=np.float32) / np.float32(255)
