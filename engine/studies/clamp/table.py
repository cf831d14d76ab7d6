"""Pools of patches that wait for a label: tables, pictures cut into patches, ZIPs of pictures.

A row is one patch: its `label` (two classes; most cells are empty), the `picture` that it is part
of with its place there (`left`, `top`, `size`, pixels), its `image` (a JPEG or PNG file in base64,
so that a CSV file can hold it) and, or instead, any numeric features. Pictures are brought to
1280 x 720 pixels and cut into squares of 299 at a stride of half a square, 21 a picture; parts at
the edge that are smaller are skipped (Yousefi 2021, section 4.4).
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, UInt8
from PIL import Image
from scant.errors import BadInput
from scant.studies.split import SPLIT
from scant.tables.as_finite import finite
from scant.tables.column_matching import listed
from scant.tables.schema import Column, RowNumbers, TableSchema

SIZE = (1280, 720)
SIDE = 299
CLAMP, NO_CLAMP = "clamp", "no clamp"
SOUGHT = "of interest"  # a class that nobody has named
UNKNOWN = -1  # the label of a row that nobody has labeled
PLACE = ("left", "top", "size")
QUALITY = 85  # of JPEG
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
            doc="one of two classes, or empty where nobody has labeled the patch yet",
            aliases=("class", "category", "y"),
            without="nobody has labeled a patch yet; with 'you' as the expert, label some here",
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
        SPLIT,
    ),
    features=True,
    images=True,
    turned=False,
    cut=True,
    minimum_rows=8,
)


@dataclass(frozen=True)
class Cut:
    """A patch of a picture: its name, place and pixels."""

    picture: str
    left: int
    top: int
    size: int
    image: UInt8[np.ndarray, "h w 3"]


@dataclass(frozen=True)
class PatchPool:
    """Rows to label, as arrays in the order of the table's rows.

    Attributes:
        classes: Two names, what is looked for second.
        label: 0 or 1; `UNKNOWN` where the table does not say.
        pictures: Names, in order of first appearance; empty where there are none.
        picture: Index into them; each row its own picture where the table names none.
        place: Left, top and size of each patch in its picture, pixels; 0 where not known.
        images: The patches as files; empty where there are none.
        x: Numeric features; no columns where there are none.
        features: Their names.
    """

    classes: list[str]
    label: Int[np.ndarray, " n"]
    pictures: list[str]
    picture: Int[np.ndarray, " n"]
    place: Int[np.ndarray, "n 3"]
    images: list[bytes]
    x: Float[np.ndarray, "n d"]
    features: list[str]

    def __len__(self) -> int:
        return len(self.label)

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        *,
        positive: str = "",
        classes: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        name: str = "the table",
        rows: RowNumbers | None = None,
    ) -> PatchPool:
        """The arrays of a table, such as `read_table(file, TABLE).frame`.

        Args:
            frame: Columns as in `TABLE`.
            positive: The class that is looked for. "": a name such as "clamp" or "1", else the one
                with fewer labels; of a table without labels "of interest".
            classes: Those of a model; other labels are `UNKNOWN`.
            features: The numeric columns to take. None: all that vary.
            name: What messages call the table.
            rows: The row of each line, for messages; counted from 0 where None.

        Raises:
            BadInput: More than two classes, a cell that is no finite number or no image, neither
                features nor images.
        """
        at = np.arange(len(frame)) if rows is None else np.asarray(rows)
        labels = _text(frame, "label")
        own = _classes(labels, positive, name) if classes is None else list(classes)
        number = {word: i for i, word in enumerate(own)}
        label = np.array([number.get(w, UNKNOWN) if w else UNKNOWN for w in labels], dtype=np.int64)
        named = [w or f"row {at[i]}" for i, w in enumerate(_text(frame, "picture"))]
        pictures = list(dict.fromkeys(named)) if "picture" in frame else []
        index = {word: i for i, word in enumerate(pictures)}
        picture = [index[w] for w in named] if pictures else list(range(len(frame)))
        place = np.zeros((len(frame), 3), dtype=np.int64)
        for i, column in enumerate(PLACE):
            if column in frame:
                place[:, i] = finite(frame, [column], name, at)[:, 0].round().astype(np.int64)
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
        return cls(
            own, label, pictures, np.array(picture, dtype=np.int64), place, images,
            matrix[:, kept], columns,
        )  # fmt: skip


def bring(image: Image.Image) -> tuple[Image.Image, bool]:
    """A picture at 1280 x 720 pixels, or 720 x 1280; and whether that stretched it by a tenth."""
    size = SIZE if image.width >= image.height else (SIZE[1], SIZE[0])
    stretched = abs(np.log(image.width / image.height * size[1] / size[0])) > np.log(1.1)
    return image.convert("RGB").resize(size, Image.Resampling.BICUBIC), bool(stretched)


def cut(image: UInt8[np.ndarray, "h w 3"], picture: str, side: int = SIDE) -> list[Cut]:
    """Squares at a stride of half a side, row by row; what does not fit whole is skipped."""
    h, w = image.shape[:2]
    step = side // 2
    return [
        Cut(picture, left, top, side, image[top : top + side, left : left + side])
        for top in range(0, h - side + 1, step)
        for left in range(0, w - side + 1, step)
    ]


def table_of(cuts: Sequence[Cut], labels: Sequence[str | None] | None = None) -> pd.DataFrame:
    """The table of patches; `PatchPool.of` gives the arrays back.

    Args:
        cuts: Patches.
        labels: Their classes; None: nobody knows them.
    """
    return pd.DataFrame(
        {
            "label": pd.Series(
                [None] * len(cuts) if labels is None else list(labels), dtype=object
            ),
            "picture": [c.picture for c in cuts],
            "left": [float(c.left) for c in cuts],
            "top": [float(c.top) for c in cuts],
            "size": [float(c.size) for c in cuts],
            "image": [base64.b64encode(jpeg(c.image)).decode() for c in cuts],
        }
    )


def jpeg(image: UInt8[np.ndarray, "h w 3"], quality: int = QUALITY) -> bytes:
    """A JPEG file."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=quality)
    return out.getvalue()


def pixels(content: bytes, size: int | None = None) -> UInt8[np.ndarray, "h w 3"]:
    """The pixels of an image file, brought to a square of `size` where that is given."""
    with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
        if size is not None:
            image.draft("RGB", (size, size))  # a JPEG is decoded at a part of its size
            return np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BOX))
        return np.asarray(image.convert("RGB"))


def _text(frame: pd.DataFrame, column: str) -> list[str]:
    """A column of text, "" where empty or absent."""
    if column not in frame:
        return [""] * len(frame)
    return ["" if pd.isna(v) else str(v).strip() for v in frame[column]]


def _classes(labels: Sequence[str], positive: str, name: str) -> list[str]:
    """The class that is not looked for, and the one that is."""
    counts: dict[str, int] = {}
    for word in labels:
        if word:
            counts[word] = counts.get(word, 0) + 1
    if len(counts) > 2:
        raise BadInput(
            f"{name}, column 'label': there are {len(counts)} classes, {listed(list(counts))}, and "
            "an expert is asked between two; merge some, or empty their cells."
        )
    if positive and len(counts) == 2 and positive not in counts:
        raise BadInput(
            f"Setting 'positive_class' is {positive!r} and the labels are {listed(list(counts))}; "
            "choose one of them."
        )
    if not counts:
        result = positive or SOUGHT
        return [_OPPOSITE.get(result, f"not {result}"), result]
    if len(counts) == 1:
        (only,) = counts
        other = positive if positive and positive != only else _OPPOSITE.get(only, f"not {only}")
        both = [only, other]
    else:
        both = sorted(counts, key=lambda word: (-counts[word], word))
    known = [w for w in both if w.lower() in _POSITIVE]
    wanted = positive or (known[0] if len(known) == 1 else both[1])
    if len(counts) == 1 and not positive and not known and wanted == both[1]:
        wanted = both[0]  # "leak" alone: leaks are looked for, and not what is none
    return [next(w for w in both if w != wanted), wanted]


def _numeric(frame: pd.DataFrame) -> list[str]:
    own = {c.name for c in TABLE.columns} | set(PLACE)
    return [str(c) for c in frame if c not in own and pd.api.types.is_numeric_dtype(frame[c])]


def _images(frame: pd.DataFrame, name: str, at: Int[np.ndarray, " n"]) -> list[bytes]:
    labels = _text(frame, "image")
    if not any(labels):
        return []
    results = []
    for row, word in zip(at, labels):
        where = f"{name}, column 'image', row {row}"
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
