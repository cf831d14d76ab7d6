"""Safe names and limited reading of files in ZIP archives of annotations."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from urllib.parse import quote

from scant.errors import BadInput
from scant.tables.annotations.entries import LIMIT_BYTES
from scant.tables.images.archives import BROKEN

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*%@]|^[. ]|[. ]$')
_DATE = (1980, 1, 1, 0, 0, 0)  # of every file, so that archives are reproducible


def file_name(name: str) -> str:
    """Escape a name for all file systems; `urllib.parse.unquote` is the inverse."""
    return _UNSAFE.sub(lambda m: quote(m[0], safe="") if m[0] != "." else "%2E", name)


def path_name(path: str) -> str:
    """Return a safe relative path for an archive."""
    return "/".join(file_name(part) for part in path.split("/") if part) or "_"


def packed(files: Mapping[str, bytes]) -> bytes:
    """Pack files into a ZIP archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return out.getvalue()


def content_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: str) -> bytes:
    """Read an annotation file in an archive.

    Raises:
        BadInput: The file is too large or damaged.
    """
    where = f"{file}, {member.filename[:80]!r}"
    if member.file_size > LIMIT_BYTES:
        raise BadInput(
            f"{where} unpacks to {member.file_size / 1e6:,.0f} MB and the limit is "
            f"{LIMIT_BYTES / 1e6:,.0f} MB; give fewer labels."
        )
    try:
        with archive.open(member) as stream:
            content = stream.read(LIMIT_BYTES + 1)
    except BROKEN:
        raise BadInput(f"{where} is damaged; pack the labels again.") from None
    return content
