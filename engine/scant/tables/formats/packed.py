"""Files packed in gzip, bzip2, Zstandard or ZIP, unpacked in memory up to a limit."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path, PurePath
from typing import cast

import pandas as pd
import pyarrow as pa

from scant.errors import BadInput
from scant.tables.encoding import LIMIT_BYTES, load, regular
from scant.tables.formats.registry import Content, Format, Style, Unpacked, by_ending, chosen

MOST_TABLES = 50  # of an archive that are read together
DAMAGED = (OSError, EOFError, ValueError, zipfile.BadZipFile, RuntimeError, pa.ArrowException)


def _stream(kind: str) -> Format:
    """A format of Arrow's compressed streams; what is inside is told by the ending before."""
    marks = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
    ending = {"gzip": ".gz", "bz2": ".bz2", "zstd": ".zst"}[kind]

    def read(data: bytes, file: str, part: str) -> Content:
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), kind) as stream:
                inside = stream.read(LIMIT_BYTES + 1)
        except DAMAGED:
            raise BadInput(f"{file} is damaged or cut off ({kind}); pack it again.") from None
        return Content(_small(inside, file))

    def unpack(packed: BufferedIOBase, file: str, part: str) -> Unpacked:
        stream = pa.CompressedInputStream(packed, kind)
        return io.BufferedReader(stream, 1 << 20), PurePath(file).stem, ()

    def pack(plain: Path, path: Path) -> None:
        with plain.open("rb") as source, pa.output_stream(str(path), compression=kind) as out:
            shutil.copyfileobj(source, out, 1 << 20)

    return Format(
        kind, (ending,), read, lambda data: data.startswith(marks[kind]), _writer(pack), unpack
    )


def _writer(
    pack: Callable[[Path, Path], None],
) -> Callable[[Iterator[pd.DataFrame], Path, Style], None]:
    """Writes what the ending before the last one says, as CSV where it says nothing; packs it."""

    def write(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
        inner = by_ending(path.stem)
        plain = path.with_suffix("") if inner else path.with_suffix(".csv")
        inner = inner or by_ending("x.csv")
        assert inner is not None
        assert inner.write is not None
        inner.write(frames, plain, style)
        pack(plain, path)
        plain.unlink()

    return write


def _unzip(data: bytes, file: str, part: str) -> Content:
    """The one table of an archive; where there are several, the first unless another is wanted."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            member, parts, notes = _chosen(archive, file, part)
            with archive.open(member) as stream:
                inside = stream.read(LIMIT_BYTES + 1)
    except BadInput:
        raise
    except DAMAGED:
        raise BadInput(_damaged(file)) from None
    name = member.filename
    return Content(_small(inside, file), notes, parts if len(parts) > 1 else (), name, inside=name)


def tables_of(source: Path | bytes, file: str, limit_bytes: int) -> list[tuple[str, bytes]]:
    """The tables of a ZIP, each with its name; the parts of a shapefile are one, a ZIP again.

    Args:
        source: A path or the file's bytes.
        file: What messages call it.
        limit_bytes: More, packed or unpacked, is refused before it is read.

    Returns:
        None of a file that is no ZIP of tables.

    Raises:
        BadInput: Too large, encrypted or damaged.
    """
    if not _head(source).startswith(b"PK\x03\x04"):
        return []
    data = load(source, file, limit_bytes)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            inside = {
                m.filename: m
                for m in archive.infolist()
                if not m.is_dir() and not _hidden(m.filename)
            }
            if "[Content_Types].xml" in inside:  # a workbook
                return []
            drawn = [PurePath(n).with_suffix("") for n in inside if n.lower().endswith(".shp")]
            parts = {n: PurePath(n).with_suffix("") for n in inside}
            tables = [n for n in inside if parts[n] not in drawn and by_ending(n)]
            if len(tables) + len(drawn) < 2:
                return []
            if len(tables) + len(drawn) > MOST_TABLES:
                raise BadInput(
                    f"{file} holds {len(tables) + len(drawn):,} tables, and at most {MOST_TABLES} "
                    "can be read together; pack fewer, or put their rows into one with a column "
                    "'task'."
                )
            if sum(inside[n].file_size for n in inside) > LIMIT_BYTES:
                raise BadInput(_too_large(file))
            if any(m.flag_bits & 1 for m in inside.values()):
                raise BadInput(f"{file} is encrypted; pack it without a password.")
            bare = [PurePath(n).name for n in tables]
            called = bare if len({*bare}) == len(bare) else tables
            made = [(name, archive.read(n)) for name, n in zip(called, tables)]
            for stem in drawn:
                again = io.BytesIO()
                with zipfile.ZipFile(again, "w") as own:
                    for n in (n for n, part in parts.items() if part == stem):
                        own.writestr(PurePath(n).name, archive.read(n))
                made.append((f"{stem if called is tables else stem.name}.shp", again.getvalue()))
            return made
    except BadInput:
        raise
    except DAMAGED:
        raise BadInput(_damaged(file)) from None


def _damaged(file: str) -> str:
    if file.lower().endswith((".xlsx", ".xlsm", ".ods")):  # ZIPs too, which nobody packs by hand
        return f"{file} is a damaged workbook; save it again."
    return f"{file} is a damaged ZIP archive; pack it again."


def _head(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source[:4]
    regular(source)
    with source.open("rb") as file:
        return file.read(4)


def _too_large(file: str) -> str:
    return (
        f"{file} unpacks to more than {LIMIT_BYTES / 1e6:,.0f} MB, which is the limit; keep "
        "fewer rows or columns."
    )


def _member(packed: BufferedIOBase, file: str, part: str) -> Unpacked:
    archive = zipfile.ZipFile(packed)
    member, _, notes = _chosen(archive, file, part)
    return cast("BufferedIOBase", archive.open(member)), member.filename, notes


def _chosen(
    archive: zipfile.ZipFile, file: str, part: str
) -> tuple[zipfile.ZipInfo, tuple[str, ...], tuple[str, ...]]:
    """The wanted table of an archive, the names of all, and a note where one was chosen."""
    members = {
        m.filename: m
        for m in archive.infolist()
        if not m.is_dir() and not _hidden(m.filename) and by_ending(m.filename)
    }
    if not members:
        raise BadInput(
            f"{file} is a ZIP archive without a table; pack a CSV file or another table."
        )
    parts = tuple(members)
    name = chosen(parts, part, file, "file")
    if members[name].flag_bits & 1:
        raise BadInput(f"{file} is encrypted; pack it without a password.")
    several = len(parts) > 1 and not part
    notes = (f"{file} holds {len(parts)} tables; {name} was read.",) if several else ()
    return members[name], parts, notes


def _hidden(name: str) -> bool:
    return any(p.startswith((".", "__MACOSX")) for p in PurePath(name).parts)


def _small(inside: bytes, file: str) -> bytes:
    if len(inside) > LIMIT_BYTES:
        raise BadInput(_too_large(file))
    if not inside.strip(b"\r\n \t\xef\xbb\xbf"):
        raise BadInput(f"{file} holds an empty file; give a table with a header and rows.")
    return inside


def _zip(plain: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(plain, plain.name)


FORMATS = (
    _stream("gzip"),
    _stream("bz2"),
    _stream("zstd"),
    Format(
        "ZIP",
        (".zip",),
        _unzip,
        lambda data: data.startswith(b"PK\x03\x04"),
        _writer(_zip),
        _member,
    ),
)
