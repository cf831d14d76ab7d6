"""Hash of a table, to identify runs on the same data."""

from __future__ import annotations

import hashlib
import json

import pandas as pd
from pandas.util import hash_pandas_object


def table_hash(frame: pd.DataFrame | None) -> str:
    """SHA-256 of a table's column names and cells; "" for None."""
    if frame is None:
        return ""
    digest = hashlib.sha256(json.dumps([str(c) for c in frame.columns]).encode())
    digest.update(hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()
