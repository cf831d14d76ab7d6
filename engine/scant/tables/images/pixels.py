"""Encoding and decoding of the image files in a table."""

from __future__ import annotations

import io

import numpy as np
from jaxtyping import UInt8
from PIL import Image

QUALITY = 85  # JPEG quality


def jpeg(image: UInt8[np.ndarray, "h w 3"], quality: int = QUALITY) -> bytes:
    """Encode an image as a JPEG file."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=quality)
    return out.getvalue()


def pixels(content: bytes, size: int | tuple[int, int] | None = None) -> UInt8[np.ndarray, "h w 3"]:
    """Decode a JPEG or PNG file, resized to `size` pixels (side, or width and height)."""
    with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
        if size is not None:
            sides = (size, size) if isinstance(size, int) else size
            image.draft("RGB", sides)  # JPEG files are decoded at a lower resolution
            return np.asarray(image.convert("RGB").resize(sides, Image.Resampling.BOX))
        return np.asarray(image.convert("RGB"))
