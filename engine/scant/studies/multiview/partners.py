"""Models with which the network's predictions are averaged: an exact GP and straight lines.

A network of sparse GPs finds which views and columns tell something, and bends what they tell; of
few rows, an exact GP with one lengthscale, or straight lines, may know more; where inputs tell
little, the share of a class or the mean of the values does. Rows that were left out, whole groups
of them, choose the weights (`scant.ensemble`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold

from scant.deadline import NEVER, Deadline
from scant.ensemble import Ensemble, Sharpened, Widened
from scant.ensemble.stacking import best_expected_threshold
from scant.inference import censored
from scant.models.left_out import ExactGP, Form, Indicators, select_kernel
from scant.predictive import CategoricalPredictive, MixturePredictive
from scant.studies.multiview.prepared import Prepared, Told
from scant.studies.multiview.preprocessing import ViewTransforms

FOLDS = 4
FEW_ROWS = 300  # up to which kernels are chosen in each fold, and censored values by many turns
ROUNDS = 8
MOST_ROWS = 2000  # that an exact GP learns from
NETWORK, EXACT, LINEAR, CONSTANT = NAMES = ("network", "exact GP", "linear model", "no input")
COSTS = (0.01, 0.1, 1.0, 10.0)  # of errors, in units of the logistic regression's penalty


class Partners:
    """An exact GP, straight lines (the mode of a GP with a linear kernel), and no input.

    Args:
        data: The run's rows.
        train: Of them, those to learn from.
        transforms: Of the views.
        forms: The kernels of the first two; None: they are chosen.
    """

    def __init__(
        self,
        data: Prepared,
        train: Int[np.ndarray, " m"],
        transforms: ViewTransforms,
        forms: tuple[Form, Form] | None = None,
    ) -> None:
        self.data, self.transforms = data, transforms
        self.classes = data.observed.task == "classification"
        if len(train) > MOST_ROWS:
            rng = np.random.default_rng([data.settings.seed, 56])
            train = np.sort(rng.permutation(train)[:MOST_ROWS])
        views, y = self.views(data.observed.x[train]), data.y[train]
        mean, self.variance, self.unseen = float(y.mean()), float(y.var()), 0.0
        if data.observed.task == "survival":
            late = ~data.observed.event[train]
            mean, self.variance, *start = censored.uncensored(y, late)
            if late.any():
                y, rest = behind(views, y, late, *start)
                self.unseen = float(rest.mean())
        targets = np.eye(2)[y.astype(int)] if self.classes else y[:, None]
        self.forms = forms or (
            select_kernel([(views, targets)]),
            select_kernel([(views, targets)], linear=True),
        )
        # Of classes as if each had been seen once more.
        self.mean = float((y.sum() + 1) / (len(y) + 2)) if self.classes else mean
        self.exact: Indicators | ExactGP
        self.line: GridSearchCV | ExactGP
        if self.classes:
            self.exact = Indicators.from_labels(self.forms[0], views, y.astype(int), 2)
            least = int(min(y.sum(), len(y) - y.sum()))
            folds = StratifiedKFold(max(2, min(5, least)), shuffle=True, random_state=0)
            search = GridSearchCV(
                LogisticRegression(max_iter=300), {"C": COSTS}, scoring="neg_log_loss", cv=folds
            )
            self.line = search.fit(np.hstack(views), y)
        else:
            self.exact, self.line = (ExactGP(form, views, targets) for form in self.forms)

    def views(self, x: Float[np.ndarray, "n f"]) -> list[np.ndarray]:
        """Views of rows."""
        return [v.cpu().numpy() for v in self.transforms.of(x, self.data.device)]

    def ask(self, x: Float[np.ndarray, "n f"]) -> dict[str, Told]:
        """What each says of rows, on the scale on which the target is learned."""
        views, one = self.views(x), np.ones(len(x))
        if isinstance(self.exact, Indicators):
            assert isinstance(self.line, GridSearchCV)
            share = np.tile([1 - self.mean, self.mean], (len(x), 1))
            p = self.exact.predict(views), self.line.predict_proba(np.hstack(views)), share
            return {n: CategoricalPredictive(q, information=0 * one) for n, q in zip(NAMES[1:], p)}
        assert isinstance(self.line, ExactGP)
        constant = self.variance * one
        told = {CONSTANT: MixturePredictive.gaussian(self.mean * one, constant, constant)}
        for name, gp in ((EXACT, self.exact), (LINEAR, self.line)):
            mean, variance = gp.predict(views)
            noise = (gp.height * gp.form.noise + self.unseen) * one
            told[name] = MixturePredictive.gaussian(mean[:, 0], variance + self.unseen, noise)
        return {name: told[name] for name in NAMES[1:]}


@dataclass(frozen=True)
class Average:
    """Weights of the network and of its partners.

    Attributes:
        ensemble: The weights.
        data: The run's rows, from whose training rows the partners learn.
        transforms: Of the views.
        forms: Kernels of the partners.
        threshold: On probabilities of class 1, from which a row is of it.
    """

    ensemble: Ensemble[Any]
    data: Prepared
    train: Int[np.ndarray, " m"]
    transforms: ViewTransforms
    forms: tuple[Form, Form]
    threshold: float = 0.5

    @cached_property
    def partners(self) -> Partners:
        """Learned from all training rows, when they are first asked."""
        return Partners(self.data, self.train, self.transforms, self.forms)

    @classmethod
    def fit(
        cls,
        data: Prepared,
        train: Int[np.ndarray, " m"],
        transforms: ViewTransforms,
        deadline: Deadline = NEVER,
    ) -> Average:
        """By predictions of parts of the rows that models of the other parts make.

        Args:
            data: The run's rows.
            train: Of them, those to learn from.
            transforms: Of the views.
            deadline: Of these parts, the first one excepted.
        """
        forms = Partners(data, train, transforms).forms
        asked, told = list[np.ndarray](), list[dict[str, Told]]()
        for inner, left in deadline.units(folds(data, train), "folds of the average", minimum=1):
            generator = torch.Generator().manual_seed(data.settings.seed)
            learner = data.learner_of(data.settings.model, train[inner], transforms, generator)
            learner.train(data.settings.max_steps)
            x = data.observed.x[train[left]]
            # Of few rows, kernels chosen by the rows left out too would seem better than they are.
            own = None if len(train) <= FEW_ROWS else forms
            others = Partners(data, train[inner], transforms, own).ask(x)
            told.append({NETWORK: data.ask(learner, transforms, x), **others})
            asked.append(train[left])
        left_out: dict[str, Any] = {n: _joined([each[n] for each in told]) for n in NAMES}
        rows = np.concatenate(asked)
        if data.observed.task == "classification":
            classes: Ensemble[Any] = Ensemble.fit(left_out, data.y[rows].astype(int), Sharpened)
            p = classes.combine(left_out).probabilities[:, 1]
            return cls(classes, data, train, transforms, forms, best_expected_threshold(p))
        late = ~data.observed.event[rows] if data.observed.task == "survival" else None
        values: Ensemble[Any] = Ensemble.fit(left_out, data.y[rows], Widened, bound=late)
        return cls(values, data, train, transforms, forms)

    def of(self, data: Prepared) -> Average:
        """The same weights and kernels, with partners that learn from other rows."""
        own = (data, data.train, data.transforms)
        return Average(self.ensemble, *own, self.forms, self.threshold)

    def combine(self, x: Float[np.ndarray, "n f"], told: Told) -> Told:
        """The average with what the network says of rows."""
        if not len(x):
            return told
        return self.ensemble.combine({NETWORK: told, **self.partners.ask(x)})

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        forms = [list(form) for form in self.forms]
        return {**self.ensemble.meta(), "forms": forms, "threshold": self.threshold}

    @classmethod
    def from_meta(cls, data: Prepared, meta: Mapping[str, Any] | None) -> Average | None:
        """The inverse of `meta`; None of a run without an average."""
        if not meta:
            return None
        classes = data.observed.task == "classification"
        if not classes and "power" in meta:  # of runs of before 0.3: a factor of the variance
            meta = {**meta, "widths": [float(np.log(meta["power"]))]}
        shape: Any = Sharpened if classes else Widened
        ensemble: Ensemble[Any] = Ensemble.from_meta(meta, NAMES, shape)
        exact, line = (Form(*form) for form in meta["forms"])
        own = (data, data.train, data.transforms)
        return cls(ensemble, *own, (exact, line), meta.get("threshold", 0.5))


def _joined(parts: Sequence[Any]) -> Any:
    return type(parts[0]).concat(parts)


def behind(
    views: list[np.ndarray],
    y: Float[np.ndarray, " n"],
    late: Bool[np.ndarray, " n"],
    value: Float[np.ndarray, " n"],
    rest: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Expectations of censored values given the views, and the variances that are left of them.

    By turns (Buckley and James 1979): straight lines learn from the expectations, and each value is
    expected beyond its bound by what they say of its row without it.

    Args:
        views: Of the rows.
        y: Values, or bounds.
        late: Which are bounds.
        value: Expectations to start from.
        rest: Variances likewise.
    """
    for _ in range(ROUNDS if len(y) <= FEW_ROWS else 2):
        line = ExactGP(select_kernel([(views, value[:, None])], linear=True), views, value[:, None])
        mean, variance = line.left_out
        variance = line.height * variance + rest.mean()
        value, rest = censored.expected(y, late, mean[:, 0], variance)
    return value, rest


def folds(
    data: Prepared, train: Int[np.ndarray, " m"]
) -> list[tuple[Int[np.ndarray, " k"], Int[np.ndarray, " l"]]]:
    """Parts of the rows to learn from and to ask of, whole groups where there are several."""
    kind = data.y[train] if data.observed.task == "classification" else np.zeros(len(train))
    group = data.observed.group[train]
    count = len(np.unique(group))
    if FOLDS <= count < len(train):
        found = list(GroupKFold(FOLDS).split(train, groups=group))
        if all(len(np.unique(kind[inner])) == len(np.unique(kind)) for inner, _ in found):
            return found
    parts = StratifiedKFold(FOLDS, shuffle=True, random_state=data.settings.seed)
    return list(parts.split(train, kind))
