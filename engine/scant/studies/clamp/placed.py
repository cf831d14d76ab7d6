"""Patches that a person places anywhere in a picture, beside those in the rows of the pool.

A placed patch has the size of the other patches of its picture, and a number that encodes its
location, so that every worker and every window can read the location from the number alone:

    number = n + (picture * POSITIONS + iy) * POSITIONS + ix

with n rows in the pool, and left and top edge at `low + step * (ix, iy)` (see `Positions`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from PIL import Image

from scant.errors import BadInput
from scant.tables.images.pixels import pixels

POSITIONS = 128  # per axis: every 8 pixels for patches of 299 in a picture of 1280
CENTER_TOLERANCE = 1 / 16  # of a patch's size: a point so close to its center selects it
BLANK = 128  # gray where no patch of the table lies


class Positions(NamedTuple):
    """Positions of patches that can be placed in a picture: x and y, in pixels.

    Attributes:
        low: Smallest left and top edge.
        step: Distance of neighboring positions.
        last: Index of the last position, counted from 0.
        size: Width and height of a patch.
    """

    low: Int[np.ndarray, " 2"]
    step: Int[np.ndarray, " 2"]
    last: Int[np.ndarray, " 2"]
    size: Int[np.ndarray, " 2"]


@dataclass(frozen=True)
class PlacedPatches:
    """Numbers, pictures and boxes of the patches of a pool, placed ones included.

    Attributes:
        picture: Picture of each row, counted from 0.
        boxes: Left, top, width and height of each row in its picture, in pixels.
        offered: Whether patches can be placed at all.
    """

    picture: Int[np.ndarray, " n"]
    boxes: Int[np.ndarray, "n p"]
    offered: bool
    _positions: dict[int, Positions | None] = field(default_factory=dict, init=False)

    @property
    def last(self) -> int:
        """The largest number that a patch may have."""
        pictures = int(self.picture.max(initial=-1)) + 1
        return len(self.picture) - 1 + self.offered * pictures * POSITIONS**2

    def __contains__(self, row: int) -> bool:
        try:
            self.box(row)
        except BadInput:
            return False
        return True

    def picture_of(self, row: int) -> int:
        """The picture of a row or placed patch."""
        n = len(self.picture)
        return int(self.picture[row]) if row < n else (row - n) // POSITIONS**2

    def box(self, row: int) -> Int[np.ndarray, " 4"]:
        """Left, top, width and height of a row or placed patch.

        Raises:
            BadInput: There is no such patch.
        """
        n = len(self.picture)
        if 0 <= row < n:
            return self.boxes[row, :4]
        positions = self.positions(self.picture_of(row)) if row >= n else None
        at = np.array([(row - n) % POSITIONS, (row - n) // POSITIONS % POSITIONS])
        if positions is None or (at > positions.last).any():
            raise BadInput(f"There is no patch {row} in this pool.")
        return np.concatenate([positions.low + at * positions.step, positions.size])

    def positions(self, picture: int) -> Positions | None:
        """Positions at which patches can be placed in a picture.

        None unless its rows are a grid without gaps, of more than one patch: images then cover
        every location between its edges.
        """
        if picture not in self._positions:
            self._positions[picture] = self._positions_in(picture)
        return self._positions[picture]

    def _positions_in(self, picture: int) -> Positions | None:
        boxes = self.boxes[self.picture == picture, :4]
        if not self.offered or len(boxes) < 2 or (boxes[:, 2:] <= 0).any():
            return None
        edges = [np.unique(boxes[:, axis]) for axis in (0, 1)]
        corners = len(np.unique(boxes[:, :2], axis=0))
        full = len(boxes) == corners == len(edges[0]) * len(edges[1])
        largest = boxes[:, 2:].max(0)
        dense = all((np.diff(e) <= side).all() for e, side in zip(edges, largest))
        if not full or not dense or (np.ptp(boxes[:, 2:], axis=0) > 1).any():  # 1: rounding
            return None
        low, size = boxes[:, :2].min(0), boxes[0, 2:]
        extent = (boxes[:, :2] + boxes[:, 2:]).max(0) - size - low
        step = np.maximum(1, -(-extent // (POSITIONS - 1)))
        return Positions(low, step, extent // step, size)

    def patch_at(self, picture: int, center: Float[np.ndarray, " 2"]) -> int | None:
        """The patch around a point of a picture, moved inside its border.

        Args:
            picture: The picture.
            center: The point, in pixels.

        Returns:
            The row with this center, up to `CENTER_TOLERANCE`, or else the placed patch; None where
            no patch can be placed.
        """
        positions = self.positions(picture)
        if positions is None:
            return None
        low, step, last, size = positions
        at = np.clip(np.round((center - size / 2 - low) / step), 0, last).astype(np.int64)
        rows = np.flatnonzero(self.picture == picture)
        # Box and center differ by the same offset, up to rounding of sizes.
        distance = (np.abs(self.boxes[rows, :2] - (low + at * step)) / size).max(1)
        if distance.min() <= CENTER_TOLERANCE:
            return int(rows[distance.argmin()])
        first = len(self.picture) + picture * POSITIONS**2
        return first + int(at[1]) * POSITIONS + int(at[0])

    def patch_around(self, row: int, offset: Float[np.ndarray, " 2"]) -> int:
        """Patch around a point given relative to the center of a row or placed patch.

        Args:
            row: Row or placed patch.
            offset: Offset of the point from its center, as shares of its width and height.

        Returns:
            `row` itself for a point near its center, or where no patch can be placed.

        Raises:
            BadInput: There is no patch `row`.
        """
        box = self.box(row)
        if np.abs(offset).max() <= CENTER_TOLERANCE:
            return row
        patch = self.patch_at(self.picture_of(row), box[:2] + (0.5 + offset) * box[2:])
        return row if patch is None else patch


def image_of(
    images: Sequence[bytes], boxes: Int[np.ndarray, "k 4"], box: Int[np.ndarray, " 4"]
) -> bytes:
    """The image of a placed patch, as a PNG file with as many pixels as the first patch has.

    Args:
        images: Image files of the patches of its picture.
        boxes: Left, top, width and height of each.
        box: Left, top, width and height of the placed patch.
    """
    size = pixels(images[0]).shape[1::-1]
    canvas = Image.new("RGB", size, (BLANK,) * 3)
    offsets = np.round((boxes[:, :2] - box[:2]) * (np.array(size) / boxes[0, 2:4])).astype(int)
    for i in np.argsort(-np.abs(offsets).max(1), kind="stable"):  # the nearest on top
        x, y = (int(v) for v in offsets[i])
        if abs(x) < size[0] and abs(y) < size[1]:
            canvas.paste(Image.fromarray(pixels(images[i], size)), (x, y))
    file = io.BytesIO()
    canvas.save(file, "PNG")  # no loss beyond that of the patches
    return file.getvalue()
