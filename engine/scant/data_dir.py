"""The user's data directory: where it is, and files in it, which are written atomically."""

from __future__ import annotations

import io
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    import pandas as pd  # which not every command needs

_making = threading.Lock()


def data_dir() -> Path:
    """The user's data directory; `SCANT_DATA_DIR` overrides it. It need not exist yet."""
    chosen = os.environ.get("SCANT_DATA_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_data_dir("scant"))


def fetched_path(name: str, folder: Path | None = None) -> Path:
    """Where the download of that name lies, or will lie."""
    return (folder or data_dir()) / "datasets" / f"{name}.parquet"


def generated_path(name: str, folder: Path | None = None) -> Path:
    """Where a generated table of that name is kept, if its generator keeps it."""
    return (folder or data_dir()) / "generated" / f"{name}.parquet"


def cached_table(path: Path, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """A table that takes long to make, read where it was made before.

    Other threads wait while it is being made, and do not make it too.
    """
    import pandas as pd

    with _making:
        if path.is_file():
            try:
                return pd.read_parquet(path)
            except (OSError, ValueError):
                pass  # it was cut off: made anew
        made = make()
        out = io.BytesIO()
        made.to_parquet(out)
        write_atomically(path, out.getvalue())
        return pd.read_parquet(out)  # the same as whoever reads it


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that readers see complete; nothing, where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, half = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(half, path)
    except OSError:
        return
