"""The patches of one photograph: squares on a grid, boxes that somebody drew, or all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from PIL import Image

from scant.tables.annotations.annotation import Annotation, Box
from scant.tables.annotations.matching import overlaps
from scant.tables.cells import EMPTY
from scant.tables.images.cutting import Cut, cut_photograph, grid, table_of
from scant.tables.images.decoding import Decoded
from scant.tables.images.pixels import jpeg

WHOLE = 448  # pixels of the longer side of what is not cut, and from which a photograph is cut
EMPTY_WORDS = frozenset(EMPTY.to_pylist())
ALIKE = 0.9  # intersection over union of boxes that are the same but for rounding
SHOWN = 960  # pixels of the longer side of the picture that is kept to be looked at
SHOWN_QUALITY = 60  # of its JPEG


@dataclass(frozen=True)
class Patches:
    """The rows of one photograph.

    Attributes:
        frame: As `table_of` makes it.
        own: How many are boxes that somebody drew and no squares of the grid.
        differ: How many have several labels that differ.
        unsure: How many labels were given in doubt, and left out.
        outside: How many boxes do not lie in the photograph, and were passed over.
    """

    frame: pd.DataFrame
    own: int = 0
    differ: int = 0
    unsure: int = 0
    outside: int = 0


def as_it_is(made: Decoded, picture: str, box: Sequence[float] | None = None) -> Cut:
    """A photograph, or a box of it, in its own shape; reduced where it is large."""
    wide, high = made.size
    left, top, right, bottom = 0, 0, wide, high
    if box is not None:
        left, top = max(0, round(box[0])), max(0, round(box[1]))
        right = min(wide, max(left + 1, round(box[0] + box[2])))
        bottom = min(high, max(top + 1, round(box[1] + box[3])))
        left, top = min(left, right - 1), min(top, bottom - 1)
    across, down = made.image.width / wide, made.image.height / high
    part = made.image.crop((
        int(left * across), int(top * down), max(int(left * across) + 1, round(right * across)),
        max(int(top * down) + 1, round(bottom * down)),
    )).convert("RGB")  # fmt: skip
    part.thumbnail((WHOLE, WHOLE), Image.Resampling.BOX)
    return Cut(picture, left, top, right - left, np.asarray(part), bottom - top, (wide, high))


def unlabeled(made: Decoded, picture: str) -> Patches:
    """The grid of a photograph that nobody has labeled."""
    return Patches(table_of(cut_photograph(made.image, picture, made.size), None, shown(made)))


def single(made: Decoded, picture: str, label: str | None, box: Box | None = None) -> Patches:
    """A picture that is a patch by itself; where there is a `box`, it was cut from `picture`."""
    one = as_it_is(made, picture)
    if box is not None:
        left, top, width, height = (round(v) for v in box)
        one = replace(one, left=left, top=top, size=max(1, width), height=max(1, height), of=(0, 0))
    large = max(made.size) > WHOLE
    return Patches(table_of([one], [class_of(label)], shown(made) if large else None))


def labeled(made: Decoded, picture: str, annotations: Sequence[Annotation]) -> Patches:
    """What was annotated in a photograph, with its labels.

    Boxes that are squares of the grid label these, and the grid's other squares wait for labels;
    other boxes are patches of their own. A label of the whole picture is of a patch that is all of
    it. Of several labels of one patch the last counts; one that was given in doubt does not.
    """
    wide, high = made.size
    placed = [_upright(one, made).on(made.size) for one in annotations]
    boxes = np.array([one.box or (0, 0, wide, high) for one in placed], dtype=float).reshape(-1, 4)
    squares = grid(made.size).astype(float)
    drawn = np.array([one.box is not None for one in placed], dtype=bool)
    on_grid = bool(drawn.any()) and overlaps(squares, boxes[drawn]).max() >= ALIKE
    cuts = cut_photograph(made.image, picture, made.size) if on_grid else []
    there = squares if on_grid else np.empty((0, 4))
    given: list[dict[str, str]] = [{} for _ in cuts]  # of each patch, by who gave it
    own = unsure = outside = 0
    for one, box in zip(placed, boxes):
        if (box[:2] >= made.size).any() or (box[:2] + box[2:] <= 0).any():
            outside += 1
            continue
        shares = overlaps(there, box[None])[:, 0]
        at = int(shares.argmax()) if shares.max(initial=0.0) >= ALIKE else len(cuts)
        if at == len(cuts):
            own += 1
            cuts.append(as_it_is(made, picture, one.box))
            there = np.vstack([there, box])
            given.append({})
        unsure += one.unsure
        if one.label and not one.unsure:
            given[at].pop(one.labeler, None)
            given[at][one.labeler] = one.label
    if not cuts:
        return replace(unlabeled(made, picture), outside=outside)
    labels = [class_of(next(reversed(g.values()))) if g else None for g in given]
    differ = sum(len(set(g.values())) > 1 for g in given)
    return Patches(table_of(cuts, labels, shown(made)), own, differ, unsure, outside)


def class_of(label: str | None) -> str | None:
    """A class as a table can hold it: a cell "none" would be read as empty."""
    return f"class {label}" if label and label.lower() in EMPTY_WORDS else label or None


def _upright(one: Annotation, made: Decoded) -> Annotation:
    """A box in a photograph as its file has it, where that lies on its side by its EXIF."""
    wide, high = made.size
    if one.box is None or wide == high or one.size != (high, wide) or made.turned not in (6, 8):
        return one
    left, top, width, height = one.box
    if made.turned == 6:  # turned to the right: the lower edge is on the left
        box = (wide - top - height, left, height, width)
    else:
        box = (top, high - left - width, height, width)
    return replace(one, box=box, size=made.size)


def shown(made: Decoded) -> bytes:
    """The photograph, reduced, as a JPEG file."""
    small = made.image.convert("RGB")
    small.thumbnail((SHOWN, SHOWN), Image.Resampling.BOX)
    return jpeg(np.asarray(small), SHOWN_QUALITY)
