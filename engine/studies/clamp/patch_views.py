"""Several patches at once for a person's desk: enlarged, and each in its picture."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from scant.errors import BadInput
from scant.studies.clamp.pictures import Mosaics
from scant.studies.clamp.table import PatchPool

MOST = 12  # of one answer
SIDE = 299  # pixels of a patch as it is shown
WIDE, HIGH = 320, 240  # pixels that a picture beside it has room in


def patches(pool: PatchPool, shown: Mosaics, rows: list[int]) -> dict[str, np.ndarray]:
    """Patches, their pictures, their places there; or their features.

    Args:
        pool: The session's.
        shown: Its pictures.
        rows: Of the pool.

    Returns:
        `image` "k h w 3", `thumb` "k a b 3" and `box` "k 4": left, top, width and height as shares
        of the picture; all of size 0 where there are no images, thumbs where patches are pictures
        of their own. `x` "k d": the table's features where there are no images.

    Raises:
        BadInput: Too many rows.
    """
    if len(rows) > MOST:
        raise BadInput(f"rows: got {len(rows)}; ask for at most {MOST} patches at once.")
    k = len(rows)
    x = pool.x[rows] if not shown.files else np.empty((k, 0))
    answer: dict[str, np.ndarray] = {
        "image": np.empty((k, 0, 0, 3), np.uint8),
        "thumb": np.empty((k, 0, 0, 3), np.uint8),
        "box": np.zeros((k, 4)),
        "x": x,
    }
    if not shown.files:
        return answer
    result: dict[int, UInt8[np.ndarray, "h w 3"]] = {}
    for number in {int(shown.picture[row]) for row in rows}:
        result[number] = shown.whole(number)
    wholes = [result[int(shown.picture[row])] for row in rows]
    boxes = shown.boxes[rows]
    answer["image"] = np.stack([_cut(whole, box) for whole, box in zip(wholes, boxes)])
    if pool.pictures:
        sizes = np.array([[w.shape[1], w.shape[0]] * 2 for w in wholes], float)
        corner = boxes / sizes
        answer["box"] = np.hstack([corner[:, :2], corner[:, 2:] - corner[:, :2]])
        scale = min(WIDE / sizes[:, 0].max(), HIGH / sizes[:, 1].max(), 1.0)
        size = (max(1, round(sizes[0, 0] * scale)), max(1, round(sizes[0, 1] * scale)))
        answer["thumb"] = np.stack([_sized(whole, size) for whole in wholes])
    return answer


def _cut(
    whole: UInt8[np.ndarray, "h w 3"], box: Float[np.ndarray, " 4"]
) -> UInt8[np.ndarray, "s s 3"]:
    left, top, right, bottom = np.round(box).astype(int)
    return _sized(whole[top:bottom, left:right], (SIDE, SIDE))


def _sized(image: UInt8[np.ndarray, "h w 3"], size: tuple[int, int]) -> UInt8[np.ndarray, "a b 3"]:
    made = Image.fromarray(np.ascontiguousarray(image)).resize(size, Image.Resampling.BICUBIC)
    return np.asarray(made)
