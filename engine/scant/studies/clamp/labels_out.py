"""Labels of a session as annotations of pictures, and annotations as labels of its rows.

In the store a label is of a row of the pool. Here it gets the picture's name, its box in pixels of
the picture as it was given, and that picture's size, so that other programs can read it
(`scant.tables.annotations.formats.write`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from scant.studies.clamp.placed import PlacedPatches
from scant.tables.annotations.annotation import Annotation, Box
from scant.tables.annotations.matching import OVERLAP, Names, overlaps


@runtime_checkable
class Given(Protocol):
    """What is known of a label, as `scant.store.records.Label` has it."""

    @property
    def item(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def labeler(self) -> str: ...
    @property
    def created(self) -> float: ...
    @property
    def unsure(self) -> bool: ...


@dataclass(frozen=True)
class Places:
    """Where the rows of a pool, and the patches placed by persons, lie in their pictures.

    Attributes:
        pictures: Names.
        picture: Of each row, index into them.
        place: Left, top, width and height of each row, and its picture's width and height: pixels
            of the picture as it was given; 0 where not known.
        offered: Whether patches can be placed in the pictures.
    """

    pictures: Sequence[str]
    picture: Int[np.ndarray, " n"]
    place: Int[np.ndarray, "n 6"]
    offered: bool = False

    @classmethod
    def of(cls, metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Places:
        """Those of a run.

        Args:
            metadata: Of the run; `pictures` are the names, `placed` is `offered`.
            arrays: Of its report: `picture`, and `place` where there is one (else places are not
                known); `row` names rows of a table that names no pictures.
        """
        picture = np.asarray(arrays["picture"], dtype=np.int64)
        pictures = [str(name) for name in metadata.get("pictures", ())]
        if not pictures:
            rows = np.asarray(arrays.get("row", np.arange(len(picture))), dtype=np.int64)
            pictures, picture = [f"row {r}" for r in rows], np.arange(len(rows))
        place = np.zeros((len(picture), 6), dtype=np.int64)
        if "place" in arrays:
            known = np.asarray(arrays["place"], dtype=np.int64)
            place[:, : known.shape[1]] = known
        return cls(pictures, picture, place, bool(metadata.get("placed")))

    @cached_property
    def placed(self) -> PlacedPatches:
        """Numbers and boxes of the patches."""
        return PlacedPatches(self.picture, self.place, self.offered)

    def name(self, row: int) -> str:
        """The picture of a row or placed patch."""
        return self.pictures[self.placed.picture_of(row)]

    def size(self, row: int) -> tuple[int, int] | None:
        """Width and height of the picture of a row or placed patch; None where not known."""
        if row >= len(self.picture):
            row = int(np.flatnonzero(self.picture == self.placed.picture_of(row))[0])
        width, height = (int(v) for v in self.place[row, 4:])
        return (width, height) if width > 0 and height > 0 else None

    def box(self, row: int) -> Box | None:
        """The box of a row or placed patch in its picture.

        None where it is the whole picture or not known.

        Raises:
            BadInput: There is no such patch.
        """
        left, top, width, height = (float(v) for v in self.placed.box(row))
        whole = (left, top) == (0, 0) and (width, height) == self.size(row)
        return None if width <= 0 or whole else (left, top, width, height)


def annotations_of(places: Places, labels: Iterable[Given]) -> list[Annotation]:
    """Labels of rows as annotations, in the order given.

    Args:
        places: Of the rows.
        labels: Those that are to be written: all that were ever given, those that stand, or those
            of one person. Labels that were taken back ("") and patches that are not there are
            left out. An unsure one names no class.
    """
    made = []
    for one in labels:
        if not one.label or one.item not in places.placed:
            continue
        made.append(
            Annotation(
                places.name(one.item),
                "" if one.unsure else one.label,
                places.box(one.item),
                places.size(one.item),
                one.labeler,
                round(one.created, 6),  # as far as every format keeps it
                one.unsure,
            )
        )
    return made


def matches(places: Places, annotations: Iterable[Annotation]) -> list[tuple[int, Annotation]]:
    """Annotations with the row that each is of, in the order given; those of none are left out.

    A row is found by its picture's name and the box that overlaps most, by half at least
    (intersection over union). A label of a whole picture is of the row that is the whole picture.
    A box of the size of the picture's patches may also be that of a placed patch.
    """
    names = Names(places.pictures)
    rows: dict[int, Int[np.ndarray, " k"]] = {}
    for number in np.unique(places.picture):
        rows[int(number)] = np.flatnonzero(places.picture == number)
    made = []
    for one in annotations:
        number = names.find(one.picture)
        if number is None or number not in rows:
            continue
        row = _row(places, rows[number], one)
        if row is not None:
            made.append((row, one))
    return made


def matched(places: Places, annotations: Iterable[Annotation]) -> dict[int, str]:
    """Labels by row, for a session into which they are imported; the last of a row counts.

    Boxes without a label, and labels given in doubt, are left out (see `matches`).
    """
    return {row: a.label for row, a in matches(places, annotations) if a.label and not a.unsure}


def _row(places: Places, rows: Int[np.ndarray, " k"], one: Annotation) -> int | None:
    size = places.size(int(rows[0]))
    if size is not None:
        one = one.on(size)
    if one.box is None:
        whole = [int(r) for r in rows if places.box(int(r)) is None]
        return whole[0] if len(whole) == 1 else None
    box, candidates = np.array(one.box, dtype=float), rows.tolist()
    picture = int(places.picture[rows[0]])
    positions = places.placed.positions(picture)
    if positions is not None and (np.abs(box[2:] - positions.size) <= 1).all():  # 1: of rounding
        candidates.append(places.placed.patch_at(picture, box[:2] + box[2:] / 2))
    known = np.array([places.placed.box(row) for row in candidates], dtype=float)
    shares = overlaps(box[None], known)[0]
    best = int(shares.argmax())
    return candidates[best] if shares[best] >= OVERLAP else None
