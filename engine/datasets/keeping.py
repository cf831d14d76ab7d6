"""Files that spare work done before: in the data directory, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def keep(path: Path, content: bytes) -> None:
    """Write a file that readers see complete; where nothing can be written, nothing is kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, half = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(half, path)
    except OSError:
        return
