"""Where results are written to: tried before hours of work, and named where it fails."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scant.errors import BadInput


@contextmanager
def output(out: Path) -> Iterator[None]:
    """What goes wrong with writing to `--out` ends in a sentence.

    Raises:
        BadInput: The file or folder cannot be made or written.
    """
    try:
        yield
    except BadInput:
        raise
    except (OSError, ValueError) as error:  # a ValueError for a character that no path has
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        shown = str(out) if len(str(out)) <= 200 else f"{str(out)[:197]}..."
        raise BadInput(
            f"--out {shown!r} cannot be written ({reason}); name another place."
        ) from None


def check_writable(folder: Path) -> None:
    """Try to make a folder and a file in it, and take both away again.

    Permissions alone do not answer this: a disk may be mounted read-only, or be full.

    Raises:
        BadInput: It fails, or there is a file of that name.
    """
    made: list[Path] = []
    try:
        with output(folder):
            if folder.exists() and not folder.is_dir():
                raise BadInput(f"--out {folder} is a file; name a folder.")
            for path in reversed([folder, *folder.parents]):
                if not path.exists():
                    path.mkdir()
                    made.append(path)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"scant")
    finally:
        for path in reversed(made):
            path.rmdir()
