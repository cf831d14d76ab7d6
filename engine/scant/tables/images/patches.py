"""Patches of a photograph: squares of a grid, annotated boxes, or the whole picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from PIL import Image

from scant.tables.annotations.annotation import Annotation, Box
from scant.tables.annotations.matching import overlaps
from scant.tables.cells import EMPTY
from scant.tables.images.cutting import SIDE, Cut, cut_photograph, grid, table_of
from scant.tables.images.decoding import Decoded
from scant.tables.images.pixels import jpeg

WHOLE = 448  # maximum longer side in pixels of pictures and boxes that are not cut
EMPTY_WORDS = frozenset(EMPTY.to_pylist())
MIN_OVERLAP = 0.9  # minimum intersection over union of boxes that are equal up to rounding
SHOWN = 960  # maximum longer side in pixels of the displayed picture
SHOWN_QUALITY = 60  # JPEG quality of the displayed picture


@dataclass(frozen=True)
class Patches:
    """Patches of one photograph.

    Attributes:
        frame: Table of `table_of`.
        own: Number of annotated boxes that are not squares of the grid.
        differ: Number of patches with conflicting labels.
        unsure: Number of uncertain labels, which are ignored.
        outside: Number of boxes outside the photograph, which are ignored.
        whole: True for a picture that is one patch, as it is no larger than a patch.
    """

    frame: pd.DataFrame
    own: int = 0
    differ: int = 0
    unsure: int = 0
    outside: int = 0
    whole: bool = False


def as_it_is(made: Decoded, picture: str, box: Sequence[float] | None = None) -> Cut:
    """Return a photograph or a box of it as one patch, resized if it is large."""
    width, height = made.size
    left, top, right, bottom = 0, 0, width, height
    if box is not None:
        left, top = max(0, round(box[0])), max(0, round(box[1]))
        right = min(width, max(left + 1, round(box[0] + box[2])))
        bottom = min(height, max(top + 1, round(box[1] + box[3])))
        left, top = min(left, right - 1), min(top, bottom - 1)
    sx, sy = made.image.width / width, made.image.height / height
    crop = made.image.crop((
        int(left * sx), int(top * sy), max(int(left * sx) + 1, round(right * sx)),
        max(int(top * sy) + 1, round(bottom * sy)),
    )).convert("RGB")  # fmt: skip
    crop.thumbnail((WHOLE, WHOLE), Image.Resampling.BOX)
    return Cut(picture, left, top, right - left, np.asarray(crop), bottom - top, (width, height))


def unlabeled(made: Decoded, picture: str) -> Patches:
    """Return the grid of a photograph without labels; a picture no larger than a patch is one."""
    if max(made.size) <= SIDE:  # enlarged to a photograph, 21 patches would show the same
        return replace(single(made, picture, None), whole=True)
    return Patches(table_of(cut_photograph(made.image, picture, made.size), None, shown(made)))


def single(made: Decoded, picture: str, label: str | None, box: Box | None = None) -> Patches:
    """Return a picture as one patch, which may be a `box` cut from `picture`."""
    patch = as_it_is(made, picture)
    if box is not None:
        left, top, width, height = (round(v) for v in box)
        patch = replace(
            patch, left=left, top=top, size=max(1, width), height=max(1, height), of=(0, 0)
        )
    is_large = max(made.size) > WHOLE
    return Patches(table_of([patch], [class_of(label)], shown(made) if is_large else None))


def labeled(made: Decoded, picture: str, annotations: Sequence[Annotation]) -> Patches:
    """Return the annotated patches of a photograph with their labels.

    If boxes are squares of the grid, all squares are patches, some without a label. Other boxes are
    additional patches, and a label without a box applies to the whole picture as a patch. The last
    label of a patch is used; uncertain labels are ignored.
    """
    width, height = made.size
    placed = [_upright(annotation, made).on(made.size) for annotation in annotations]
    boxes = np.array(
        [annotation.box or (0, 0, width, height) for annotation in placed], dtype=float
    ).reshape(-1, 4)
    squares = grid(made.size).astype(float)
    has_box = np.array([annotation.box is not None for annotation in placed], dtype=bool)
    on_grid = bool(has_box.any()) and overlaps(squares, boxes[has_box]).max() >= MIN_OVERLAP
    cuts = cut_photograph(made.image, picture, made.size) if on_grid else []
    patch_boxes = squares if on_grid else np.empty((0, 4))
    labels_of: list[dict[str, str]] = [{} for _ in cuts]  # labels of each patch by labeler
    own = unsure = outside = 0
    for annotation, box in zip(placed, boxes):
        if (box[:2] >= made.size).any() or (box[:2] + box[2:] <= 0).any():
            outside += 1
            continue
        ious = overlaps(patch_boxes, box[None])[:, 0]
        index = int(ious.argmax()) if ious.max(initial=0.0) >= MIN_OVERLAP else len(cuts)
        if index == len(cuts):
            own += 1
            cuts.append(as_it_is(made, picture, annotation.box))
            patch_boxes = np.vstack([patch_boxes, box])
            labels_of.append({})
        unsure += annotation.unsure
        if annotation.label and not annotation.unsure:
            labels_of[index].pop(annotation.labeler, None)
            labels_of[index][annotation.labeler] = annotation.label
    if not cuts:
        return replace(unlabeled(made, picture), outside=outside)
    labels = [class_of(next(reversed(g.values()))) if g else None for g in labels_of]
    differ = sum(len(set(g.values())) > 1 for g in labels_of)
    return Patches(table_of(cuts, labels, shown(made)), own, differ, unsure, outside)


def class_of(label: str | None) -> str | None:
    """Prefix a class such as "none", which would be read as an empty cell."""
    return f"class {label}" if label and label.lower() in EMPTY_WORDS else label or None


def _upright(one: Annotation, made: Decoded) -> Annotation:
    """Rotate a box on the stored image to the upright photograph, by its EXIF orientation."""
    wide, high = made.size
    if one.box is None or wide == high or one.size != (high, wide) or made.turned not in (6, 8):
        return one
    left, top, width, height = one.box
    if made.turned == 6:  # rotated clockwise: the lower edge is on the left
        box = (wide - top - height, left, height, width)
    else:
        box = (top, high - left - width, height, width)
    return replace(one, box=box, size=made.size)


def shown(made: Decoded) -> bytes:
    """Encode a resized photograph as a JPEG file."""
    small = made.image.convert("RGB")
    small.thumbnail((SHOWN, SHOWN), Image.Resampling.BOX)
    return jpeg(np.asarray(small), SHOWN_QUALITY)
