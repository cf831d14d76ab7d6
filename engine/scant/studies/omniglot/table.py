"""Tables of outputs, each with its own classes: alphabets of characters, floors of buildings.

A row is one item to classify: its `output`, its `label` (a class of its output, so that "a" of two
alphabets are two classes) and numbers. Columns `p0, p1, …` are pixels of an image, row by row, 1
ink and 0 paper; if they are present, further columns are no features. `TABLE` describes valid
files, which the common reader checks cell by cell; `of` converts a table to arrays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from scant.errors import BadInput
from scant.studies.split import COLUMNS
from scant.tables.as_finite import finite
from scant.tables.column_matching import listed
from scant.tables.schema import Column, RowNumbers, TableSchema

UNKNOWN = -1  # the label of a row to predict
MOST_FEATURES = 4096  # maximum, other than pixels
_PIXEL = re.compile(r"p(\d+)")

TABLE = TableSchema(
    columns=(
        Column(
            "output",
            "label",
            required=False,
            default="all",
            doc="the set that the class belongs to: an alphabet, a building",
            aliases=("alphabet", "building", "script", "task"),
        ),
        Column(
            "label",
            "label",
            target=True,
            minimum_levels=2,
            doc="the class within the output: a character, a floor",
            aliases=("class", "character", "letter", "category", "floor"),
        ),
        *COLUMNS,
    ),
    features=True,
    images=True,
    minimum_rows=4,
)


@dataclass(frozen=True)
class Characters:
    """Rows to classify, as arrays in the order of the table's rows.

    Attributes:
        outputs: Names, in order of first appearance.
        classes: Names of each output's classes, in order of first appearance.
        output: Index into `outputs`.
        label: Index into `classes[output]`; `UNKNOWN` where the table has none.
        x: Features, or pixels row by row.
        features: Columns of x.
    """

    outputs: list[str]
    classes: list[list[str]]
    output: Int[np.ndarray, " n"]
    label: Int[np.ndarray, " n"]
    x: Float[np.ndarray, "n v"]
    features: list[str]

    def __len__(self) -> int:
        return len(self.output)

    @property
    def offset(self) -> Int[np.ndarray, " d"]:
        """Number of each output's first class, counted through all outputs."""
        return np.cumsum([0, *(len(names) for names in self.classes)])[:-1]

    @property
    def number(self) -> Int[np.ndarray, " n"]:
        """Class of each row, counted through all outputs; `UNKNOWN` where its label is."""
        return np.where(self.label < 0, UNKNOWN, self.offset[self.output] + self.label)

    @property
    def pixels(self) -> bool:
        """True if the features are the pixels of images."""
        return bool(self.features) and all(_PIXEL.fullmatch(f) for f in self.features)

    def take(self, rows: Int[np.ndarray, " m"]) -> Characters:
        """Some of the rows."""
        return replace(self, output=self.output[rows], label=self.label[rows], x=self.x[rows])

    def frame(self) -> pd.DataFrame:
        """Convert to a table, the inverse of `of`. Unknown labels are empty cells."""
        labels = [
            None if label < 0 else self.classes[d][label]
            for d, label in zip(self.output, self.label)
        ]
        names = {"output": [self.outputs[d] for d in self.output], "label": labels}
        pixels = pd.DataFrame(self.x, columns=self.features)
        return pd.concat([pd.DataFrame(names, dtype=object), pixels], axis=1)


def of(
    frame: pd.DataFrame,
    outputs: Sequence[str] | None = None,
    classes: Sequence[Sequence[str]] | None = None,
    features: Sequence[str] | None = None,
    *,
    name: str = "the table",
    rows: RowNumbers | None = None,
) -> Characters:
    """Convert a table, such as `read_table(file, TABLE).frame`, to arrays.

    Args:
        frame: Columns as in `TABLE`; `label` may be absent.
        outputs: Outputs that a model was trained on. None: those of the table.
        classes: Classes of each of them; others in the table are `UNKNOWN`. None: the table's.
        features: Columns to use. None: pixels, or all columns that are not in the schema.
        name: Name of the table in messages.
        rows: Row of each line, for messages; None: counted from 0.

    Raises:
        BadInput: A column is absent, an output was not trained on, a pixel is missing, a cell is no
            finite number.
    """
    at = np.arange(len(frame)) if rows is None else np.asarray(rows)
    if "output" not in frame:
        raise BadInput(
            f"{name} has no column 'output'; the table needs the columns output and label, and "
            "features."
        )
    names = [str(w) for w in frame["output"]]
    known = list(dict.fromkeys(names if outputs is None else outputs))
    index = {value: d for d, value in enumerate(known)}
    first_unknown = next((i for i, value in enumerate(names) if value not in index), None)
    if first_unknown is not None:
        raise BadInput(
            f"{name}, column 'output', row {at[first_unknown]}: the model was not trained on "
            f"{names[first_unknown]!r}; its outputs are {listed(known)}."
        )
    output = np.array([index[value] for value in names], dtype=np.int64)
    class_names, label = _labels(frame, output, len(known), classes)
    columns = columns_of(frame, name) if features is None else list(features)
    return Characters(known, class_names, output, label, finite(frame, columns, name, at), columns)


def columns_of(frame: pd.DataFrame, name: str = "the table") -> list[str]:
    """Columns of features: pixels in their order, or else all numeric columns.

    Raises:
        BadInput: There are none, a pixel is missing between two, or there are too many.
    """
    reserved = ("output", "label", *(c.name for c in COLUMNS), "predicted", "probability")
    candidates = [c for c in map(str, frame.columns) if c not in reserved]
    pixels = {int(match[1]): c for c in candidates if (match := _PIXEL.fullmatch(c))}
    if len(pixels) > 3 and 2 * len(pixels) > len(candidates):
        gap = next((i for i in range(max(pixels) + 1) if i not in pixels), None)
        if gap is not None:
            raise BadInput(
                f"{name} has pixels up to 'p{max(pixels)}' but no column 'p{gap}'; number them "
                "from p0 without a gap."
            )
        return [pixels[i] for i in range(len(pixels))]
    numbers = [c for c in candidates if pd.api.types.is_numeric_dtype(frame[c])]
    if not 1 <= len(numbers) <= MOST_FEATURES:
        raise BadInput(
            f"{name} has {len(numbers):,} columns of numbers, but needs 1 to {MOST_FEATURES:,} as "
            "features; only pixels (p0, p1, …) may be more."
        )
    return numbers


def side(count: int, width: int = 0, height: int = 0) -> tuple[int, int]:
    """Height and width of images of `count` pixels.

    Args:
        count: Number of columns p0, p1, ….
        width: Width in the settings; 0: from the height, or from a square.
        height: Likewise.

    Raises:
        BadInput: They do not fit the number of pixels.
    """
    if not width and not height:
        side_length = round(count**0.5)
        if side_length * side_length != count:
            raise BadInput(
                f"{count:,} pixels do not form a square image; set 'width' and 'height'."
            )
        return side_length, side_length
    full_width, full_height = width or count // height, height or count // width
    if full_width * full_height != count:
        raise BadInput(
            f"Settings 'width' = {width} and 'height' = {height} do not fit {count:,} pixels; "
            "their product must be that number."
        )
    return full_height, full_width


def area(images: Float[np.ndarray, "n h w"], size: int) -> Float[np.ndarray, "n s t"]:
    """Reduce images to at most size x size pixels, each the average of the area it covers.

    Unlike sampling of pixels it breaks no stroke; a side that is short enough stays.
    """
    height, width = images.shape[1:]
    down, across = (_averaging(n, min(n, size)) for n in (height, width))
    return np.asarray(down @ images @ across.T, dtype=np.float64)


def nearest(images: Float[np.ndarray, "n h w"], size: int) -> Float[np.ndarray, "n s t"]:
    """Reduce images to at most size x size pixels, each the image's pixel at its center.

    The publication uses this method (Ma 2023, section 4.3); thin strokes break.
    """
    # Centers lie at (i + 1/2) n / s, in pixels of the image.
    down, across = (
        np.floor((np.arange(short) + 0.5) * n / short).astype(int)
        for n, short in ((n, min(n, size)) for n in images.shape[1:])
    )
    return np.asarray(images[:, down[:, None], across], dtype=np.float64)


def _averaging(long: int, short: int) -> Float[np.ndarray, "s n"]:
    """Matrix of averages from `long` pixels to `short` ones, by the lengths they share."""
    edges = np.linspace(0, long, short + 1)
    left, right = edges[:-1, None], edges[1:, None]
    at = np.arange(long)
    shared = np.clip(np.minimum(right, at + 1) - np.maximum(left, at), 0, None)
    return np.asarray(shared / shared.sum(1, keepdims=True))


def _labels(
    frame: pd.DataFrame,
    output: Int[np.ndarray, " n"],
    count: int,
    classes: Sequence[Sequence[str]] | None,
) -> tuple[list[list[str]], Int[np.ndarray, " n"]]:
    """Names of each output's classes, and each row's index among them."""
    cells = frame["label"] if "label" in frame else pd.Series([None] * len(frame), dtype=object)
    labels = [None if pd.isna(w) else str(w) for w in cells]
    results: list[dict[str, int]] = [{} for _ in range(count)]
    if classes is not None:
        results = [{name: i for i, name in enumerate(names)} for names in classes]
    else:
        for d, name in zip(output, labels):
            if name is not None:
                results[d].setdefault(name, len(results[d]))
    label = [UNKNOWN if w is None else results[d].get(w, UNKNOWN) for d, w in zip(output, labels)]
    return [list(names) for names in results], np.array(label, dtype=np.int64)
