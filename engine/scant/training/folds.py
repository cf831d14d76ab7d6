"""Cross-validation of a small table: further fits with other held-out rows.

A few held-out rows cannot show which method predicts better. The training and validation rows of
the split are divided into folds of about the size of the test set, and each fold is held out in a
fit of its own, as far as time allows. The run and its rivals are scored on all held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold

from scant.errors import BadInput
from scant.predictive import JoinedPredictive, Predictive, ValuePredictive
from scant.problem import Comparison
from scant.studies import Settings
from scant.studies.protocol import Study
from scant.studies.split import SPLIT, TEST, TRAIN, VALIDATION, groups
from scant.training.everything import QUIET, changed
from scant.verdict import FEW

STUDIES = ("aggregation", "genes", "mitosis", "multiview", "redshift")

Folds = Callable[[], Iterator[Study]]


def further_folds(
    study: Study, settings: Settings, table: pd.DataFrame, make: Callable[..., Study]
) -> Iterator[Study]:
    """Yield studies of further folds; none if the split is given or by groups, or rows are many.

    Args:
        study: Study of the present split.
        settings: Settings of its run.
        table: Its table; the further studies get a copy with a column `split`.
        make: Function from settings and table to a study.
    """
    test_rows = np.flatnonzero(study.roles == TEST)
    other_rows = np.flatnonzero(np.isin(study.roles, (TRAIN, VALIDATION)))
    if "task" in table:  # other tasks only help to predict and are never held out
        task = table["task"].to_numpy()
        other_rows = other_rows[np.isin(task[other_rows], task[test_rows])]
    unconstrained = (
        SPLIT.name not in table and groups(table, getattr(settings, "split_by", "")) is None
    )
    count = round(len(other_rows) / max(len(test_rows), 1))
    if (
        settings.study not in STUDIES
        or not unconstrained
        or not 0 < len(test_rows) < FEW
        or count < 1
    ):
        return
    labels = table["label"].astype(str).to_numpy()[other_rows] if "label" in table else None
    splitter = KFold if labels is None or np.unique(labels).size < 2 else StratifiedKFold
    parts = [other_rows]
    if count > 1:
        folds = splitter(count, shuffle=True, random_state=settings.seed).split(other_rows, labels)
        parts = [other_rows[part] for _, part in folds]
    study_folds = getattr(
        study, "parts", None
    )  # defined by studies that hold out related rows together
    for part in parts if study_folds is None else study_folds:
        split = np.full(len(table), TRAIN, dtype=object)
        split[part] = TEST
        try:
            yield make(changed(settings, **QUIET), table.assign(**{SPLIT.name: split}))
        except BadInput:  # a class with too few rows outside this fold
            continue


def pooled(folds: list[Comparison]) -> Comparison:
    """Pool the problems of several folds into one; the rows of the first fold come first.

    Folds with other columns, such as components from fewer rows, are left out.
    """
    first = folds[0].problem
    matching = [
        c
        for c in folds
        if c.problem.x.shape[1] == first.x.shape[1] and c.problem.classes == first.classes
    ]
    common = [n for n in folds[0].others if all(n in c.others for c in matching)]
    others = {n: _concat([c.others[n] for c in matching]) for n in common}
    problems = [c.problem for c in matching]
    part, part_test = (
        np.repeat(np.arange(len(problems)), [len(getattr(p, name)) for p in problems])
        for name in ("y", "y_test")
    )
    x, y, x_test, y_test = (
        np.concatenate([getattr(p, name) for p in problems])
        for name in ("x", "y", "x_test", "y_test")
    )
    late, late_test = (_joined([getattr(p, n) for p in problems]) for n in ("late", "late_test"))
    problem = replace(
        first, x=x, y=y, x_test=x_test, y_test=y_test, part=part, part_test=part_test,
        late=late, late_test=late_test, shown=len(first.y_test),
    )  # fmt: skip
    return Comparison(problem, _concat([c.own for c in matching]), others)


def _concat(folds: Sequence[Predictive]) -> Predictive:
    """Join a method's predictions of all folds, which may have different scales of the target."""
    first, *others = folds
    if all(first.like(fold) for fold in others):
        return type(first).concat(folds)
    return JoinedPredictive(tuple(fold for fold in folds if isinstance(fold, ValuePredictive)))


def _joined(values: Sequence[np.ndarray | None]) -> np.ndarray | None:
    present = [v for v in values if v is not None]
    return np.concatenate(present) if len(present) == len(values) else None
