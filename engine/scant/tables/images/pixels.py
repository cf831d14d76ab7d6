"""Pixels of the image files that a table holds, and such files made of pixels."""

from __future__ import annotations

import io

import numpy as np
from jaxtyping import UInt8
from PIL import Image

QUALITY = 85  # of JPEG


def jpeg(image: UInt8[np.ndarray, "h w 3"], quality: int = QUALITY) -> bytes:
    """A JPEG file."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=quality)
    return out.getvalue()


def pixels(content: bytes, size: int | tuple[int, int] | None = None) -> UInt8[np.ndarray, "h w 3"]:
    """The pixels of an image file, brought to a square of `size`, or width and height."""
    with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
        if size is not None:
            sides = (size, size) if isinstance(size, int) else size
            image.draft("RGB", sides)  # a JPEG is decoded at a part of its size
            return np.asarray(image.convert("RGB").resize(sides, Image.Resampling.BOX))
        return np.asarray(image.convert("RGB"))
