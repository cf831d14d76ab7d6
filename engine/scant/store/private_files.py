"""Files and folders that other users of the machine cannot look into.

What we make is made so, whatever the umask; what an earlier version made is mended where it is
ours. A folder that holds other things than ours is left as it is: only our files in it are closed.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

# What the data directory holds: a folder with nothing else in it is ours.
OURS = {
    "cookie-secret", "datasets", "features", "generated",
    "scant.db", "scant.db-journal", "scant.db-shm", "scant.db-wal", "users.json",
}  # fmt: skip

log = logging.getLogger(__name__)


def private_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter (0700), with the folders above it.

    One that is there is closed likewise if it is empty or holds only what Scant puts there.

    Raises:
        OSError: It cannot be made.
    """
    made = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if made or {entry.name for entry in os.scandir(folder)} <= OURS:
        _close(folder, 0o700)
    elif _open_to_others(folder):
        log.info("%s holds other things too: its files are closed, not the folder", folder)


def private_file(file: Path) -> None:
    """Make an empty file that only its owner can read and write (0600); close one that is there.

    What is there and is no file (a folder that was named by mistake, a device) stays as it is.

    Raises:
        OSError: It cannot be made.
    """
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if file.is_file():  # a folder without its x bit is closed to everything in it
            _close(file, 0o600)


def _close(path: Path, mode: int) -> None:
    """Take from others what they may do with a path that belongs to us."""
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
