"""Tables of values given only as averages over boxes: the long form, and its arrays.

A row is one observation of one task: the average of `y` over a box with the bounds `<dim>_lo` and
`<dim>_hi` in each input dimension, or the value at the point `<dim>`, which is a box of width zero.
A column `geometry` with a polygon or a point may replace two dimensions; it becomes weighted points
in meters (`polygons`). `TABLE` lists the columns of a file, so that the common
reader (`scant.tables.read.read_table`) checks it cell by cell; `of` converts such a table to
arrays. Bounds are in each dimension's own unit, `y` in its task's.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from scant.errors import BadInput
from scant.studies.aggregation import polygons
from scant.studies.aggregation.population import People
from scant.studies.aggregation.supports import Covariate, Supports
from scant.studies.split import COLUMNS, TEST, marks
from scant.tables import geometry
from scant.tables.as_finite import finite
from scant.tables.column_matching import listed
from scant.tables.schema import COVARIATE, Column, RowNumbers, TableSchema

LABELS = "y_label"
TABLE = TableSchema(
    columns=(
        Column(
            "task",
            "label",
            required=False,
            default="all",
            doc="which quantity or instrument the row belongs to",
            aliases=("output", "series", "sensor", "instrument", "station", "site"),
        ),
        Column(
            "y",
            target=True,
            doc="the average over the row's box, or the value at its point; counts for a Poisson "
            "task, 0 or 1 for a Bernoulli task, labels or codes for a categorical task",
            labels=LABELS,
            aliases=("value", "mean", "average", "count"),
        ),
        Column(
            LABELS,
            "label",
            required=False,
            missing=True,
            doc="label of the class whose code y is, of a categorical task",
            guessed=False,
        ),
        Column(
            "y_err",
            required=False,
            missing=True,
            positive=True,
            doc="known standard deviation of the noise of y, such as a standard error; Gaussian "
            "tasks learn further noise in addition",
            aliases=(
                *("y_error", "y_std", "y_sd", "std", "sd", "sigma", "error", "uncertainty"),
                *("standard_error", "se", "stderr"),
            ),
        ),
        Column(
            "exposure",
            required=False,
            missing=True,
            positive=True,
            doc="what the rate of counts is multiplied by: people, births, hours; the denominator "
            "of a rate; empty means 1",
            aliases=("population", "denominator", "at_risk", "person_years", "pop"),
        ),
        Column(
            geometry.COLUMN,
            "geometry",
            required=False,
            doc="the row's polygon, multipolygon or point, in place of bounds: well-known text in "
            "longitude and latitude, or in another system with SRID=<EPSG code>; in front of it",
            aliases=geometry.ALIASES,
            guessed=False,
        ),
        Column(
            "area_name",
            "label",
            required=False,
            missing=True,
            doc="name of the row's polygon, shown on maps; never learned",
            aliases=("place", "name", "county", "district", "municipality", "region"),
            only_with=geometry.COLUMN,
            guessed=False,
        ),
        *COLUMNS,
        Column(
            "truth",
            required=False,
            missing=True,
            doc="the noise-free y, where a simulation knows it; shown, never learned",
        ),
    ),
    features=True,
    boxes=True,
    rates=True,
    minimum_rows=4,
)
_OWN = {column.name for column in TABLE.columns}
POINTS = 25  # inside each polygon by default


def of(
    frame: pd.DataFrame,
    *,
    dims: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    name: str = "the table",
    rows: RowNumbers | None = None,
    system: str = "",
    points: int = POINTS,
    covariates: Sequence[str | Covariate] = (),
    people: People | None = None,
) -> Supports:
    """Convert a long-form table, such as `read_table(file, TABLE).frame`, to arrays.

    Args:
        frame: Columns as in `TABLE`; further ones are input dimensions. `y` may be absent.
        dims: The dimensions a model was trained on, each as a point or as a box. None: all.
        tasks: The tasks a model was trained on. None: those of the table.
        name: Name of the table for messages.
        rows: Row numbers for messages (`Table.rows`); counted from 0 where None.
        system: The projection that a model was trained in; "": one for the table's own region.
        points: Maximum number of points inside each polygon.
        covariates: Columns that enter linearly and are no dimensions; columns given by name only
            are standardized by this table.
        people: Population that weighs the points inside polygons; None: by area.

    Raises:
        BadInput: A task or dimension is missing or unknown, bounds are no numbers or reversed,
            an exposure is not positive, or a covariate is absent or has empty cells.
    """
    at = np.arange(len(frame)) if rows is None else np.asarray(rows)
    if "task" not in frame:
        raise BadInput(f"{name} has no column 'task'; name the task of each row.")
    names = [str(w) for w in frame["task"]]
    task_names = tuple(dict.fromkeys(names if tasks is None else tasks))
    task = pd.Index(task_names).get_indexer(pd.Index(names))
    if (task < 0).any():
        first = int(np.argmax(task < 0))
        raise BadInput(
            f"{name}, column 'task', row {at[first]}: the model was not trained on "
            f"{names[first]!r}; its tasks are {listed(task_names)}."
        )
    shapes = None
    if geometry.COLUMN in frame and (dims is None or system):
        cells = geometry.words(frame[geometry.COLUMN]).tolist()
        shapes = polygons.shapes(cells, system, points, name, at, people)
    columns = [c if isinstance(c, str) else c.column for c in covariates]
    excluded = {*columns, *(str(c) for c in frame if str(c).startswith(COVARIATE))}
    all_dims = _dimensions(frame, shapes is not None, excluded) if dims is None else tuple(dims)
    if system and shapes is None and not any(str(c).startswith(polygons.DIMS) for c in frame):
        raise BadInput(
            f"{name} has no column {geometry.COLUMN!r}, and the model was trained on a map; give "
            "a map, or a column of polygons."
        )
    if not all_dims:
        raise BadInput(
            f"{name} has no input dimension beside {listed([str(c) for c in frame])}; add one."
        )
    box_dims = all_dims if shapes is None else all_dims[len(polygons.DIMS) :]
    values = _covariates(frame, columns, name, at)
    standardized = tuple(
        Covariate(c, float(v.mean()), float(v.std()) or 1.0) if isinstance(c, str) else c
        for c, v in zip(covariates, values.T)
    )
    bounds = [_bounds(frame, dim, name, at) for dim in box_dims]
    if shapes is not None:
        bounds = [*zip(shapes.lo.T, shapes.hi.T), *bounds]
    return Supports(
        tasks=task_names,
        dims=all_dims,
        task=task.astype(np.int64),
        lo=np.column_stack([lo for lo, _ in bounds]),
        hi=np.column_stack([hi for _, hi in bounds]),
        y=_numbers(frame, "y"),
        y_err=_numbers(frame, "y_err"),
        exposure=_exposure(frame, name, at),
        truth=_numbers(frame, "truth"),
        test=np.asarray(marks(frame) == TEST, dtype=bool),
        inside=None if shapes is None else shapes.inside,
        system=system if shapes is None else shapes.system,
        covariates=(values - [c.mean for c in standardized]) / [c.deviation for c in standardized]
        if standardized
        else None,
        named=standardized,
        empty=0 if shapes is None else shapes.empty,
        labels=_labels(frame, task_names, task, name, at),
    )


def _dimensions(frame: pd.DataFrame, on_map: bool, excluded: Set[str]) -> tuple[str, ...]:
    """Input dimensions of a table, those of a map first, then in order of appearance."""
    inputs = [str(c) for c in frame.columns if c not in _OWN | excluded]
    dims = [n[:-3] if n.endswith(("_lo", "_hi")) else n for n in inputs]
    return tuple(dict.fromkeys([*(polygons.DIMS if on_map else ()), *dims]))


def _bounds(
    frame: pd.DataFrame, dim: str, name: str, rows: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Lower and upper bounds of one dimension, given as a box or as a point."""
    names = (f"{dim}_lo", f"{dim}_hi") if f"{dim}_lo" in frame else (dim, dim)
    for column in names:
        if column not in frame:
            raise BadInput(
                f"{name} lacks the dimension {dim!r}; give the column {dim!r} or both "
                f"'{dim}_lo' and '{dim}_hi'."
            )
    lo, hi = finite(frame, names, name, rows).T
    wrong = np.flatnonzero(hi < lo)
    if len(wrong):
        i = wrong[0]
        raise BadInput(
            f"{name}, column {names[1]!r}, row {rows[i]}: {hi[i]:g} is below "
            f"{names[0]} = {lo[i]:g}; swap the two or correct them."
        )
    return lo, hi


def _labels(
    frame: pd.DataFrame,
    tasks: Sequence[str],
    task: Int[np.ndarray, " n"],
    name: str,
    rows: Int[np.ndarray, " n"],
) -> dict[str, dict[float, str]]:
    """Label of each code, of the tasks whose rows have labels."""
    result = dict[str, dict[float, str]]()
    if LABELS not in frame or "y" not in frame:
        return result
    y = _numbers(frame, "y")
    for i in np.flatnonzero(frame[LABELS].notna().to_numpy() & np.isfinite(y)):
        label, labels = str(frame[LABELS].iloc[i]), result.setdefault(tasks[task[i]], {})
        if labels.setdefault(float(y[i]), label) != label:
            raise BadInput(
                f"{name}, column {LABELS!r}, row {rows[i]}: code {y[i]:g} is {label!r}, but "
                f"{labels[float(y[i])]!r} in a row above; give each class one code."
            )
        if list(labels.values()).count(label) > 1:
            raise BadInput(
                f"{name}, column {LABELS!r}, row {rows[i]}: code {y[i]:g} is {label!r}, as another "
                "code is in a row above; give each class one code."
            )
    return result


def _numbers(frame: pd.DataFrame, column: str) -> Float[np.ndarray, " n"]:
    if column not in frame:
        return np.full(len(frame), np.nan)
    return frame[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _exposure(
    frame: pd.DataFrame, name: str, rows: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    exposure = np.nan_to_num(_numbers(frame, "exposure"), nan=1.0, posinf=np.inf)
    bad = np.flatnonzero(~((exposure > 0) & np.isfinite(exposure)))
    if len(bad):
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise BadInput(
            f"{name}, column 'exposure', row {rows[bad[0]]}: got {exposure[bad[0]]:g}{more}, but a "
            "row without exposure tells nothing; leave the row out or give a number above 0."
        )
    return exposure


def _covariates(
    frame: pd.DataFrame, columns: Sequence[str], name: str, rows: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n p"]:
    for column in columns:
        if column not in frame:
            raise BadInput(
                f"{name} lacks the covariate {column!r}, which the model needs for every row; add "
                "this column, or choose other covariates."
            )
    return finite(frame, columns, name, rows)


def check(s: Any, table: pd.DataFrame, name: str) -> None:
    """Reject a table that these settings cannot learn (`Entry.check`)."""
    if geometry.COLUMN not in table:  # polygons are checked when the file is read
        of(table, name=name)
