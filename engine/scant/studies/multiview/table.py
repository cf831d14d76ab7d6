"""Tables with features in several views, and a class, a value or a survival time per row.

A column `<view>.<feature>` belongs to a view of the row: its colors, its texture, its earlier
state. Columns without a dot are the view "features". Images in a ZIP archive have views of their
own (`scant.tables.images.image_views`). The target is one of three: `label` (classes), `y` (a
value), or `time` until death, with `event` 1 if the patient died then and 0 if the time is
censored; rows of one `patient` share their time. `TABLE` is the schema by which the common reader
checks files; `of` converts tables to arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from scant.errors import BadInput
from scant.studies.multiview.data import MultiviewData
from scant.studies.query import names_in
from scant.studies.split import SPLIT
from scant.tables.as_finite import finite
from scant.tables.column_matching import listed
from scant.tables.levels import origin
from scant.tables.schema import Column, RowNumbers, TableSchema

ALONE = "features"  # the view of columns without a dot
TARGETS = {"classification": "label", "regression": "y", "survival": "time"}

_ALIVE = ("alive", "living", "0:living", "censored", "no", "false")
_DEAD = ("dead", "deceased", "1:deceased", "died", "yes", "true")
DIED = tuple((word, "0") for word in _ALIVE) + tuple((word, "1") for word in _DEAD)

TABLE = TableSchema(
    columns=(
        Column(
            "label",
            "label",
            required=False,
            missing=True,
            target=True,
            minimum_levels=2,
            doc="the class, where classes are learned",
            aliases=("class", "category"),
        ),
        Column(
            "y",
            required=False,
            missing=True,
            target=True,
            doc="the value, where values are learned",
            aliases=("target", "value", "response"),
        ),
        Column(
            "time",
            required=False,
            missing=True,
            target=True,
            positive=True,
            doc="how long the patient is known to have lived, where survival is learned; any unit",
            aliases=(
                "survival",
                "survival_time",
                "survival_months",
                "survival_days",
                "os_time",
                "follow_up",
            ),
        ),
        Column(
            "event",
            "label",
            required=False,
            missing=True,
            target=True,
            beside="time",
            levels=("0", "1"),
            synonyms=DIED,
            doc="1 where the patient died at that time, 0 where he was last seen alive (censored); "
            "without this column all died",
            aliases=("died", "dead", "death", "status", "os_event"),
        ),
        Column(
            "patient",
            "label",
            required=False,
            doc="whose row it is; predictions are averaged over a patient's rows",
            aliases=("patient_id", "subject", "case"),
        ),
        Column(
            "group",
            "label",
            required=False,
            doc="rows that are held out together: an image sequence, a slide, a site",
            aliases=("sequence", "slide", "site"),
        ),
        SPLIT,
    ),
    features=True,
    one_target=True,
    images=True,
    views=True,
    class_setting="positive_class",
    minimum_rows=12,
)


def of(
    frame: pd.DataFrame,
    task: str = "auto",
    positive: str = "",
    *,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    name: str = "the table",
    rows: RowNumbers | None = None,
) -> MultiviewData:
    """Convert a table, such as `read_table(file, TABLE).frame`, to arrays.

    Args:
        frame: Columns as in `TABLE`; with `features`, all other columns are optional.
        task: The task; "auto": by the target column of the table.
        positive: The positive class, or several with commas; "": the rarer of two.
        features: Columns of the training table, for rows to predict. None: those of the table.
        classes: Class names of the trained model.
        name: Name of the table for messages.
        rows: Row numbers for messages; None: counted from 0.

    Raises:
        BadInput: A column is absent, targets are ambiguous, a cell is no finite number, or rows of
            one patient have different times.
    """
    row_numbers = np.arange(len(frame)) if rows is None else np.asarray(rows)
    task_name = _task(frame, task, name) if features is None else task
    columns, names, view = _views(frame, features, name)
    patient, patients = _names(frame, "patient")
    group, groups = (patient, patients) if task_name == "survival" else _names(frame, "group")
    if features is not None:
        target, class_names = np.full(len(frame), np.nan), list(classes or [])
    else:
        target, class_names = _target(frame, task_name, positive, name)
    data = MultiviewData(
        task=task_name,
        names=names,
        features=columns,
        view=view,
        x=finite(frame, columns, name, row_numbers),
        target=target,
        classes=class_names,
        event=_events(frame),
        patient=patient,
        patients=patients,
        group=group,
        groups=groups,
    )
    if task_name == "survival" and features is None:
        _agree(data, name, row_numbers)
    return data


def _task(frame: pd.DataFrame, task: str, name: str) -> str:
    """The task by setting and target columns."""
    results = [
        t for t, column in TARGETS.items() if column in frame and frame[column].notna().any()
    ]
    if task == "auto":
        if len(results) == 1:
            return results[0]
        if not results:
            raise BadInput(
                f"{name} has no values in any of the columns label, y and time; add the target, or "
                "rename its column to one of these."
            )
        raise BadInput(
            f"{name} has {' and '.join(TARGETS[t] for t in results)}; set 'task' to the kind of "
            "target: classification (label), regression (y) or survival (time)."
        )
    if task not in results:
        raise BadInput(
            f"Setting 'task' is {task}, which needs a column {TARGETS[task]!r}, but {name} has "
            "none with values (a column of zeros and ones is read as 'label' unless it is called "
            "'y'); add it or choose another task."
        )
    return task


def _views(
    frame: pd.DataFrame, features: Sequence[str] | None, name: str
) -> tuple[list[str], list[str], Int[np.ndarray, " f"]]:
    """Columns view by view, names of the views, and the view of each column."""
    reserved = {c.name for c in TABLE.columns}
    columns = list(features or [c for c in map(str, frame.columns) if c not in reserved])
    if not columns:
        raise BadInput(f"{name} has no feature column; name some <view>.<feature>.")
    pieces = [origin(c).partition(".") for c in columns]
    views = [b for b, _, after in pieces if b and after]
    # A single column such as pm2.5 has a decimal point in its name and belongs to no view.
    observed = [
        b if b and after and not (after.isdigit() and views.count(b) == 1) else ALONE
        for b, _, after in pieces
    ]
    names = list(dict.fromkeys(observed))
    view = np.array([names.index(b) for b in observed], dtype=np.int64)
    order = np.argsort(view, kind="stable")
    return [columns[i] for i in order], names, view[order]


def _target(
    frame: pd.DataFrame, task: str, positive: str, name: str
) -> tuple[Float[np.ndarray, " n"], list[str]]:
    """The target as numbers, NaN where unknown, and the names of two classes."""
    if task != "classification":
        values = frame[TARGETS[task]].to_numpy(dtype=np.float64, na_value=np.nan)
        if task == "survival" and (values <= 0).any():
            raise BadInput(
                f"{name}, column 'time': got {np.nanmin(values):g}, but times must be above zero; "
                "correct it or drop the row."
            )
        return values, []
    labels = [None if pd.isna(w) else str(w) for w in frame["label"]]
    count = Counter(w for w in labels if w is not None)
    if len(count) < 2:
        raise BadInput(
            f"{name}, column 'label': there is only one class, {next(iter(count), '')!r}; two are "
            "needed."
        )
    positive_classes = names_in(positive)
    unknown = [w for w in positive_classes if w not in count]
    if unknown:
        raise BadInput(
            f"Setting 'positive_class' names {unknown[0]!r}, but the classes are "
            f"{listed(list(count))}; name some of these."
        )
    if not positive_classes and len(count) > 2:
        raise BadInput(
            f"{name}, column 'label': there are {len(count)} classes ({listed(list(count))}), and "
            "the model separates two; name the positive one, or several with commas, in the "
            "setting 'positive_class', or take the page Mitosis, which learns more classes."
        )
    # If two classes are equally frequent, the second is positive, as 1 comes after 0.
    positive_names = positive_classes or [min(reversed(list(count)), key=lambda w: count[w])]
    others = [w for w in count if w not in positive_names]
    if not others:
        raise BadInput("Setting 'positive_class' names all classes; leave at least one out.")
    target = np.array([np.nan if w is None else float(w in positive_names) for w in labels])
    return target, [others[0] if len(others) == 1 else "others", " or ".join(positive_names)]


def _events(frame: pd.DataFrame) -> Bool[np.ndarray, " n"]:
    if "event" not in frame:
        return np.ones(len(frame), dtype=bool)
    cells = ["1" if pd.isna(v) else str(v) for v in frame["event"]]
    return np.array([cell in ("1", "1.0", "True") for cell in cells], dtype=bool)


def _names(frame: pd.DataFrame, column: str) -> tuple[Int[np.ndarray, " n"], list[str]]:
    """Index into names, and the names; without the column, every row has its own."""
    if column not in frame:
        return np.arange(len(frame)), [str(i + 1) for i in range(len(frame))]
    number, names = pd.factorize(np.array([str(w) for w in frame[column]], dtype=object))
    return number, names.tolist()


def _agree(observed: MultiviewData, name: str, row_numbers: np.ndarray) -> None:
    """Check that all rows of a patient have the same time and event."""
    first = np.unique(observed.patient, return_index=True)[1][observed.patient]
    time, event = observed.target, observed.event
    same = (time == time[first]) | (np.isnan(time) & np.isnan(time[first]))
    wrong = np.flatnonzero(~same | (event != event[first]))
    if len(wrong):
        i, j = first[wrong[0]], wrong[0]
        raise BadInput(
            f"{name}, row {row_numbers[j]}: patient {observed.patients[observed.patient[i]]!r} has "
            f"another time or event here than in row {row_numbers[i]}; give each patient one time "
            "and one event."
        )
