"""Files in memory: tables, archives and images, as tests of readers have them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image


def csv(frame: pd.DataFrame, **how: Any) -> bytes:
    text: str = frame.to_csv(index=False, **how)
    return text.encode()


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """A ZIP of them, by their paths."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def image(of: Image.Image | np.ndarray, form: str = "PNG", **how: Any) -> bytes:
    out = io.BytesIO()
    made = of if isinstance(of, Image.Image) else Image.fromarray(of)
    made.save(out, form, **how)
    return out.getvalue()
