"""Labels of a session as annotations of pictures, and annotations as labels of its rows.

The store has labels by row of the pool. An annotation has the picture's name, its box in pixels of
the original picture, and that picture's size, so that other programs can read it
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
    """Fields of a label, as in `scant.store.records.Label`."""

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
    """Locations of a pool's rows, and of patches placed by persons, in their pictures.

    Attributes:
        pictures: Names of the pictures.
        picture: Picture of each row, index into `pictures`.
        place: Left, top, width and height of each row, and its picture's width and height, in
            pixels of the original picture; 0 where unknown.
        offered: Whether patches can be placed in the pictures.
    """

    pictures: Sequence[str]
    picture: Int[np.ndarray, " n"]
    place: Int[np.ndarray, "n 6"]
    offered: bool = False

    @classmethod
    def of(cls, metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Places:
        """Locations in a run.

        Args:
            metadata: Metadata of the run; `pictures` are the names, `placed` is `offered`.
            arrays: Arrays of its report: `picture`, and `place` if locations are known; `row` names
                rows of a table that names no pictures.
        """
        picture = np.asarray(arrays["picture"], dtype=np.int64)
        pictures = [str(name) for name in metadata.get("pictures", ())]
        if not pictures:
            rows = np.asarray(arrays.get("row", np.arange(len(picture))), dtype=np.int64)
            pictures, picture = [f"row {r}" for r in rows], np.arange(len(rows))
        locations = np.zeros((len(picture), 6), dtype=np.int64)
        if "place" in arrays:
            stored = np.asarray(arrays["place"], dtype=np.int64)
            locations[:, : stored.shape[1]] = stored
        return cls(pictures, picture, locations, bool(metadata.get("placed")))

    @cached_property
    def placed(self) -> PlacedPatches:
        """Numbers and boxes of the patches."""
        return PlacedPatches(self.picture, self.place, self.offered)

    def name(self, row: int) -> str:
        """The picture of a row or placed patch."""
        return self.pictures[self.placed.picture_of(row)]

    def size(self, row: int) -> tuple[int, int] | None:
        """Width and height of the picture of a row or placed patch; None if unknown."""
        if row >= len(self.picture):
            row = int(np.flatnonzero(self.picture == self.placed.picture_of(row))[0])
        width, height = (int(v) for v in self.place[row, 4:])
        return (width, height) if width > 0 and height > 0 else None

    def box(self, row: int) -> Box | None:
        """The box of a row or placed patch in its picture.

        None if it is the whole picture or unknown.

        Raises:
            BadInput: There is no such patch.
        """
        left, top, width, height = (float(v) for v in self.placed.box(row))
        is_whole = (left, top) == (0, 0) and (width, height) == self.size(row)
        return None if width <= 0 or is_whole else (left, top, width, height)


def annotations_of(locations: Places, labels: Iterable[Given]) -> list[Annotation]:
    """Labels of rows as annotations, in the order given.

    Args:
        locations: Locations of the rows.
        labels: Labels to write: all that were ever given, the valid ones, or those of one person.
            Withdrawn labels ("") and absent patches are left out. Unsure labels name no class.
    """
    result = []
    for label in labels:
        if not label.label or label.item not in locations.placed:
            continue
        result.append(
            Annotation(
                locations.name(label.item),
                "" if label.unsure else label.label,
                locations.box(label.item),
                locations.size(label.item),
                label.labeler,
                round(label.created, 6),  # precision of all formats
                label.unsure,
            )
        )
    return result


def matches(locations: Places, annotations: Iterable[Annotation]) -> list[tuple[int, Annotation]]:
    """Annotations with their rows, in the order given; those without a row are left out.

    A row is found by its picture's name and the box that overlaps most, by half at least
    (intersection over union). A label of a whole picture is for the row that is the whole picture.
    A box of the size of the picture's patches may also be that of a placed patch.
    """
    names = Names(locations.pictures)
    rows: dict[int, Int[np.ndarray, " k"]] = {}
    for number in np.unique(locations.picture):
        rows[int(number)] = np.flatnonzero(locations.picture == number)
    result = []
    for annotation in annotations:
        number = names.find(annotation.picture)
        if number is None or number not in rows:
            continue
        row = _row(locations, rows[number], annotation)
        if row is not None:
            result.append((row, annotation))
    return result


def matched(locations: Places, annotations: Iterable[Annotation]) -> dict[int, str]:
    """Labels by row, for import into a session; the last of a row counts.

    Boxes without a label, and unsure labels, are left out (see `matches`).
    """
    return {row: a.label for row, a in matches(locations, annotations) if a.label and not a.unsure}


def _row(locations: Places, rows: Int[np.ndarray, " k"], annotation: Annotation) -> int | None:
    size = locations.size(int(rows[0]))
    if size is not None:
        annotation = annotation.on(size)
    if annotation.box is None:
        whole = [int(r) for r in rows if locations.box(int(r)) is None]
        return whole[0] if len(whole) == 1 else None
    box, candidates = np.array(annotation.box, dtype=float), rows.tolist()
    picture = int(locations.picture[rows[0]])
    positions = locations.placed.positions(picture)
    if positions is not None and (np.abs(box[2:] - positions.size) <= 1).all():  # 1: rounding
        candidates.append(locations.placed.patch_at(picture, box[:2] + box[2:] / 2))
    boxes = np.array([locations.placed.box(row) for row in candidates], dtype=float)
    shares = overlaps(box[None], boxes)[0]
    best = int(shares.argmax())
    return candidates[best] if shares[best] >= OVERLAP else None
