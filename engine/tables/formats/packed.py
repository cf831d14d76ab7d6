"""Files packed in gzip, bzip2, Zstandard or ZIP, unpacked in memory up to a limit."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePath

import pandas as pd
import pyarrow as pa
from scant.errors import BadInput
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats.registry import Content, Format, by_ending, chosen

_DAMAGED = (OSError, EOFError, ValueError, zipfile.BadZipFile, RuntimeError, pa.ArrowException)


def _stream(kind: str) -> Format:
    """A format of Arrow's compressed streams; what is inside is told by the ending before."""
    marks = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
    ending = {"gzip": ".gz", "bz2": ".bz2", "zstd": ".zst"}[kind]

    def read(data: bytes, file: str, part: str) -> Content:
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), kind) as stream:
                inside = stream.read(LIMIT_BYTES + 1)
        except _DAMAGED:
            raise BadInput(f"{file} is damaged or cut off ({kind}); pack it again.") from None
        return Content(_small(inside, file))

    def write(frames: Iterator[pd.DataFrame], path: Path) -> None:
        inner = by_ending(path.stem) or by_ending("x.csv")
        assert inner is not None
        assert inner.write is not None
        plain = path.with_suffix("")
        inner.write(frames, plain)
        with plain.open("rb") as source, pa.output_stream(str(path), compression=kind) as out:
            while block := source.read(1 << 20):
                out.write(block)
        plain.unlink()

    return Format(kind, (ending,), read, lambda data: data.startswith(marks[kind]), write)


def _unzip(data: bytes, file: str, part: str) -> Content:
    """The one table of an archive; where there are several, the first unless another is wanted."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
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
            with archive.open(members[name]) as stream:
                inside = stream.read(LIMIT_BYTES + 1)
    except BadInput:
        raise
    except _DAMAGED:
        raise BadInput(f"{file} is a damaged ZIP archive; pack it again.") from None
    notes: tuple[str, ...] = ()
    if len(parts) > 1 and not part:
        notes = (f"{file} holds {len(parts)} tables; {name} was read.",)
    return Content(_small(inside, file), notes, parts if len(parts) > 1 else (), name, inside=name)


def _hidden(name: str) -> bool:
    return any(p.startswith((".", "__MACOSX")) for p in PurePath(name).parts)


def _small(inside: bytes, file: str) -> bytes:
    if len(inside) > LIMIT_BYTES:
        raise BadInput(
            f"{file} unpacks to more than {LIMIT_BYTES / 1e6:,.0f} MB, which is the limit; keep "
            "fewer rows or columns."
        )
    if not inside.strip(b"\r\n \t\xef\xbb\xbf"):
        raise BadInput(f"{file} holds an empty file; give a table with a header and rows.")
    return inside


def _write_zip(frames: Iterator[pd.DataFrame], path: Path) -> None:
    inner = by_ending(path.stem)
    plain = path.with_suffix("") if inner else path.with_suffix(".csv")
    inner = inner or by_ending("x.csv")
    assert inner is not None
    assert inner.write is not None
    inner.write(frames, plain)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(plain, plain.name)
    plain.unlink()


FORMATS = (
    _stream("gzip"),
    _stream("bz2"),
    _stream("zstd"),
    Format("ZIP", (".zip",), _unzip, lambda data: data.startswith(b"PK\x03\x04"), _write_zip),
)
