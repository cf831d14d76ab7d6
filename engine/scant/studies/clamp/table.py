"""Pools of patches to label, as a table and as arrays.

A row is one patch: its `label` (two classes or more; most cells are empty), the `picture` that it
is part of, its location there (`left`, `top`, `size` and, if it is no square, `height`; pixels of
the original picture, whose size is `picture_width` and `picture_height`), its `image` (a
JPEG or PNG file in base64, so that a CSV file can hold it) and, or instead, any numeric features.
`whole` is the picture itself, reduced, in one of its rows.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from PIL import Image

from scant.errors import BadInput
from scant.studies.split import SPLIT
from scant.tables.as_finite import finite
from scant.tables.column_matching import listed
from scant.tables.images.cutting import SIDE
from scant.tables.schema import Column, RowNumbers, TableSchema

SIZE = (1280, 720)  # of a picture, pixels, as published
CLAMP, NO_CLAMP = "clamp", "no clamp"
SOUGHT = "of interest"  # name of an unnamed class of interest
UNKNOWN = -1  # label of an unlabeled row
PLACE = ("left", "top", "size", "height", "picture_width", "picture_height")
MOST_CLASSES = 12
MOST_PIXELS = 4_000_000  # of a patch
_POSITIVE = (CLAMP, "1", "yes", "true", "positive", "present")
_OPPOSITE = {"1": "0", "0": "1", "yes": "no", "no": "yes", CLAMP: NO_CLAMP, NO_CLAMP: CLAMP}

TABLE = TableSchema(
    columns=(
        Column(
            "label",
            "label",
            required=False,
            missing=True,
            target=True,
            doc="one of two classes or more, or empty where nobody has labeled the row yet",
            aliases=("class", "category", "y"),
            without="nobody has labeled a row yet; with 'you' as the expert, label some here",
        ),
        Column(
            "picture",
            "label",
            required=False,
            missing=True,
            doc="the picture that the patch was cut from; pictures are held out as a whole",
            aliases=("photo", "photograph", "file", "filename"),
        ),
        Column(
            "image",
            "text",
            required=False,
            missing=True,
            doc="the patch as a JPEG or PNG file in base64",
            aliases=("patch", "jpeg", "png"),
        ),
        Column(
            "whole",
            "text",
            required=False,
            missing=True,
            doc="the whole picture, reduced, as a JPEG or PNG file in base64, in one of its rows",
            guessed=False,
        ),
        SPLIT,
    ),
    features=True,
    images=True,
    turned=False,
    cut=True,
    minimum_rows=8,
)


@dataclass(frozen=True)
class PatchPool:
    """Rows to label, as arrays in the order of the table's rows.

    Attributes:
        classes: Names of two or more classes, the class of interest last.
        label: 0 ... k - 1; `UNKNOWN` where the table has none.
        pictures: Names of the pictures in order of first appearance; empty without any.
        picture: Index into `pictures`; each row is a picture if the table names none.
        place: Left, top, width and height of each patch in its picture, and the picture's width
            and height, in pixels; 0 where unknown. Runs of earlier versions have only left, top and
            width.
        images: The patches as files; empty without any.
        x: Numeric features; no columns without any.
        features: Names of the features.
        wholes: Reduced pictures as files, by index; only those in the table.
    """

    classes: list[str]
    label: Int[np.ndarray, " n"]
    pictures: list[str]
    picture: Int[np.ndarray, " n"]
    place: Int[np.ndarray, "n p"]
    images: list[bytes]
    x: Float[np.ndarray, "n d"]
    features: list[str]
    wholes: Mapping[int, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.label)

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        *,
        positive: str = "",
        named: Sequence[str] = (),
        classes: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        name: str = "the table",
        rows: RowNumbers | None = None,
    ) -> PatchPool:
        """Convert a table, such as `read_table(file, TABLE).frame`, to arrays.

        Args:
            frame: Columns as in `TABLE`.
            positive: The class of interest. "": a name such as "clamp" or "1", else the class with
                fewer labels; "of interest" in a table without labels.
            named: Names of the classes, the class of interest first, if the table's labels do not
                name all of them.
            classes: Classes of a model; other labels are `UNKNOWN`.
            features: The numeric columns to use. None: all that vary.
            name: Name of the table for messages.
            rows: Row numbers for messages; counted from 0 where None.

        Raises:
            BadInput: Too many classes, a cell that is no finite number or no image, neither
                features nor images.
        """
        at = np.arange(len(frame)) if rows is None else np.asarray(rows)
        labels = _text(frame, "label")
        class_names = _classes(labels, positive, name, named) if classes is None else list(classes)
        label = pd.Index(class_names, dtype=object).get_indexer(pd.Index(labels, dtype=object))
        picture, pictures = np.arange(len(frame)), list[str]()
        if "picture" in frame and len(frame):
            names = [text or f"row {at[i]}" for i, text in enumerate(_text(frame, "picture"))]
            picture, of_pictures = pd.factorize(np.array(names, dtype=object))
            pictures = of_pictures.tolist()
        locations = _locations(frame, picture, name, at)
        columns = _numeric(frame) if features is None else list(features)
        matrix = finite(frame, columns, name, at)
        varies = np.ones(len(columns), dtype=bool)
        if features is None and len(frame):
            varies = np.ptp(matrix, axis=0) > 0
        columns = [c for c, k in zip(columns, varies) if k]
        images = _images(frame, name, at)
        if not images and not columns:
            raise BadInput(
                f"{name} has neither images nor feature columns with numbers that differ; add some."
            )
        wholes = {
            int(picture[i]): content
            for i, content in enumerate(_files(frame, "whole", name, at, allow_empty=True))
            if content
        }
        return cls(
            class_names, label, pictures, picture, locations, images,
            matrix[:, varies], columns, wholes if pictures else {},
        )  # fmt: skip


def class_counts(
    frame: pd.DataFrame, positive: str, named: Sequence[str], name: str
) -> dict[str, int]:
    """Number of rows of each class, without reading images.

    Raises:
        BadInput: There are too many classes, or others than the named ones.
    """
    labels = _text(frame, "label")
    return {
        class_name: labels.count(class_name)
        for class_name in _classes(labels, positive, name, named)
    }


def _text(frame: pd.DataFrame, column: str) -> list[str]:
    """A column of text, "" where empty or absent."""
    if column not in frame:
        return [""] * len(frame)
    return ["" if pd.isna(v) else str(v).strip() for v in frame[column]]


def _classes(
    labels: Sequence[str], positive: str, name: str, named: Sequence[str] = ()
) -> list[str]:
    """Classes by decreasing numbers of rows, the class of interest last."""
    counts = Counter(filter(None, labels))
    if len(counts) > MOST_CLASSES:
        raise BadInput(
            f"{name}, column 'label': there are {len(counts)} classes, {listed(list(counts))}, and "
            f"an expert can choose between {MOST_CLASSES} at most; merge some, or empty their "
            "cells."
        )
    unnamed = [label for label in counts if label not in named]
    if named and unnamed:
        raise BadInput(
            f"Setting 'class_names' is {listed(list(named))} and the table has labels "
            f"{listed(unnamed)}; name these too."
        )
    classes = [*sorted(counts, key=lambda label: (-counts[label], label))]
    classes += [label for label in named if label not in counts]
    if positive and len(classes) >= 2 and positive not in classes:
        raise BadInput(
            f"Setting 'positive_class' is {positive!r} and the labels are {listed(classes)}; "
            "choose one of them."
        )
    if not classes:
        interest = positive or SOUGHT
        return [_OPPOSITE.get(interest, f"not {interest}"), interest]
    if len(classes) == 1:
        (only,) = classes
        other = positive if positive and positive != only else _OPPOSITE.get(only, f"not {only}")
        classes = [only, other]
    positives = [label for label in classes if label.lower() in _POSITIVE]
    interest = positive or (named[0] if named else positives[0] if len(positives) == 1 else "")
    if not interest:
        # "leak" alone: leaks are of interest, not their absence
        interest = classes[0] if len(counts) == 1 else classes[-1]
    return [*(label for label in classes if label != interest), interest]


def _numeric(frame: pd.DataFrame) -> list[str]:
    reserved = {c.name for c in TABLE.columns} | set(_location_columns(frame)) | set(PLACE[:3])
    return [str(c) for c in frame if c not in reserved and pd.api.types.is_numeric_dtype(frame[c])]


def _location_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """Columns of locations; without a corner, a height is an ordinary feature."""
    candidates = PLACE if {"left", "top"} <= set(frame) else PLACE[:3]
    return tuple(c for c in candidates if c in frame)


def _locations(
    frame: pd.DataFrame,
    picture: Int[np.ndarray, " n"],
    name: str,
    at: Int[np.ndarray, " n"],
) -> Int[np.ndarray, "n 6"]:
    present = _location_columns(frame)
    locations = np.zeros((len(frame), len(PLACE)), dtype=np.int64)
    for column in present:
        values = finite(frame, [column], name, at)[:, 0].round()
        locations[:, PLACE.index(column)] = np.clip(values, -MOST_PIXELS, MOST_PIXELS).astype(
            np.int64
        )
    if "height" not in present:
        locations[:, 3] = locations[:, 2]
    if "picture_width" not in present:
        locations[:, 4:] = _as_published(locations, picture)
    return locations


def _as_published(
    locations: Int[np.ndarray, "n 6"], picture: Int[np.ndarray, " n"]
) -> Int[np.ndarray, "n 2"]:
    """Sizes of pictures in older tables without them: 1280 x 720, or upright."""
    sizes = np.zeros((len(locations), 2), dtype=np.int64)
    step = SIDE // 2
    if not len(locations) or (locations[:, 2] != SIDE).any() or (locations[:, :2] % step).any():
        return sizes
    for number in np.unique(picture):
        in_picture = picture == number
        right, bottom = (locations[in_picture, :2] + SIDE).max(0)
        if right <= SIZE[0] and bottom <= SIZE[1]:
            sizes[in_picture] = SIZE
        elif right <= SIZE[1] and bottom <= SIZE[0]:
            sizes[in_picture] = SIZE[::-1]
    return sizes


def _images(frame: pd.DataFrame, name: str, at: Int[np.ndarray, " n"]) -> list[bytes]:
    return _files(frame, "image", name, at)


def _files(
    frame: pd.DataFrame,
    column: str,
    name: str,
    at: Int[np.ndarray, " n"],
    allow_empty: bool = False,
) -> list[bytes]:
    """Image files of a base64 column; b"" for empty cells, if `allow_empty`."""
    labels = _text(frame, column)
    if not any(labels):
        return []
    results = []
    for row, encoded in zip(at, labels):
        if allow_empty and not encoded:
            results.append(b"")
            continue
        where = f"{name}, column {column!r}, row {row}"
        try:
            content = base64.b64decode(encoded, validate=True)
            with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
                large = image.width * image.height > MOST_PIXELS
        except (binascii.Error, ValueError, OSError, Image.DecompressionBombError):
            got = "the cell is empty" if not encoded else f"got {encoded[:20]!r}"
            raise BadInput(f"{where}: {got}; give a JPEG or PNG file in base64.") from None
        if large:
            raise BadInput(f"{where}: the image has more than {MOST_PIXELS:,} pixels; cut it.")
        results.append(content)
    return results
