"""An average of the network's predictions with those of an exact GP and of straight lines.

A network of sparse GPs finds which views and columns tell something, and bends what they tell; of
few rows, an exact GP with one lengthscale, or straight lines, may know more; where inputs tell
little, the share of a class or the mean of the values does. Rows that were left out, whole groups
of them, choose the weights (`scant.inference.stacking`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold

from scant.deadline import NEVER, Deadline
from scant.inference import censored, stacking
from scant.models.left_out import ExactGP, Form, Indicators, select_kernel
from scant.studies.multiview.prepared import MeanVariance, Prepared
from scant.studies.multiview.preprocessing import ViewTransforms

FOLDS = 4
FEW_ROWS = 300  # up to which kernels are chosen in each fold, and censored values by many turns
ROUNDS = 8
MOST_ROWS = 2000  # that an exact GP learns from
NAMES = ("network", "exact GP", "linear model", "no input")
COSTS = (0.01, 0.1, 1.0, 10.0)  # of errors, in units of the logistic regression's penalty
SURE = 10.0  # rows for which predicted variances count as right from the start


class Members:
    """An exact GP, and straight lines: the mode of a GP with a linear kernel.

    Args:
        data: The run's rows.
        train: Of them, those to learn from.
        transforms: Of the views.
        forms: The kernels; None: they are chosen.
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
        views, y = self.seen(train), data.y[train]
        mean, variance, unseen = float(y.mean()), float(y.var()), 0.0
        if data.observed.task == "survival":
            late = ~data.observed.event[train]
            mean, variance, *start = censored.uncensored(y, late)
            if late.any():
                y, rest = behind(views, y, late, *start)
                unseen = float(rest.mean())
        targets = np.eye(2)[y.astype(int)] if self.classes else y[:, None]
        self.forms = forms or (
            select_kernel([(views, targets)]),
            select_kernel([(views, targets)], linear=True),
        )
        # Of classes as if each had been seen once more.
        self.mean = float((y.sum() + 1) / (len(y) + 2)) if self.classes else mean
        self.variance, self.unseen = variance, unseen
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

    def seen(self, rows: Int[np.ndarray, " n"]) -> list[np.ndarray]:
        """Views of the table's rows."""
        return self.views(self.data.observed.x[rows])

    def views(self, x: Float[np.ndarray, "n f"]) -> list[np.ndarray]:
        """Views of rows."""
        return [v.cpu().numpy() for v in self.transforms.of(x, self.data.device)]

    def ask(self, x: Float[np.ndarray, "n f"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, variances and their part that is noise, by member."""
        views = self.views(x)
        if isinstance(self.exact, Indicators):
            share = np.full(len(x), self.mean)
            p = np.stack([self.exact.predict(views)[:, 1], self._logistic(views), share])
            return p, p * (1 - p), p * (1 - p)
        asked = [
            (m, v + self.unseen) for m, v in (gp.predict(views) for gp in (self.exact, self.line))
        ]
        same = np.ones(len(x))
        noise = [(gp.height * gp.form.noise + self.unseen) * same for gp in (self.exact, self.line)]
        return (
            np.stack([*(mean[:, 0] for mean, _ in asked), self.mean * same]),
            np.stack([*(variance for _, variance in asked), self.variance * same]),
            np.stack([*noise, self.variance * same]),
        )

    def _logistic(self, views: list[np.ndarray]) -> Float[np.ndarray, " n"]:
        assert isinstance(self.line, GridSearchCV)
        return np.asarray(self.line.predict_proba(np.hstack(views))[:, 1])


@dataclass(frozen=True)
class Stack(stacking.Average):
    """Weights of the network and of the members beside it.

    Attributes:
        data: The run's rows.
        train: Of them, those that it learned from.
        transforms: Of the views.
        forms: Of the exact GP and, of values, of the straight lines.
        power: To which averaged probabilities of classes are raised; what averaged variances of
            values are multiplied by, so that left-out errors are as large as they say.
        threshold: On probabilities of class 1, from which a row is of it.
    """

    names = NAMES

    data: Prepared
    train: Int[np.ndarray, " m"]
    transforms: ViewTransforms
    forms: tuple[Form, Form]
    power: float
    threshold: float = 0.5

    @cached_property
    def members(self) -> Members:
        """Learned from all training rows, when they are first asked."""
        return Members(self.data, self.train, self.transforms, self.forms)

    @classmethod
    def weighed(
        cls,
        data: Prepared,
        train: Int[np.ndarray, " m"],
        transforms: ViewTransforms,
        deadline: Deadline = NEVER,
    ) -> Stack:
        """By predictions of parts of the rows that models of the other parts make.

        Args:
            data: The run's rows.
            train: Of them, those to learn from.
            transforms: Of the views.
            deadline: Of these parts, the first one excepted.
        """
        forms = Members(data, train, transforms).forms
        means, variances = np.full((2, len(NAMES), len(train)), np.nan)
        parts = folds(data, train)
        for inner, left in deadline.units(parts, "folds of the average", minimum=1):
            generator = torch.Generator().manual_seed(data.settings.seed)
            learner = data.learner_of(data.settings.model, train[inner], transforms, generator)
            learner.train(data.settings.max_steps)
            x = data.observed.x[train[left]]
            means[0, left], variances[0, left] = data.ask(learner, transforms, x)
            # Of few rows, kernels chosen by the rows left out too would seem better than they are.
            own = None if len(train) <= FEW_ROWS else forms
            others = Members(data, train[inner], transforms, own).ask(x)
            means[1:, left], variances[1:, left] = others[:2]
        asked = np.isfinite(means).all(0)
        rows, means, variances = train[asked], means[:, asked], variances[:, asked]
        y, late = data.y[rows], ~data.observed.event[rows] & (data.observed.task == "survival")
        classes, threshold = data.observed.task == "classification", 0.5
        if classes:
            density = np.log(np.clip(np.where(y == 1, means, 1 - means), 1e-12, None))
        else:
            density = censored.log_density(y, means, variances, late)
        weights = stacking.weights(density.T)
        mean, variance = moments(weights, means, variances)
        if classes:
            both = np.stack([1 - mean, mean], 1)
            power = stacking.sharpness(both, y.astype(int))
            p = stacking.sharpened(both, power)[:, 1]
            threshold = stacking.best_expected_threshold(p)
        else:
            power = censored.scale(y, mean, variance, late, SURE)
        return cls(tuple(weights.tolist()), data, train, transforms, forms, power, threshold)

    def mixed(self, x: Float[np.ndarray, "n f"], told: MeanVariance) -> MeanVariance:
        """The average with what the network says of rows."""
        if not len(x):
            return told
        means, variances, _ = self.members.ask(x)
        mean, variance = moments(
            np.array(self.weights), np.vstack([told[0], means]), np.vstack([told[1], variances])
        )
        if self.members.classes:
            mean = stacking.sharpened(np.stack([1 - mean, mean], 1), self.power)[:, 1]
            return mean, mean * (1 - mean)
        return mean, self.power * variance

    def known(
        self, x: Float[np.ndarray, "n f"], noise: Float[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Of the variance of values, what more data would not remove, on their own scale.

        Args:
            x: Rows.
            noise: The same of the network alone.
        """
        every = np.vstack([noise, self.members.ask(x)[2]])
        return np.asarray(self.power * np.tensordot(self.weights, every, 1))

    def meta(self) -> dict[str, Any]:
        """What `read` needs, ready for JSON."""
        forms = [list(form) for form in self.forms]
        own = {"power": self.power, "threshold": self.threshold}
        return {"weights": list(self.weights), "forms": forms, **own}

    @classmethod
    def read(cls, data: Prepared, meta: Mapping[str, Any] | None) -> Stack | None:
        """The inverse of `meta`; None of a run without an average."""
        if not meta:
            return None
        exact, line = (Form(*form) for form in meta["forms"])
        own = (exact, line), float(meta["power"]), meta.get("threshold", 0.5)
        return cls(tuple(meta["weights"]), data, data.train, data.transforms, *own)


def moments(
    weights: Float[np.ndarray, " k"],
    means: Float[np.ndarray, "k n"],
    variances: Float[np.ndarray, "k n"],
) -> MeanVariance:
    """Mean and variance of a mixture."""
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)


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
