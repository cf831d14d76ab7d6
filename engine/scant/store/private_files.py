"""Files and folders without access for other users of the machine.

New files and folders get restrictive modes regardless of the umask, and those of earlier versions
are corrected. The mode of a folder with foreign content is not changed.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

# Content of the data directory; a folder with other content is not changed.
OURS = {
    "cookie-secret", "datasets", "features", "generated",
    "scant.db", "scant.db-journal", "scant.db-shm", "scant.db-wal", "users.json",
}  # fmt: skip

log = logging.getLogger(__name__)


def private_folder(folder: Path) -> None:
    """Create a folder with access for its owner only (0700), and its parents.

    An existing folder gets this mode if it is empty or has only files of Scant.

    Raises:
        OSError: The folder cannot be created.
    """
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_new or {entry.name for entry in os.scandir(folder)} <= OURS:
        _close(folder, 0o700)
    elif _open_to_others(folder):
        log.info("%s holds other things too: its files are closed, not the folder", folder)


def private_file(file: Path) -> None:
    """Create an empty file with access for its owner only (0600), or change an existing file.

    Existing folders and devices are not changed.

    Raises:
        OSError: The file cannot be created.
    """
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if file.is_file():  # this mode would make a folder unusable
            _close(file, 0o600)


def _close(path: Path, mode: int) -> None:
    """Remove the access of other users to a path of this user."""
    if _open_to_others(path):
        try:
            path.chmod(mode)
        except OSError as error:
            log.warning("other users may look into %s: %s", path, error)


def _open_to_others(path: Path) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    result = path.stat()
    return result.st_uid == os.geteuid() and bool(stat.S_IMODE(result.st_mode) & 0o077)
