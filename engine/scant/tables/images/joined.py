"""Joining of several files of photographs and labels into one ZIP archive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from scant.errors import BadInput
from scant.tables.column_matching import listed
from scant.tables.encoding import load
from scant.tables.images.archives import ENDINGS, IMAGE_LIMIT_BYTES, TEXTS

TAKEN = ENDINGS | TEXTS | {".zip"}


def joined(paths: Sequence[Path], limit_bytes: int = IMAGE_LIMIT_BYTES) -> bytes:
    """Pack files into one ZIP archive; nested archives are unpacked on reading.

    Raises:
        BadInput: A file is unreadable or contains neither pictures nor labels, names are
            duplicate, or the size exceeds the limit.
    """
    foreign = [path.name for path in paths if path.suffix.lower() not in TAKEN]
    if foreign:
        raise BadInput(
            f"{listed(foreign)}: beside photographs only labels are taken (.json, .csv, .txt or "
            ".zip); leave it out."
        )
    out, size = io.BytesIO(), 0
    with zipfile.ZipFile(out, "w") as archive:
        for path in paths:
            if path.name in archive.namelist():
                raise BadInput(f"{path.name} occurs twice; rename one.")
            content = load(path, path.name, limit_bytes)
            if (size := size + len(content)) > limit_bytes:
                raise BadInput(
                    f"The files have {size / 1e6:,.0f} MB together and the limit is "
                    f"{limit_bytes / 1e6:,.0f} MB; keep fewer photographs."
                )
            archive.writestr(path.name, content)
    return out.getvalue()


def is_of_images(paths: Sequence[Path]) -> bool:
    """Return True if there are images or ZIP archives among the files."""
    endings = {PurePosixPath(path.name.lower()).suffix for path in paths}
    return bool(endings & (ENDINGS | {".zip"}))
