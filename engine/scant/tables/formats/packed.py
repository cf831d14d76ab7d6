"""Files compressed with gzip, bzip2, Zstandard or ZIP, decompressed in memory up to a limit."""

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

MOST_TABLES = 50  # maximum tables of an archive to read
DAMAGED = (OSError, EOFError, ValueError, zipfile.BadZipFile, RuntimeError, pa.ArrowException)


def _stream(kind: str) -> Format:
    """Return the format of an Arrow codec; the inner extension names its content."""
    marks = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
    ending = {"gzip": ".gz", "bz2": ".bz2", "zstd": ".zst"}[kind]

    def read(data: bytes, file: str, part: str) -> Content:
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), kind) as stream:
                inside = stream.read(LIMIT_BYTES + 1)
        except DAMAGED:
            raise BadInput(f"{file} is damaged or cut off ({kind}); pack it again.") from None
        return Content(_check_content(inside, file))

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
    """Return a writer that compresses the format of the inner extension, by default CSV."""

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
    """Extract the selected table of an archive, by default the first."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            member, parts, notes = _select_member(archive, file, part)
            with archive.open(member) as stream:
                inside = stream.read(LIMIT_BYTES + 1)
    except BadInput:
        raise
    except DAMAGED:
        raise BadInput(_damaged(file)) from None
    name = member.filename
    return Content(
        _check_content(inside, file), notes, parts if len(parts) > 1 else (), name, inside=name
    )


def tables_of(source: Path | bytes, file: str, limit_bytes: int) -> list[tuple[str, bytes]]:
    """Extract the tables of a ZIP archive with their names; a shapefile stays a ZIP archive.

    Args:
        source: Path or content of the file.
        file: Name of the file for messages.
        limit_bytes: Maximum compressed and decompressed size in bytes.

    Returns:
        Pairs of name and content; empty unless the file is an archive of several tables.

    Raises:
        BadInput: The archive is too large, encrypted or damaged.
    """
    if not _head(source).startswith(b"PK\x03\x04"):
        return []
    data = load(source, file, limit_bytes)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {
                m.filename: m
                for m in archive.infolist()
                if not m.is_dir() and not _hidden(m.filename)
            }
            if "[Content_Types].xml" in members:  # a workbook
                return []
            shapes = [PurePath(n).with_suffix("") for n in members if n.lower().endswith(".shp")]
            parts = {n: PurePath(n).with_suffix("") for n in members}
            tables = [n for n in members if parts[n] not in shapes and by_ending(n)]
            if len(tables) + len(shapes) < 2:
                return []
            if len(tables) + len(shapes) > MOST_TABLES:
                raise BadInput(
                    f"{file} holds {len(tables) + len(shapes):,} tables, and at most {MOST_TABLES} "
                    "can be read together; pack fewer, or put their rows into one with a column "
                    "'task'."
                )
            if sum(members[n].file_size for n in members) > LIMIT_BYTES:
                raise BadInput(_too_large(file))
            if any(m.flag_bits & 1 for m in members.values()):
                raise BadInput(f"{file} is encrypted; pack it without a password.")
            file_names = [PurePath(n).name for n in tables]
            names = file_names if len({*file_names}) == len(file_names) else tables
            tables_read = [(name, archive.read(n)) for name, n in zip(names, tables)]
            for stem in shapes:
                archive_bytes = io.BytesIO()
                with zipfile.ZipFile(archive_bytes, "w") as shapefile_archive:
                    for n in (n for n, part in parts.items() if part == stem):
                        shapefile_archive.writestr(PurePath(n).name, archive.read(n))
                tables_read.append(
                    (f"{stem if names is tables else stem.name}.shp", archive_bytes.getvalue())
                )
            return tables_read
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
    member, _, notes = _select_member(archive, file, part)
    return cast("BufferedIOBase", archive.open(member)), member.filename, notes


def _select_member(
    archive: zipfile.ZipFile, file: str, part: str
) -> tuple[zipfile.ZipInfo, tuple[str, ...], tuple[str, ...]]:
    """Return the selected table of an archive, the names of all tables, and notes."""
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


def _check_content(inside: bytes, file: str) -> bytes:
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
