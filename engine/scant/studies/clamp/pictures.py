"""Pictures reassembled from their patches, reduced for storage with a model."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from scant.studies.clamp.placed import BLANK
from scant.studies.clamp.table import PatchPool
from scant.tables.images.pixels import jpeg, pixels

QUALITY = 50  # of JPEG
MOST_SIDE = 4096  # of a picture; patches of larger ones are shown one by one


@dataclass(frozen=True)
class Mosaics:
    """Pictures as JPEG files, and the location of each row in them.

    Attributes:
        files: File of each picture; none if the table has no images.
        picture: Picture of each row.
        boxes: Left, top, right, bottom of each row in its stored picture, in pixels.
    """

    files: list[bytes]
    picture: Int[np.ndarray, " n"]
    boxes: Float[np.ndarray, "n 4"]

    def arrays(self) -> dict[str, np.ndarray]:
        """Convert to arrays; `of` is the inverse."""
        joined = np.frombuffer(b"".join(self.files), dtype=np.uint8)
        return {
            "mosaic.bytes": joined,
            "mosaic.sizes": np.array([len(f) for f in self.files], dtype=np.int64),
            "mosaic.picture": self.picture,
            "mosaic.boxes": self.boxes,
        }

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> Mosaics:
        """Inverse of `arrays`."""
        offsets = np.cumsum(arrays["mosaic.sizes"])
        files = [part.tobytes() for part in np.split(arrays["mosaic.bytes"], offsets)[:-1]]
        return cls(files, arrays["mosaic.picture"], arrays["mosaic.boxes"])

    def whole(self, picture: int) -> UInt8[np.ndarray, "h w 3"]:
        """Decode a picture."""
        with Image.open(io.BytesIO(self.files[picture])) as image:
            return np.asarray(image.convert("RGB"))

    def cut(self, picture: int, box: Float[np.ndarray, " 4"]) -> UInt8[np.ndarray, "h w 3"]:
        """Part of a picture; empty if there are no images."""
        if not self.files:
            return np.empty((0, 0, 3), dtype=np.uint8)
        left, top, right, bottom = np.round(box).astype(int)
        return self.whole(picture)[top:bottom, left:right]


def mosaics(pool: PatchPool, width: int) -> Mosaics:
    """The pictures of a pool, as far as its patches cover them.

    Args:
        pool: Pool, with or without images.
        width: Maximum width of the result, in pixels.
    """
    if not pool.images:
        return Mosaics([], pool.picture, np.zeros((len(pool), 4)))
    parts = [_single, _placed][are_placed(pool)](pool, width)
    return Mosaics(*parts)


def are_placed(pool: PatchPool) -> bool:
    """Return True if every patch has a location in a picture that can be assembled."""
    locations = pool.place
    located = (
        bool(pool.pictures) and bool((locations[:, 2:4] > 0).all()) and bool((locations >= 0).all())
    )
    with_whole = np.isin(pool.picture, list(pool.wholes)) & (locations[:, 4:] > 0).all(1)
    is_small = (locations[:, :2] + locations[:, 2:4] <= MOST_SIDE).all(1)
    return located and bool((with_whole | is_small).all())


def _placed(pool: PatchPool, width: int) -> tuple[Any, ...]:
    files, boxes = [], np.zeros((len(pool), 4))
    for number in range(len(pool.pictures)):
        rows = np.flatnonzero(pool.picture == number)
        if not len(rows):
            files.append(jpeg(np.full((1, 1, 3), BLANK, dtype=np.uint8)))
            continue
        corner = pool.place[rows, :2] + pool.place[rows, 2:4]
        if number in pool.wholes:
            small, _ = _reduced(pixels(pool.wholes[number]), width)
            scale = np.array(small.shape[1::-1]) / np.maximum(pool.place[rows[0], 4:], 1)
        else:
            small, reduced = _reduced(_assembled(pool, rows), width)
            scale = np.array([reduced, reduced])
        files.append(jpeg(small, QUALITY))
        boxes[rows] = np.column_stack([pool.place[rows, :2] * scale, corner * scale])
    return files, pool.picture, boxes


def _assembled(pool: PatchPool, rows: Int[np.ndarray, " k"]) -> UInt8[np.ndarray, "h w 3"]:
    """Picture as far as its patches cover it."""
    w, h = (pool.place[rows, :2] + pool.place[rows, 2:4]).max(0)
    canvas, uncovered = np.full((h, w, 3), BLANK, dtype=np.uint8), np.ones((h, w), dtype=bool)
    for row in rows:
        left, top, width, height = (int(v) for v in pool.place[row, :4])
        box = slice(top, top + height), slice(left, left + width)
        if uncovered[box].any():
            canvas[box], uncovered[box] = pixels(pool.images[row], (width, height)), False
    return canvas


def _single(pool: PatchPool, width: int) -> tuple[Any, ...]:
    """Each patch as a picture of its own."""
    files, boxes = [], np.zeros((len(pool), 4))
    for row, content in enumerate(pool.images):
        small, _ = _reduced(pixels(content), width)
        files.append(jpeg(small, QUALITY))
        boxes[row, 2:] = small.shape[1], small.shape[0]
    return files, np.arange(len(pool)), boxes


def _reduced(
    image: UInt8[np.ndarray, "h w 3"], width: int
) -> tuple[UInt8[np.ndarray, "a b 3"], float]:
    h, w = image.shape[:2]
    if w <= width:
        return image, 1.0
    size = (width, max(1, round(h * width / w)))
    small = Image.fromarray(image).resize(size, Image.Resampling.BOX)
    return np.asarray(small), width / w
