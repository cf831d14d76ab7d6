"""A file cache in the data directory with atomic writes."""

from __future__ import annotations

import io
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pandas as pd

_making = threading.Lock()


def kept_table(path: Path, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """A table that takes long to make, read where it was made before.

    Who asks while it is being made in this process waits for it, and does not make it too.
    """
    with _making:
        if path.is_file():
            try:
                return pd.read_parquet(path)
            except (OSError, ValueError):
                pass  # it was cut off: made anew
        made = make()
        out = io.BytesIO()
        made.to_parquet(out)
        keep(path, out.getvalue())
        return pd.read_parquet(out)  # the same as whoever reads it


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
