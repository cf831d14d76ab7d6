"""Methods for columns in views: kernels averaged over the views, the best single view, a line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float, Int
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.svm import SVC

from scant.deadline import Deadline
from scant.learners.learner import Capabilities, Learner, lacks_classes
from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.problem import Problem

Kernel = Float[np.ndarray, "_ _"]
COSTS = (0.3, 1.0, 3.0, 10.0)
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
MAX_ROWS = 3000  # learned from with a kernel of all pairs; of more, a random part


def averaged_kernels(name: str, seed: int) -> Learner:
    """Return an SVM of classes, or kernel ridge regression of values, with the views' mean kernel.

    Args:
        name: Name in the report.
        seed: Seed of folds and of the choice of rows.
    """
    return _learner(name, _averaged, seed, values=True, classes=True, views=True)


def best_view(name: str, seed: int) -> Learner:
    """Return an SVM on the view with the best average precision in cross-validation."""
    return _learner(name, _best_view, seed, classes=True, views=True)


def ridge(name: str, seed: int) -> Learner:
    """Return ridge regression on all columns, its penalty by cross-validation."""
    return _learner(name, _ridge, seed, values=True)


def _learner(
    name: str, fit: Callable[[int, Problem], Predictive], seed: int, **kinds: bool
) -> Learner:
    def answer(problem: Problem, _: Deadline) -> Predictive:
        return fit(seed, problem.learning_from(some(known(problem), seed)))

    return Learner(name, answer, Capabilities(censored=True, **kinds), lacks_classes)


def known(problem: Problem) -> Int[np.ndarray, " m"]:
    """Return the training rows that are not censored."""
    return np.arange(len(problem.y)) if problem.late is None else np.flatnonzero(~problem.late)


def some(rows: Int[np.ndarray, " m"], seed: int) -> Int[np.ndarray, " s"]:
    """Return at most `MAX_ROWS` rows, chosen at random."""
    if len(rows) <= MAX_ROWS:
        return rows
    return np.sort(np.random.default_rng([seed, 52]).permutation(rows)[:MAX_ROWS])


def _averaged(seed: int, problem: Problem) -> Predictive:
    among, across = (np.mean(K, axis=0) for K in kernels(problem))
    if problem.classes:
        return _svm(among, problem.y, across, seed)
    center = float(problem.y.mean())
    y = problem.y - center
    machines = [KernelRidge(alpha=a, kernel="precomputed") for a in PENALTIES]
    losses = [float(np.mean((cross_val_predict(m, among, y) - y) ** 2)) for m in machines]
    mean = machines[int(np.argmin(losses))].fit(among, y).predict(across) + center
    return MixturePredictive.gaussian(mean, np.full(len(mean), min(losses)))


def _best_view(seed: int, problem: Problem) -> Predictive:
    among, across = kernels(problem)
    folds = _folds(problem.y, seed)
    score = partial(cross_val_score, y=problem.y, cv=folds, scoring="average_precision")
    best = int(np.argmax([score(_machine(3.0), K).mean() for K in among]))
    return _svm(among[best], problem.y, across[best], seed)


def _ridge(seed: int, problem: Problem) -> Predictive:
    x, y = problem.x, problem.y
    line = RidgeCV(alphas=np.logspace(-2, 4, 13)).fit(x, y)
    rest = float(np.mean((line.predict(x) - y) ** 2)) * len(y) / max(len(y) - x.shape[1] - 1, 1)
    mean = line.predict(problem.x_test)
    return MixturePredictive.gaussian(mean, np.full(len(mean), max(rest, 1e-300)))


def kernels(problem: Problem) -> tuple[list[Kernel], list[Kernel]]:
    """Return RBF kernels of each view among training rows, and from these to held-out rows.

    The squared width is the mean squared distance between training rows.
    """
    assert problem.views is not None
    among, across = [], []
    for view in np.unique(problem.views):
        a, b = (x[:, problem.views == view] for x in (problem.x, problem.x_test))
        apart = _squares(a, a)
        width = max(float(apart.mean()), 1e-12)
        among.append(np.exp(-apart / width))
        across.append(np.exp(-_squares(b, a) / width))
    return among, across


def _svm(
    among: Kernel, y: Int[np.ndarray, " n"], across: Kernel, seed: int
) -> CategoricalPredictive:
    """Predict two classes by an SVM whose cost cross-validation chooses.

    Its decision values become probabilities by a logistic curve that is fitted to values from
    cross-validation (Platt 1999).
    """
    folds = _folds(y, seed)
    values = [
        cross_val_predict(_machine(c), among, y, cv=folds, method="decision_function")
        for c in COSTS
    ]
    curves = [LogisticRegression().fit(v[:, None], y) for v in values]
    losses = [
        -float(np.mean(curve.predict_log_proba(v[:, None])[np.arange(len(y)), y]))
        for curve, v in zip(curves, values)
    ]
    best = int(np.argmin(losses))
    decision = _machine(COSTS[best]).fit(among, y).decision_function(across)
    p = np.asarray(curves[best].predict_proba(decision[:, None])[:, 1])
    return CategoricalPredictive(np.stack([1 - p, p], 1))


def _machine(cost: float) -> SVC:
    return SVC(C=cost, kernel="precomputed")


def _folds(y: Int[np.ndarray, " n"], seed: int) -> StratifiedKFold:
    fewest = int(min((y == 0).sum(), (y == 1).sum()))
    return StratifiedKFold(max(2, min(5, fewest)), shuffle=True, random_state=seed)


def _squares(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"]) -> Kernel:
    square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    return np.asarray(np.maximum(square, 0.0))
