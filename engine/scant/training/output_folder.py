"""Checks of output paths before a long computation, with messages on failures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scant.errors import BadInput


@contextmanager
def output(out: Path) -> Iterator[None]:
    """Convert errors of writing to `--out` to messages.

    Raises:
        BadInput: The file or folder cannot be created or written.
    """
    try:
        yield
    except BadInput:
        raise
    except (OSError, ValueError) as error:  # a ValueError for a character not allowed in paths
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        name = str(out) if len(str(out)) <= 200 else f"{str(out)[:197]}..."
        raise BadInput(
            f"--out {name!r} cannot be written ({reason}); name another place."
        ) from None


def check_writable(folder: Path) -> None:
    """Check that a folder can be written by creating and removing it with a temporary file.

    A check of permissions is not sufficient, since a disk may be read-only or full.

    Raises:
        BadInput: The folder cannot be written, or a file has its name.
    """
    created: list[Path] = []
    try:
        with output(folder):
            if folder.exists() and not folder.is_dir():
                raise BadInput(f"--out {folder} is a file; name a folder.")
            for path in reversed([folder, *folder.parents]):
                if not path.exists():
                    path.mkdir()
                    created.append(path)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"scant")
    finally:
        for path in reversed(created):
            path.rmdir()
