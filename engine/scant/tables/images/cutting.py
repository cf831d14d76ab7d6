"""Cutting of pictures into square patches, and the table of patches.

As in Yousefi (2021, section 4.4), pictures of 1280 x 720 pixels are cut into squares of 299 pixels
at a stride of half a square, 21 per picture; incomplete squares at the edges are skipped.
Departure: photographs of another shape are resized to a shorter side of 720 pixels, and a last
column or row of squares is aligned to the right or lower edge.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Int, UInt8
from PIL import Image

from scant.tables.images.pixels import jpeg

SHORT, LONG = 720, 4096  # pixels: shorter side of a photograph, maximum longer side
SIDE = 299  # pixels of a patch


@dataclass(frozen=True)
class Cut:
    """Patch of a picture; positions and sizes are in pixels of the original picture.

    Attributes:
        picture: Name of the picture.
        left: Left edge.
        top: Top edge.
        size: Width.
        image: Pixels of the patch, possibly at a lower resolution.
        height: Height, or 0 for a square.
        of: Width and height of the picture, or 0 if unknown.
    """

    picture: str
    left: int
    top: int
    size: int
    image: UInt8[np.ndarray, "h w 3"]
    height: int = 0
    of: tuple[int, int] = (0, 0)


def brought_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return the width and height to which a photograph is resized before it is cut.

    The shorter side gets 720 pixels; panoramas get fewer, but at least the size of a patch.
    """
    short, long = sorted(size)
    scale = max(min(SHORT / short, LONG / long), SIDE / short)
    return max(SIDE, round(size[0] * scale)), max(SIDE, round(size[1] * scale))


def grid(size: tuple[int, int]) -> Int[np.ndarray, "k 4"]:
    """Return left, top, width and height of the squares in pixels of a photograph of this size."""
    resized = brought_size(size)
    scale_x, scale_y = size[0] / resized[0], size[1] / resized[1]
    corners = np.array(
        [(x, y) for y in _starts(resized[1], SIDE, True) for x in _starts(resized[0], SIDE, True)]
    )
    low = np.round(corners * (scale_x, scale_y)).astype(np.int64)
    high = np.round((corners + SIDE) * (scale_x, scale_y)).astype(np.int64)
    return np.hstack([low, high - low])


def cut_photograph(image: Image.Image, picture: str, size: tuple[int, int]) -> list[Cut]:
    """Cut a photograph into the squares of `grid`.

    Args:
        image: Photograph, possibly at a lower resolution.
        picture: Name of the photograph.
        size: Original width and height in pixels.
    """
    resized = image.convert("RGB").resize(brought_size(size), Image.Resampling.BICUBIC)
    squares = cut(np.asarray(resized), picture, edges=True)
    return [
        Cut(picture, int(left), int(top), int(width), square.image, int(height), size)
        for square, (left, top, width, height) in zip(squares, grid(size))
    ]


def cut(
    image: UInt8[np.ndarray, "h w 3"], picture: str, side: int = SIDE, *, edges: bool = False
) -> list[Cut]:
    """Cut squares at a stride of half a side in row-major order; incomplete ones are skipped.

    Args:
        image: Picture.
        picture: Name of the picture.
        side: Side of a square in pixels.
        edges: True to add a last column and row aligned to the edges.
    """
    h, w = image.shape[:2]
    return [
        Cut(picture, left, top, side, image[top : top + side, left : left + side])
        for top in _starts(h, side, edges)
        for left in _starts(w, side, edges)
    ]


def _starts(long: int, side: int, edges: bool) -> list[int]:
    starts = list(range(0, long - side + 1, side // 2))
    if edges and starts and starts[-1] + side < long:
        starts.append(long - side)
    return starts


def table_of(
    cuts: Sequence[Cut], labels: Sequence[str | None] | None = None, whole: bytes | None = None
) -> pd.DataFrame:
    """Return a table of patches, the inverse of `scant.studies.clamp.table.PatchPool.of`.

    Args:
        cuts: Patches, from one picture if `whole` is given.
        labels: Classes of the patches; None if unknown.
        whole: Image file of the picture.
    """
    columns: dict[str, object] = {
        "label": pd.Series([None] * len(cuts) if labels is None else list(labels), dtype=object),
        "picture": [c.picture for c in cuts],
        "left": [float(c.left) for c in cuts],
        "top": [float(c.top) for c in cuts],
        "size": [float(c.size) for c in cuts],
    }
    if any(c.height for c in cuts):
        columns["height"] = [float(c.height or c.size) for c in cuts]
        columns["picture_width"] = [float(c.of[0]) for c in cuts]
        columns["picture_height"] = [float(c.of[1]) for c in cuts]
    columns["image"] = [base64.b64encode(jpeg(c.image)).decode() for c in cuts]
    if whole is not None:
        encoded = [base64.b64encode(whole).decode()] + [None] * (len(cuts) - 1)
        columns["whole"] = pd.Series(encoded[: len(cuts)], dtype=object)
    return pd.DataFrame(columns)
