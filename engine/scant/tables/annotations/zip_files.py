"""Files inside a ZIP of annotations: names that lead nowhere, bytes up to a limit."""

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
_DAY = (1980, 1, 1, 0, 0, 0)  # of every file, so that the same labels are the same bytes


def file_name(word: str) -> str:
    """A name that every system takes for one file or folder; `urllib.parse.unquote` undoes it."""
    return _UNSAFE.sub(lambda m: quote(m[0], safe="") if m[0] != "." else "%2E", word)


def path_name(word: str) -> str:
    """A path inside an archive that leads nowhere else."""
    return "/".join(file_name(part) for part in word.split("/") if part) or "_"


def packed(files: Mapping[str, bytes]) -> bytes:
    """A ZIP of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            own = zipfile.ZipInfo(name, _DAY)
            own.compress_type = zipfile.ZIP_DEFLATED
            own.external_attr = 0o644 << 16
            archive.writestr(own, content)
    return out.getvalue()


def content_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: str) -> bytes:
    """The bytes of a file of annotations.

    Raises:
        BadInput: More than a file of annotations has, or damage.
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
