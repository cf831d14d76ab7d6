"""Pools of patches that wait for a label, as a table and as arrays.

A row is one patch: its `label` (two classes or more; most cells are empty), the `picture` that it
is part of with its place there (`left`, `top`, `size` and, where it is no square, `height`; pixels
of the picture as it was given, whose size is `picture_width` and `picture_height`), its `image` (a
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
SOUGHT = "of interest"  # a class that nobody has named
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
        own = _classes(labels, positive, name, named) if classes is None else list(classes)
        label = pd.Index(own, dtype=object).get_indexer(pd.Index(labels, dtype=object))
        picture, pictures = np.arange(len(frame)), list[str]()
        if "picture" in frame and len(frame):
            names = [w or f"row {at[i]}" for i, w in enumerate(_text(frame, "picture"))]
            picture, of_pictures = pd.factorize(np.array(names, dtype=object))
            pictures = of_pictures.tolist()
        place = _places(frame, picture, name, at)
        columns = _numeric(frame) if features is None else list(features)
        matrix = finite(frame, columns, name, at)
        kept = np.ones(len(columns), dtype=bool)
        if features is None and len(frame):
            kept = np.ptp(matrix, axis=0) > 0
        columns = [c for c, k in zip(columns, kept) if k]
        images = _images(frame, name, at)
        if not images and not columns:
            raise BadInput(
                f"{name} has neither images nor feature columns with numbers that differ; add some."
            )
        wholes = {
            int(picture[i]): content
            for i, content in enumerate(_files(frame, "whole", name, at, gaps=True))
            if content
        }
        return cls(
            own, label, pictures, picture, place, images,
            matrix[:, kept], columns, wholes if pictures else {},
        )  # fmt: skip


def class_counts(
    frame: pd.DataFrame, positive: str, named: Sequence[str], name: str
) -> dict[str, int]:
    """Rows of each class, without a look at the images.

    Raises:
        BadInput: There are too many classes, or others than those named.
    """
    labels = _text(frame, "label")
    return {own: labels.count(own) for own in _classes(labels, positive, name, named)}


def _text(frame: pd.DataFrame, column: str) -> list[str]:
    """A column of text, "" where empty or absent."""
    if column not in frame:
        return [""] * len(frame)
    return ["" if pd.isna(v) else str(v).strip() for v in frame[column]]


def _classes(
    labels: Sequence[str], positive: str, name: str, named: Sequence[str] = ()
) -> list[str]:
    """The classes: by decreasing numbers of rows, the class of interest last."""
    counts = Counter(filter(None, labels))
    if len(counts) > MOST_CLASSES:
        raise BadInput(
            f"{name}, column 'label': there are {len(counts)} classes, {listed(list(counts))}, and "
            f"an expert can choose between {MOST_CLASSES} at most; merge some, or empty their "
            "cells."
        )
    strange = [word for word in counts if word not in named]
    if named and strange:
        raise BadInput(
            f"Setting 'class_names' is {listed(list(named))} and the table has labels "
            f"{listed(strange)}; name these too."
        )
    every = [*sorted(counts, key=lambda word: (-counts[word], word))]
    every += [word for word in named if word not in counts]
    if positive and len(every) >= 2 and positive not in every:
        raise BadInput(
            f"Setting 'positive_class' is {positive!r} and the labels are {listed(every)}; "
            "choose one of them."
        )
    if not every:
        wanted = positive or SOUGHT
        return [_OPPOSITE.get(wanted, f"not {wanted}"), wanted]
    if len(every) == 1:
        (only,) = every
        other = positive if positive and positive != only else _OPPOSITE.get(only, f"not {only}")
        every = [only, other]
    known = [w for w in every if w.lower() in _POSITIVE]
    wanted = positive or (named[0] if named else known[0] if len(known) == 1 else "")
    if not wanted:
        # "leak" alone: leaks are looked for, and not what is none
        wanted = every[0] if len(counts) == 1 else every[-1]
    return [*(w for w in every if w != wanted), wanted]


def _numeric(frame: pd.DataFrame) -> list[str]:
    own = {c.name for c in TABLE.columns} | set(_place_columns(frame)) | set(PLACE[:3])
    return [str(c) for c in frame if c not in own and pd.api.types.is_numeric_dtype(frame[c])]


def _place_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """Columns of places; without a corner, a height is an ordinary feature."""
    every = PLACE if {"left", "top"} <= set(frame) else PLACE[:3]
    return tuple(c for c in every if c in frame)


def _places(
    frame: pd.DataFrame,
    picture: Int[np.ndarray, " n"],
    name: str,
    at: Int[np.ndarray, " n"],
) -> Int[np.ndarray, "n 6"]:
    there = _place_columns(frame)
    place = np.zeros((len(frame), len(PLACE)), dtype=np.int64)
    for column in there:
        values = finite(frame, [column], name, at)[:, 0].round()
        place[:, PLACE.index(column)] = np.clip(values, -MOST_PIXELS, MOST_PIXELS).astype(np.int64)
    if "height" not in there:
        place[:, 3] = place[:, 2]
    if "picture_width" not in there:
        place[:, 4:] = _as_published(place, picture)
    return place


def _as_published(
    place: Int[np.ndarray, "n 6"], picture: Int[np.ndarray, " n"]
) -> Int[np.ndarray, "n 2"]:
    """Sizes of pictures in older tables, which do not state them: 1280 x 720, or upright."""
    sizes = np.zeros((len(place), 2), dtype=np.int64)
    step = SIDE // 2
    if not len(place) or (place[:, 2] != SIDE).any() or (place[:, :2] % step).any():
        return sizes
    for number in np.unique(picture):
        own = picture == number
        right, bottom = (place[own, :2] + SIDE).max(0)
        if right <= SIZE[0] and bottom <= SIZE[1]:
            sizes[own] = SIZE
        elif right <= SIZE[1] and bottom <= SIZE[0]:
            sizes[own] = SIZE[::-1]
    return sizes


def _images(frame: pd.DataFrame, name: str, at: Int[np.ndarray, " n"]) -> list[bytes]:
    return _files(frame, "image", name, at)


def _files(
    frame: pd.DataFrame, column: str, name: str, at: Int[np.ndarray, " n"], gaps: bool = False
) -> list[bytes]:
    """Image files of a base64 column; b"" for empty cells, where `gaps` allows them."""
    labels = _text(frame, column)
    if not any(labels):
        return []
    results = []
    for row, word in zip(at, labels):
        if gaps and not word:
            results.append(b"")
            continue
        where = f"{name}, column {column!r}, row {row}"
        try:
            content = base64.b64decode(word, validate=True)
            with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
                large = image.width * image.height > MOST_PIXELS
        except (binascii.Error, ValueError, OSError, Image.DecompressionBombError):
            got = "the cell is empty" if not word else f"got {word[:20]!r}"
            raise BadInput(f"{where}: {got}; give a JPEG or PNG file in base64.") from None
        if large:
            raise BadInput(f"{where}: the image has more than {MOST_PIXELS:,} pixels; cut it.")
        results.append(content)
    return results
