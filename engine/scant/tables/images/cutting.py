"""Pictures cut into patches: the squares of a grid, and the table of them.

As published, pictures have 1280 x 720 pixels and are cut into squares of 299 at a stride of half a
square, 21 a picture; parts at the edge that are smaller are skipped (Yousefi 2021, section 4.4).
Departure: a photograph of another shape keeps it, its shorter side brought to 720 pixels, and where
squares end short of its right or lower edge a last column or row is shifted inwards to end there.
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

SHORT, LONG = 720, 4096  # pixels of a photograph's sides as it is cut
SIDE = 299  # of a square


@dataclass(frozen=True)
class Cut:
    """A patch of a picture: its name, place and pixels.

    Attributes:
        picture: The name.
        left: In pixels of the picture as it was given, as are `top` and the sides.
        top: Likewise.
        size: Its width.
        image: Its pixels, perhaps reduced.
        height: Where it is no square; 0: as its width.
        of: Width and height of the picture; 0 where not known.
    """

    picture: str
    left: int
    top: int
    size: int
    image: UInt8[np.ndarray, "h w 3"]
    height: int = 0
    of: tuple[int, int] = (0, 0)


def brought_size(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height of a photograph as it is cut: in its own shape, the shorter side 720.

    One that is very long is reduced further, as far as a patch still fits into it.
    """
    short, long = sorted(size)
    scale = max(min(SHORT / short, LONG / long), SIDE / short)
    return max(SIDE, round(size[0] * scale)), max(SIDE, round(size[1] * scale))


def grid(size: tuple[int, int]) -> Int[np.ndarray, "k 4"]:
    """The squares of a photograph of this size: left, top, width and height in its own pixels."""
    brought = brought_size(size)
    across, down = size[0] / brought[0], size[1] / brought[1]
    corners = np.array(
        [(x, y) for y in _starts(brought[1], SIDE, True) for x in _starts(brought[0], SIDE, True)]
    )
    low = np.round(corners * (across, down)).astype(np.int64)
    high = np.round((corners + SIDE) * (across, down)).astype(np.int64)
    return np.hstack([low, high - low])


def cut_photograph(image: Image.Image, picture: str, size: tuple[int, int]) -> list[Cut]:
    """The squares of `grid` with their pixels.

    Args:
        image: A photograph, perhaps reduced.
        picture: Its name.
        size: Width and height that it has as it was given.
    """
    brought = image.convert("RGB").resize(brought_size(size), Image.Resampling.BICUBIC)
    squares = cut(np.asarray(brought), picture, edges=True)
    return [
        Cut(picture, int(left), int(top), int(width), square.image, int(height), size)
        for square, (left, top, width, height) in zip(squares, grid(size))
    ]


def cut(
    image: UInt8[np.ndarray, "h w 3"], picture: str, side: int = SIDE, *, edges: bool = False
) -> list[Cut]:
    """Squares at a stride of half a side, row by row; what does not fit whole is skipped.

    Args:
        image: A picture.
        picture: Its name.
        side: Of a square, pixels.
        edges: Whether the last column and row are shifted inwards where they would not fit, so that
            they end at the edge and nothing is skipped.
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
    """The table of patches; `scant.studies.clamp.table.PatchPool.of` gives the arrays back.

    Args:
        cuts: Patches; of one picture where there is `whole`.
        labels: Their classes; None: nobody knows them.
        whole: Their picture as a file.
    """
    made: dict[str, object] = {
        "label": pd.Series([None] * len(cuts) if labels is None else list(labels), dtype=object),
        "picture": [c.picture for c in cuts],
        "left": [float(c.left) for c in cuts],
        "top": [float(c.top) for c in cuts],
        "size": [float(c.size) for c in cuts],
    }
    if any(c.height for c in cuts):
        made["height"] = [float(c.height or c.size) for c in cuts]
        made["picture_width"] = [float(c.of[0]) for c in cuts]
        made["picture_height"] = [float(c.of[1]) for c in cuts]
    made["image"] = [base64.b64encode(jpeg(c.image)).decode() for c in cuts]
    if whole is not None:
        first = [base64.b64encode(whole).decode()] + [None] * (len(cuts) - 1)
        made["whole"] = pd.Series(first[: len(cuts)], dtype=object)
    return pd.DataFrame(made)
