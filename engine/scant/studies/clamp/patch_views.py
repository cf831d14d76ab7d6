"""Several patches for a person's labeling page: enlarged, and each in its picture."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from scant.errors import BadInput
from scant.studies.clamp.placed import BLANK
from scant.studies.clamp.prepared import Prepared

MOST = 12  # patches per query
SIDE = 299  # pixels of a displayed patch
SQUARE = 0.03  # maximum relative difference of a square's sides
WIDE, HIGH = 320, 240  # pixels, maximum size of the picture beside it


def patches(data: Prepared, rows: list[int]) -> dict[str, np.ndarray]:
    """Patches, their pictures, their boxes there; or their features.

    Args:
        data: The pool and its pictures.
        rows: Rows of the pool, and placed patches.

    Returns:
        `image` "k h w 3", `thumb` "k a b 3" and `box` "k 4": left, top, width and height as shares
        of the thumb; all of size 0 where there are no images, thumbs where patches are whole
        pictures. Other shapes are padded with gray. `x` "k d": the table's features where there
        are no images.

    Raises:
        BadInput: Too many rows.
    """
    if len(rows) > MOST:
        raise BadInput(f"rows: got {len(rows)}; ask for at most {MOST} patches at once.")
    k, pool, mosaics = len(rows), data.rows.pool, data.shown
    x = pool.x[rows] if not mosaics.files else np.empty((k, 0))
    answer: dict[str, np.ndarray] = {
        "image": np.empty((k, 0, 0, 3), np.uint8),
        "thumb": np.empty((k, 0, 0, 3), np.uint8),
        "box": np.zeros((k, 4)),
        "x": x,
    }
    if not mosaics.files:
        return answer
    locations = [data.mosaic_box(row) for row in rows]
    result = {number: mosaics.whole(number) for number in {number for number, _ in locations}}
    wholes = [result[number] for number, _ in locations]
    boxes = np.array([box for _, box in locations]).reshape(-1, 4)
    answer["image"] = np.stack([_cut(whole, box) for whole, box in zip(wholes, boxes)])
    if pool.pictures:
        sizes = np.array([[w.shape[1], w.shape[0]] for w in wholes], float)
        scale = np.minimum(1.0, np.min([WIDE, HIGH] / sizes, axis=1))
        small = np.maximum(1, np.round(sizes * scale[:, None])).astype(int)
        frame = small.max(0)
        thumbs = [_sized(whole, (int(w), int(h))) for whole, (w, h) in zip(wholes, small)]
        answer["thumb"] = np.stack([_padded(thumb, frame) for thumb in thumbs])
        corner = (boxes * np.tile(small / sizes, 2) + np.tile((frame - small) // 2, 2)) / np.tile(
            frame, 2
        )
        answer["box"] = np.hstack([corner[:, :2], corner[:, 2:] - corner[:, :2]])
    return answer


def _cut(
    whole: UInt8[np.ndarray, "h w 3"], box: Float[np.ndarray, " 4"]
) -> UInt8[np.ndarray, "s s 3"]:
    """A patch in its own shape, on a square."""
    left, top, right, bottom = np.round(box).astype(int)
    part = whole[top : max(bottom, top + 1), left : max(right, left + 1)]
    h, w = part.shape[:2]
    if abs(h - w) <= max(h, w) * SQUARE:  # up to rounding
        return _sized(part, (SIDE, SIDE))
    scale = SIDE / max(h, w)
    patch = _sized(part, (max(1, round(w * scale)), max(1, round(h * scale))))
    return _padded(patch, np.array([SIDE, SIDE]))


def _padded(
    image: UInt8[np.ndarray, "h w 3"], size: Int[np.ndarray, " 2"]
) -> UInt8[np.ndarray, "a b 3"]:
    """An image in the middle of a gray one of this width and height."""
    canvas = np.full((int(size[1]), int(size[0]), 3), BLANK, dtype=np.uint8)
    left, top = (int(v) // 2 for v in size - image.shape[1::-1])
    canvas[top : top + image.shape[0], left : left + image.shape[1]] = image
    return canvas


def _sized(image: UInt8[np.ndarray, "h w 3"], size: tuple[int, int]) -> UInt8[np.ndarray, "a b 3"]:
    made = Image.fromarray(np.ascontiguousarray(image)).resize(size, Image.Resampling.BICUBIC)
    return np.asarray(made)
