"""Methods beside the network: kernels averaged over the views, one view alone, straight lines."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.svm import SVC

from scant.studies.multiview.prepared import Prepared, Told
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.settings import MODELS

Kernel = Float[np.ndarray, "_ _"]
COSTS = (0.3, 1.0, 3.0, 10.0)
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
MOST_ROWS = 3000  # learned from with a kernel of all pairs; of more, a random part


def kernels(
    data: Prepared,
    transforms: ViewTransforms,
    train: Int[np.ndarray, " n"],
    query: Int[np.ndarray, " t"],
) -> tuple[list[Kernel], list[Kernel]]:
    """Among the rows to learn from, and from those to the rows asked, by view.

    RBF kernels of standardized columns, as wide as the rows are apart.
    """
    among, across = [], []
    views = zip(
        transforms.of(data.observed.x[train], data.device),
        transforms.of(data.observed.x[query], data.device),
    )
    for own, other in views:
        a, b = own.cpu().numpy(), other.cpu().numpy()
        apart = _squares(a, a)
        width = max(float(apart.mean()), 1e-12)
        among.append(np.exp(-apart / width))
        across.append(np.exp(-_squares(b, a) / width))
    return among, across


def averaged(
    data: Prepared,
    transforms: ViewTransforms,
    train: Int[np.ndarray, " n"],
    query: Int[np.ndarray, " t"],
) -> Told:
    """SVM-UA of classes, kernel ridge regression of values: the mean of the views' kernels.

    Args:
        data: The run's rows.
        transforms: The views, as its models see them.
        train: Rows to learn from; censored ones are left out.
        query: Rows to predict.

    Returns:
        Distributions of the target on the scale of learning, as `Prepared.ask` gives them.
    """
    train = teaching(data, train)
    among, across = (np.mean(K, axis=0) for K in kernels(data, transforms, train, query))
    y = data.y[train]
    if data.observed.task == "classification":
        p = chances(among, y, across, data.settings.seed)
        return data.told(p, p * (1 - p))
    center = float(y.mean())
    scores = [
        float(
            np.mean(
                (
                    cross_val_predict(KernelRidge(alpha=a, kernel="precomputed"), among, y - center)
                    - (y - center)
                )
                ** 2
            )
        )
        for a in PENALTIES
    ]
    best = KernelRidge(alpha=PENALTIES[int(np.argmin(scores))], kernel="precomputed")
    mean = best.fit(among, y - center).predict(across) + center
    return data.told(mean, np.full(len(query), min(scores)))


def single(
    data: Prepared,
    transforms: ViewTransforms,
    train: Int[np.ndarray, " n"],
    query: Int[np.ndarray, " t"],
) -> Told:
    """The same support vector machine on one view: that which tells most in cross-validation."""
    train = teaching(data, train)
    y = data.y[train]
    among, across = kernels(data, transforms, train, query)
    folds = _folds(y, data.settings.seed)
    lines = [
        cross_val_score(_machine(3.0), K, y, cv=folds, scoring="average_precision").mean()
        for K in among
    ]
    best = int(np.argmax(lines))
    p = chances(among[best], y, across[best], data.settings.seed)
    return data.told(p, p * (1 - p))


def linear(
    data: Prepared,
    transforms: ViewTransforms,
    train: Int[np.ndarray, " n"],
    query: Int[np.ndarray, " t"],
) -> Told:
    """Ridge regression on all features, its penalty by cross-validation."""
    train = teaching(data, train)
    x, z = (
        np.concatenate(
            [v.cpu().numpy() for v in transforms.of(data.observed.x[own], data.device)], axis=1
        )
        for own in (train, query)
    )
    y = data.y[train]
    line = RidgeCV(alphas=np.logspace(-2, 4, 13)).fit(x, y)
    rest = float(np.mean((line.predict(x) - y) ** 2)) * len(y) / max(len(y) - x.shape[1] - 1, 1)
    return data.told(line.predict(z), np.full(len(query), max(rest, 1e-300)))


def chances(
    among: Kernel, y: Float[np.ndarray, " n"], across: Kernel, seed: int
) -> Float[np.ndarray, " t"]:
    """Probabilities of class 1 by a support vector machine whose cost cross-validation chooses.

    Its decision values become probabilities by a logistic curve that is fitted to values which
    cross-validation gave (Platt 1999).
    """
    folds = _folds(y, seed)
    values = [
        cross_val_predict(_machine(c), among, y, cv=folds, method="decision_function")
        for c in COSTS
    ]
    curves = [LogisticRegression().fit(v[:, None], y) for v in values]
    losses = [
        -float(np.mean(curve.predict_log_proba(v[:, None])[np.arange(len(y)), y.astype(int)]))
        for curve, v in zip(curves, values)
    ]
    best = int(np.argmin(losses))
    machine = _machine(COSTS[best]).fit(among, y)
    return np.asarray(curves[best].predict_proba(machine.decision_function(across)[:, None])[:, 1])


def teaching(data: Prepared, train: Int[np.ndarray, " n"]) -> Int[np.ndarray, " m"]:
    """The rows whose target is known whole, and of many a random part."""
    known = _known(data, train)
    if len(known) <= MOST_ROWS:
        return known
    rng = np.random.default_rng([data.settings.seed, 52])
    return np.sort(rng.permutation(known)[:MOST_ROWS])


def notes(data: Prepared) -> tuple[str, ...]:
    """Which training rows the compared methods do not learn from, and which method is not there."""
    methods, n = data.metadata["methods"], len(data.train)
    if len(methods) < 2:
        return ()
    made, others, known = [], " and ".join(methods[-2:]), len(_known(data, data.train))
    if known < n:
        made.append(f"{others} learn from the {known:,} of {n:,} rows whose time is not censored.")
    if known > MOST_ROWS:
        made.append(
            f"{others} learn from {MOST_ROWS:,} of {known:,} rows, drawn at random: a kernel of "
            "all pairs of more takes too long."
        )
    process = MODELS["student-t"]
    if (
        data.observed.task != "classification"
        and data.settings.model != "student-t"
        and process not in methods
    ):
        made.append(
            f"{process} is left out of the comparison: its cost is cubic, and {n:,} rows are too "
            "many for it."
        )
    return tuple(made)


def _known(data: Prepared, train: Int[np.ndarray, " n"]) -> Int[np.ndarray, " m"]:
    return train[data.observed.event[train]] if data.observed.task == "survival" else train


def _machine(cost: float) -> SVC:
    return SVC(C=cost, kernel="precomputed")


def _folds(y: Float[np.ndarray, " n"], seed: int) -> StratifiedKFold:
    least = int(min((y == 0).sum(), (y == 1).sum()))
    return StratifiedKFold(max(2, min(5, least)), shuffle=True, random_state=seed)


def _squares(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"]) -> Kernel:
    square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    return np.asarray(np.maximum(square, 0.0))
