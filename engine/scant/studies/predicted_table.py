"""A table to be predicted: images as the model learned its own, and the columns that are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.errors import BadInput
from scant.studies.omniglot.table import side
from scant.studies.predicted_columns import INTERVALS, added_names
from scant.tables.cells import from_series
from scant.tables.checks import Diagnostics
from scant.tables.checks import numbers as check_numbers
from scant.tables.levels import LEVELS, UNSEEN, encoded_frame
from scant.tables.schema import READING

Rows = TypeVar("Rows")
Predict = Callable[[Any, pd.DataFrame], pd.DataFrame]
Quantile = Callable[[Float[np.ndarray, " q"]], Float[np.ndarray, "q n"]]
Shape = tuple[int, int]  # height and width
FILE = (
    "file"  # in a frame's `attrs`: the file that it is a part of; its index has the rows' numbers
)


@runtime_checkable
class Sized(Protocol):
    """Settings that say how large images are; 0: as the table has them."""

    width: int
    height: int


def interval_columns(quantile: Quantile) -> dict[str, Float[np.ndarray, " n"]]:
    """Ends of the central intervals of a new observation, by the names of their columns.

    Args:
        quantile: From q probabilities to quantiles of shape (q, n), as `ValuePredictive.quantile`.
    """
    names = [f"{end}{level}" for level in INTERVALS for end in ("lo", "hi")]
    p = np.array([(50 + side * level / 2) / 100 for level in INTERVALS for side in (-1, 1)])
    return dict(zip(names, quantile(p)))


def checked(
    table: object, numbers: Iterable[str] = (), *, gaps: Iterable[str] = ()
) -> pd.DataFrame:
    """A table whose rows are to be predicted, the columns that the model reads made numbers.

    Args:
        table: As it was given to `predict`.
        numbers: Columns of finite numbers.
        gaps: Columns of finite numbers that may have empty cells.

    Raises:
        BadInput: It is no data frame, has no rows or a name twice, or a cell of these columns is
            no number that can be computed with; rows are counted as a spreadsheet does.
    """
    if not isinstance(table, pd.DataFrame):
        raise BadInput(
            f"The table to predict is a {type(table).__name__}; give a pandas data frame, whose "
            "columns have the names of the training table's."
        )
    names = [str(name) for name in table.columns]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if len(set(names)) < len(names) and twice is not None:
        raise BadInput(f"The table has the column {twice!r} twice; rename one of them.")
    if not len(table):
        raise BadInput("The table has no rows; give those that are to be predicted.")
    if names != list(table.columns):
        table = table.set_axis(names, axis=1)
    findings = Diagnostics(*place(table))
    mended: dict[str, np.ndarray] = {}
    own = {**dict.fromkeys(numbers, False), **dict.fromkeys(gaps, True)}
    for name, may_be_empty in own.items():
        if name in table:
            cells = from_series(name, table[name])
            check_numbers(cells, findings, may_be_empty=may_be_empty)
            if not pd.api.types.is_float_dtype(table[name].dtype):
                mended[name] = cells.values
    if findings.problems:
        raise BadInput(findings.problems[0])
    return table.assign(**mended) if mended else table


def by_levels(predict: Predict) -> Predict:
    """`predict` of a study that takes text columns as they were learned (`scant.tables.levels`).

    A row with a level that was not learned is flagged as outside.
    """

    @wraps(predict)
    def told(study: Any, table: pd.DataFrame) -> pd.DataFrame:
        levels = study.metadata.get(READING, {}).get(LEVELS, {})
        query = encoded_frame(table, levels) if isinstance(table, pd.DataFrame) else table
        made = predict(study, query)
        if query is table and not query.attrs.get(UNSEEN):
            return made
        added = made.iloc[:, query.shape[1] :].copy()
        flag = next(name for name in added if str(name).endswith("outside"))
        added.iloc[query.attrs[UNSEEN], list(added).index(flag)] = 1
        return with_columns(table, {str(name): added[name].to_numpy() for name in added})

    return told


def place(table: pd.DataFrame) -> tuple[str, np.ndarray]:
    """What sentences call a table, and the numbers of its rows as a spreadsheet counts them."""
    if FILE in table.attrs:
        return str(table.attrs[FILE]), table.index.to_numpy()
    return "the table", np.arange(2, len(table) + 2)


def words(table: pd.DataFrame) -> dict[str, Any]:
    """The same, as the readers of the studies' tables take it."""
    name, rows = place(table)
    return {"name": name, "rows": rows}


def with_columns(table: pd.DataFrame, added: Mapping[str, Any]) -> pd.DataFrame:
    """The table as it was given, its columns in front, with others behind them.

    A name that the table has already gets `predicted_` in front (`predicted_columns.added_names`):
    no cell of the table is ever written over.
    """
    names = added_names(table.columns, added)
    own = pd.DataFrame(dict(zip(names, added.values())), index=table.index)
    frames: list[pd.DataFrame] = [table, own]
    return pd.concat(frames, axis="columns")


def with_classes(
    table: pd.DataFrame,
    name: Sequence[str],
    probability: Float[np.ndarray, " n"],
    each: Mapping[str, Float[np.ndarray, " n"]],
    **further: np.ndarray,
) -> pd.DataFrame:
    """The table, its rows and order kept, with what was decided of each row.

    Args:
        table: As it was given. Where it has a column `label`, the decision is named `predicted`.
        name: The class of each row.
        probability: Of that class.
        each: Probabilities of classes by their names, for columns `p(name)`.
        **further: Columns behind them.
    """
    return with_columns(table, {**class_columns(name, probability, each), **further})


def class_columns(
    name: Sequence[str],
    probability: Float[np.ndarray, " n"],
    each: Mapping[str, Float[np.ndarray, " n"]],
) -> dict[str, np.ndarray]:
    """Columns of the predicted class, its probability, and those of all classes.

    Arguments as of `with_classes`.
    """
    columns = {"label": np.array(name, dtype=object), "probability": probability}
    return columns | {f"p({of})": p for of, p in each.items()}


def parts(
    std: Float[np.ndarray, " n"], share: Float[np.ndarray, " n"] | None
) -> dict[str, Float[np.ndarray, " n"]]:
    """The part of a deviation that more data would remove, and the part that stays.

    Args:
        std: Of a new observation.
        share: Of the first part in its variance; None: the model does not tell.
    """
    own = np.full(len(std), np.nan) if share is None else np.clip(share, 0, 1)
    return {"std_model": std * np.sqrt(own), "std_noise": std * np.sqrt(1 - own)}


def images(
    settings: Sized,
    train: Shape,
    pixels: int,
    bring: Callable[[Shape], tuple[Rows, Shape | None]],
) -> Rows:
    """A table's images, brought to the size of those that the model has learned.

    Args:
        settings: Of the run.
        train: Shape of the images that the model has learned.
        pixels: Of each image of the table; none where it has no columns p0, p1, ….
        bring: Brings images of a shape to the size that the settings ask for, and says it.

    Raises:
        BadInput: The table has no images, or they do not come to that size.
    """
    if not pixels:
        raise BadInput(
            "The model was trained on images, and the table has no pixels p0, p1, …; add them."
        )
    sides = (settings.width, settings.height)
    given = sides if (sides[0] or 1) * (sides[1] or 1) == pixels else (0, 0)
    shape = train if pixels == train[0] * train[1] else side(pixels, *given)
    rows, image = bring(shape)
    if image != train:
        raise BadInput(
            f"The table's images have {shape[1]} x {shape[0]} pixels, and the model was trained on "
            f"{train[1]} x {train[0]}; resize them to that size."
        )
    return rows
