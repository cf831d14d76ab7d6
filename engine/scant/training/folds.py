"""Cross-validation of a small table: further fits, each of which holds other rows out.

Of a split with few held-out rows nobody can say who predicts better. The rows that the split has
learned from are divided into folds of about its size, and each is held out in a fit of its own, as
far as time allows; this run and its rivals are then judged on all rows that were held out once.
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
    """The studies of further folds; none where rows are marked or held out in groups, or not few.

    Args:
        study: Of the split that is there.
        settings: Of its run.
        table: Its own; the studies get a copy with a column `split`.
        make: Of settings and table a study.
    """
    held = np.flatnonzero(study.roles == TEST)
    rest = np.flatnonzero(np.isin(study.roles, (TRAIN, VALIDATION)))
    if "task" in table:  # other tasks help to predict, and are not asked about
        task = table["task"].to_numpy()
        rest = rest[np.isin(task[rest], task[held])]
    free = SPLIT.name not in table and groups(table, getattr(settings, "split_by", "")) is None
    count = round(len(rest) / max(len(held), 1))
    if settings.study not in STUDIES or not free or not 0 < len(held) < FEW or count < 1:
        return
    words = table["label"].astype(str).to_numpy()[rest] if "label" in table else None
    kind = KFold if words is None or np.unique(words).size < 2 else StratifiedKFold
    parts = [rest]
    if count > 1:
        cut = kind(count, shuffle=True, random_state=settings.seed).split(rest, words)
        parts = [rest[part] for _, part in cut]
    own = getattr(study, "parts", None)  # of a study that holds out what belongs together
    for part in parts if own is None else own:
        split = np.full(len(table), TRAIN, dtype=object)
        split[part] = TEST
        try:
            yield make(changed(settings, **QUIET), table.assign(**{SPLIT.name: split}))
        except BadInput:  # a class with too few rows beside this fold
            continue


def pooled(folds: list[Comparison]) -> Comparison:
    """One problem of several, each learned and asked by itself; the first one's rows come first.

    Folds whose columns are others, such as components of fewer rows, are left out.
    """
    first = folds[0].problem
    alike = [
        c
        for c in folds
        if c.problem.x.shape[1] == first.x.shape[1] and c.problem.classes == first.classes
    ]
    everywhere = [n for n in folds[0].others if all(n in c.others for c in alike)]
    others = {n: _concat([c.others[n] for c in alike]) for n in everywhere}
    asked = [c.problem for c in alike]
    part, part_test = (
        np.repeat(np.arange(len(asked)), [len(getattr(p, name)) for p in asked])
        for name in ("y", "y_test")
    )
    x, y, x_test, y_test = (
        np.concatenate([getattr(p, name) for p in asked]) for name in ("x", "y", "x_test", "y_test")
    )
    late, late_test = (_joined([getattr(p, n) for p in asked]) for n in ("late", "late_test"))
    problem = replace(
        first, x=x, y=y, x_test=x_test, y_test=y_test, part=part, part_test=part_test,
        late=late, late_test=late_test, shown=len(first.y_test),
    )  # fmt: skip
    return Comparison(problem, _concat([c.own for c in alike]), others)


def _concat(folds: Sequence[Predictive]) -> Predictive:
    """A method's predictions in all folds, each of which chooses its own scale of the target."""
    first, *others = folds
    if all(first.like(fold) for fold in others):
        return type(first).concat(folds)
    return JoinedPredictive(tuple(fold for fold in folds if isinstance(fold, ValuePredictive)))


def _joined(values: Sequence[np.ndarray | None]) -> np.ndarray | None:
    there = [v for v in values if v is not None]
    return np.concatenate(there) if len(there) == len(values) else None
