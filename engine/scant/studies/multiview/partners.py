"""Average of the network's predictions with those of an exact GP and a linear model.

A network of sparse GPs selects informative views and columns and is nonlinear. With few rows an
exact GP with one lengthscale, or a linear model, is often better; with uninformative inputs, the
share of a class or the mean of the values is. Cross-validation, by whole groups, fits the weights
(`scant.ensemble`).
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
FEW_ROWS = 300  # up to this number, each fold selects kernels, and `ROUNDS` iterations are made
ROUNDS = 8  # iterations over the expectations of censored values
MOST_ROWS = 2000  # training rows of an exact GP
NETWORK, EXACT, LINEAR, CONSTANT = NAMES = ("network", "exact GP", "linear model", "no input")
COSTS = (0.01, 0.1, 1.0, 10.0)  # candidates for C of the logistic regression


class Partners:
    """An exact GP, a linear model (the mode of a GP with a linear kernel), and a constant.

    Args:
        data: The run's rows.
        train: Training rows.
        transforms: Transforms of the views.
        forms: Kernels of the first two; None: they are selected.
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
            censored_rows = ~data.observed.event[train]
            mean, self.variance, *initial = censored.uncensored(y, censored_rows)
            if censored_rows.any():
                y, residual = behind(views, y, censored_rows, *initial)
                self.unseen = float(residual.mean())
        targets = np.eye(2)[y.astype(int)] if self.classes else y[:, None]
        self.forms = forms or (
            select_kernel([(views, targets)]),
            select_kernel([(views, targets)], linear=True),
        )
        # Class frequency with one more row of each class (Laplace's rule of succession).
        self.mean = float((y.sum() + 1) / (len(y) + 2)) if self.classes else mean
        self.exact: Indicators | ExactGP
        self.line: GridSearchCV | ExactGP
        if self.classes:
            self.exact = Indicators.from_labels(self.forms[0], views, y.astype(int), 2)
            n_smallest = int(min(y.sum(), len(y) - y.sum()))
            folds = StratifiedKFold(max(2, min(5, n_smallest)), shuffle=True, random_state=0)
            search = GridSearchCV(
                LogisticRegression(max_iter=300), {"C": COSTS}, scoring="neg_log_loss", cv=folds
            )
            self.line = search.fit(np.hstack(views), y)
        else:
            self.exact, self.line = (ExactGP(form, views, targets) for form in self.forms)

    def views(self, x: Float[np.ndarray, "n f"]) -> list[np.ndarray]:
        """Transform rows."""
        return [v.cpu().numpy() for v in self.transforms.of(x, self.data.device)]

    def ask(self, x: Float[np.ndarray, "n f"]) -> dict[str, Told]:
        """Predictive distributions of each model, on the scale of the network."""
        views, ones = self.views(x), np.ones(len(x))
        if isinstance(self.exact, Indicators):
            assert isinstance(self.line, GridSearchCV)
            share = np.tile([1 - self.mean, self.mean], (len(x), 1))
            p = self.exact.predict(views), self.line.predict_proba(np.hstack(views)), share
            return {n: CategoricalPredictive(q, information=0 * ones) for n, q in zip(NAMES[1:], p)}
        assert isinstance(self.line, ExactGP)
        constant = self.variance * ones
        predictions = {CONSTANT: MixturePredictive.gaussian(self.mean * ones, constant, constant)}
        for name, gp in ((EXACT, self.exact), (LINEAR, self.line)):
            mean, variance = gp.predict(views)
            noise = (gp.height * gp.form.noise + self.unseen) * ones
            predictions[name] = MixturePredictive.gaussian(
                mean[:, 0], variance + self.unseen, noise
            )
        return {name: predictions[name] for name in NAMES[1:]}


@dataclass(frozen=True)
class Average:
    """Weighted average of the network and the other models.

    Attributes:
        ensemble: The weights.
        data: The run's rows.
        train: Training rows of the other models.
        transforms: Transforms of the views.
        forms: Kernels of the other models.
        threshold: Minimum probability of class 1 for the prediction of class 1.
    """

    ensemble: Ensemble[Any]
    data: Prepared
    train: Int[np.ndarray, " m"]
    transforms: ViewTransforms
    forms: tuple[Form, Form]
    threshold: float = 0.5

    @cached_property
    def partners(self) -> Partners:
        """The other models, fitted to all training rows on first access."""
        return Partners(self.data, self.train, self.transforms, self.forms)

    @classmethod
    def fit(
        cls,
        data: Prepared,
        train: Int[np.ndarray, " m"],
        transforms: ViewTransforms,
        deadline: Deadline = NEVER,
    ) -> Average:
        """Fit the weights to cross-validated predictions.

        Args:
            data: The run's rows.
            train: Training rows.
            transforms: Transforms of the views.
            deadline: Deadline of all folds but the first.
        """
        forms = Partners(data, train, transforms).forms
        left_out_rows, fold_predictions = list[np.ndarray](), list[dict[str, Told]]()
        for inner, test in deadline.units(folds(data, train), "folds of the average", minimum=1):
            generator = torch.Generator().manual_seed(data.settings.seed)
            learner = data.learner_of(data.settings.model, train[inner], transforms, generator)
            learner.train(data.settings.max_steps)
            x = data.observed.x[train[test]]
            # With few rows, kernels that were also selected on the left-out rows look too good.
            fixed_forms = None if len(train) <= FEW_ROWS else forms
            others = Partners(data, train[inner], transforms, fixed_forms).ask(x)
            fold_predictions.append({NETWORK: data.ask(learner, transforms, x), **others})
            left_out_rows.append(train[test])
        left_out: dict[str, Any] = {
            n: _joined([fold[n] for fold in fold_predictions]) for n in NAMES
        }
        rows = np.concatenate(left_out_rows)
        if data.observed.task == "classification":
            classes: Ensemble[Any] = Ensemble.fit(left_out, data.y[rows].astype(int), Sharpened)
            p = classes.combine(left_out).probabilities[:, 1]
            return cls(classes, data, train, transforms, forms, best_expected_threshold(p))
        censored_rows = ~data.observed.event[rows] if data.observed.task == "survival" else None
        values: Ensemble[Any] = Ensemble.fit(left_out, data.y[rows], Widened, bound=censored_rows)
        return cls(values, data, train, transforms, forms)

    def of(self, data: Prepared) -> Average:
        """Return the same weights and kernels with the other models fitted to other rows."""
        arguments = (data, data.train, data.transforms)
        return Average(self.ensemble, *arguments, self.forms, self.threshold)

    def combine(self, x: Float[np.ndarray, "n f"], prediction: Told) -> Told:
        """Average predictions with those of the other models."""
        if not len(x):
            return prediction
        return self.ensemble.combine({NETWORK: prediction, **self.partners.ask(x)})

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        forms = [list(form) for form in self.forms]
        return {**self.ensemble.meta(), "forms": forms, "threshold": self.threshold}

    @classmethod
    def from_meta(cls, data: Prepared, meta: Mapping[str, Any] | None) -> Average | None:
        """Inverse of `meta`; None for a run without an average."""
        if not meta:
            return None
        classes = data.observed.task == "classification"
        if not classes and "power" in meta:  # runs before 0.3: a factor of the variance
            meta = {**meta, "widths": [float(np.log(meta["power"]))]}
        shape: Any = Sharpened if classes else Widened
        ensemble: Ensemble[Any] = Ensemble.from_meta(meta, NAMES, shape)
        exact, linear = (Form(*form) for form in meta["forms"])
        arguments = (data, data.train, data.transforms)
        return cls(ensemble, *arguments, (exact, linear), meta.get("threshold", 0.5))


def _joined(parts: Sequence[Any]) -> Any:
    return type(parts[0]).concat(parts)


def behind(
    views: list[np.ndarray],
    y: Float[np.ndarray, " n"],
    censored_rows: Bool[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    residual: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Expectations and variances of censored values given the views.

    Iterates (Buckley and James 1979): fit a linear model to the expectations, then update each one
    beyond its bound from the leave-one-out prediction.

    Args:
        views: Views of the rows.
        y: Values, or bounds.
        censored_rows: True where `y` is a bound.
        values: Initial expectations.
        residual: Initial variances.
    """
    for _ in range(ROUNDS if len(y) <= FEW_ROWS else 2):
        linear = ExactGP(
            select_kernel([(views, values[:, None])], linear=True), views, values[:, None]
        )
        mean, variance = linear.left_out
        variance = linear.height * variance + residual.mean()
        values, residual = censored.expected(y, censored_rows, mean[:, 0], variance)
    return values, residual


def folds(
    data: Prepared, train: Int[np.ndarray, " m"]
) -> list[tuple[Int[np.ndarray, " k"], Int[np.ndarray, " l"]]]:
    """Folds as pairs of training and test rows, by whole groups if there are several."""
    strata = data.y[train] if data.observed.task == "classification" else np.zeros(len(train))
    group = data.observed.group[train]
    count = len(np.unique(group))
    if FOLDS <= count < len(train):
        by_group = list(GroupKFold(FOLDS).split(train, groups=group))
        if all(len(np.unique(strata[inner])) == len(np.unique(strata)) for inner, _ in by_group):
            return by_group
    parts = StratifiedKFold(FOLDS, shuffle=True, random_state=data.settings.seed)
    return list(parts.split(train, strata))
