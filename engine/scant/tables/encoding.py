"""Decoding of uploaded text files, with errors for files that are not text."""

from __future__ import annotations

import codecs
import re
import stat
from pathlib import Path

from scant.errors import BadInput

LIMIT_BYTES = 200_000_000  # maximum size of a file, compressed and uncompressed

# First bytes of common binary files.
_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"%PDF", "a PDF document"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook (.xls)"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"SQLite format 3", "an SQLite database"),
)
_ADVICE = "export the table as CSV (comma-separated, UTF-8) or .xlsx and try again"


def load(source: Path | bytes, name: str, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Read the bytes of a file after checking its size.

    Raises:
        BadInput: The file does not exist, is not a regular file, cannot be read, is empty, or is
            larger than the limit.
    """
    size = regular(source, name) if isinstance(source, Path) else len(source)
    if size > limit_bytes:
        raise BadInput(
            f"{name} has {size / 1e6:,.0f} MB and the limit is {limit_bytes / 1e6:,.0f} MB; "
            "keep fewer rows or columns."
        )
    try:
        data = source.read_bytes() if isinstance(source, Path) else source
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}; check the path.") from None
    if not data.strip(b"\r\n \t\xef\xbb\xbf"):
        raise BadInput(f"{name} is empty; give a CSV file with a header and rows.")
    return data


def regular(path: Path, name: str = "") -> int:
    """Size in bytes of a regular file; pipes and devices, which have no end, are refused.

    Args:
        path: Path of the file.
        name: Name of the file for messages; by default that of the path.

    Raises:
        BadInput: The file does not exist or is not a regular file, or the path is invalid.
    """
    name = name or path.name or str(path)
    try:
        result = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"There is no file {name}; check the path.") from None
    except OSError as error:
        raise BadInput(
            f"The file {_short(name)} cannot be reached: {error.strerror}; check the path."
        ) from None
    except ValueError:  # a character that no path has
        raise BadInput(f"{_short(name)!r} is not a path of a file; check it.") from None
    if stat.S_ISDIR(result.st_mode):
        raise BadInput(f"{name} is a folder; name a file in it.")
    if not stat.S_ISREG(result.st_mode):
        raise BadInput(f"{name} is a pipe or a device; copy the table into a file and name that.")
    return result.st_size


def _short(name: str) -> str:
    return name if len(name) <= 80 else name[:77] + "..."


def decode(data: bytes, name: str) -> tuple[str, list[str]]:
    """Decode a CSV file; return the text and notes on its encoding.

    Raises:
        BadInput: The bytes are those of another kind of file.
    """
    _refuse_other_kinds(data, name)
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),  # before that of UTF-16, with which it begins
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            try:
                return data.decode(encoding), []
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{name} is marked as {encoding[:6].upper()} text, but byte {error.start + 1} "
                    "is not; save it as UTF-8 and try again."
                ) from None
    if b"\x00" in data[:4096]:
        return _without_mark(data, name)
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    _refuse_noise(text, name)
    return text, [f"{name} is not UTF-8; it was read as Latin-1 (Windows-1252)."]


def _refuse_other_kinds(data: bytes, name: str) -> None:
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            raise BadInput(f"{name} is {kind}, not a table; {_ADVICE}.")
    start = data[:2048].lstrip(b"\xef\xbb\xbf \r\n\t").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise BadInput(f"{name} is a web page or XML, not a table; {_ADVICE}.")
    if re.match(rb'[\[{]\s*["\[{]', start):
        raise BadInput(
            f"{name} is JSON, but not one object per line; write it as JSON lines or as CSV."
        )


def _without_mark(data: bytes, name: str) -> tuple[str, list[str]]:
    """Decode UTF-32 or UTF-16 without a byte order mark, detected by its zero bytes."""
    head = data[:4096]
    if not data.strip(b"\x00"):
        raise BadInput(f"{name} holds nothing but zero bytes; copy or download it again.")
    for encoding, size, zeros in (
        ("utf-32-le", 4, head[2::4] + head[3::4]),
        ("utf-32-be", 4, head[0::4] + head[1::4]),
        ("utf-16-le", 2, head[1::2]),
        ("utf-16-be", 2, head[0::2]),
    ):
        if len(data) % size == 0 and zeros.count(0) > 0.8 * len(zeros):
            try:
                return data.decode(encoding), [f"{name} was read as {encoding[:6].upper()}."]
            except UnicodeDecodeError:
                break
    raise BadInput(f"{name} holds binary data, not text; {_ADVICE}.")


def _refuse_noise(text: str, name: str) -> None:
    head = text[:4096]
    odd = sum(c == "�" or (ord(c) < 32 and c not in "\r\n\t") for c in head)
    if odd > 0.02 * len(head):
        raise BadInput(f"{name} holds binary data, not text; {_ADVICE}.")
