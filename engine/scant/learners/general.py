"""Comparison methods from scikit-learn with default settings.

Methods take training inputs, targets and query inputs, and return mean and variance (None without a
density) or class probabilities. Missing values are handled by gradient boosting itself; for other
methods they are replaced by medians, with indicator columns.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from scant.learners.cost import CROSS_ROWS, FOREST_ROWS, GP_ROWS, GPC_COST
from scant.learners.extras import extras
from scant.learners.learner import FLOOR, Learner, X
from scant.learners.tool import (
    BOOSTING_COST,
    PROBABLE,
    MeanVariance,
    code,
    filled,
    probabilities,
    tool,
)

SEARCH_ROWS = 200  # rows of a GP used for its hyperparameters
ARD = 20  # maximum columns for separate lengthscales

# --- values ---------------------------------------------------------------------------------------


def boosting(x: X, y: Float[ndarray, " n"], query: X) -> MeanVariance:
    """Gradient boosting of the mean, and of squared validation residuals."""
    model = HistGradientBoostingRegressor(random_state=0)
    mean = model.fit(x, y).predict(query)
    if len(y) <= CROSS_ROWS:
        x_val, residual = x, y - cross_val_predict(model, x, y, cv=min(5, len(y)))
    else:
        x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, random_state=0)
        residual = y_val - clone(model).fit(x_train, y_train).predict(x_val)
    square = np.maximum(residual**2, FLOOR * np.var(y) + 1e-300)
    # Few and shallow trees, since squared residuals are noisy.
    variance_model = HistGradientBoostingRegressor(
        loss="gamma", max_iter=40, max_leaf_nodes=8, min_samples_leaf=40, random_state=0
    ).fit(x_val, square)
    return mean, variance_model.predict(query)


def forest(x: X, y: Float[ndarray, " n"], query: X) -> MeanVariance:
    """Random forest with variance by the law of total variance.

    Hutter, Xu, Hoos & Leyton-Brown (2014, section 4.3.2).
    """
    model = filled(RandomForestRegressor(random_state=0, max_samples=_sampled(len(y))))
    model.fit(x, y)
    trees, rows = model[-1].estimators_, model[:-1].transform(query)
    leaves = [tree.apply(rows) for tree in trees]
    values = np.array([t.tree_.value[leaf, 0, 0] for t, leaf in zip(trees, leaves)])
    within = np.array([t.tree_.impurity[leaf] for t, leaf in zip(trees, leaves)])
    variance = values.var(0) + within.mean(0)
    return values.mean(0), np.maximum(variance, FLOOR * np.var(y))


def ridge(x: X, y: Float[ndarray, " n"], query: X) -> MeanVariance:
    """Ridge regression with penalty and variance by leave-one-out cross-validation."""
    model = filled(StandardScaler(), RidgeCV(alphas=np.logspace(-3, 5, 17))).fit(x, y)
    mean = model.predict(query)
    return mean, np.full(len(mean), max(-float(model[-1].best_score_), FLOOR * np.var(y)))


def process(x: X, y: Float[ndarray, " n"], query: X) -> MeanVariance:
    """Exact GP with hyperparameters from a subset of the rows, conditioned on all rows."""
    prepare = filled(StandardScaler()).fit(x)
    rows, queries = prepare.transform(x), prepare.transform(query)
    subset = np.random.default_rng(0).permutation(len(y))[:SEARCH_ROWS]
    scales = np.full(rows.shape[1] if rows.shape[1] <= ARD else 1, np.sqrt(rows.shape[1]))
    kernel = ConstantKernel(1.0) * RBF(scales, (1e-2, 1e4)) + WhiteKernel(0.1, (1e-6, 1e1))
    fitted_kernel = (
        GaussianProcessRegressor(kernel, normalize_y=True).fit(rows[subset], y[subset]).kernel_
    )
    model = GaussianProcessRegressor(fitted_kernel, optimizer=None, normalize_y=True).fit(rows, y)
    mean, std = model.predict(queries, return_std=True)
    return mean, np.maximum(std**2, FLOOR * np.var(y))


# --- classes --------------------------------------------------------------------------------------


def boosting_of_classes(x: X, y: Int[ndarray, " n"], query: X, classes: int) -> ndarray:
    """Gradient boosting classifier."""
    return probabilities(HistGradientBoostingClassifier(random_state=0), x, y, query, classes)


def forest_of_classes(x: X, y: Int[ndarray, " n"], query: X, classes: int) -> ndarray:
    """Random forest with one uniform pseudo-vote, to avoid probabilities of 0 and 1."""
    model = RandomForestClassifier(random_state=0, max_samples=_sampled(len(y)))
    votes = model.n_estimators
    p = probabilities(filled(model), x, y, query, classes)
    return (p * votes + 1 / classes) / (votes + 1)


def logistic(
    x: X, y: Int[ndarray, " n"], query: X, classes: int, max_iter: int = 500, scaled: bool = False
) -> ndarray:
    """Logistic regression on standardized columns; on the columns themselves if `scaled`."""
    steps = [] if scaled else [StandardScaler()]
    model = filled(*steps, LogisticRegression(max_iter=max_iter))
    return probabilities(model, x, y, query, classes)


def process_of_classes(x: X, y: Int[ndarray, " n"], query: X, classes: int) -> ndarray:
    """GP classifier with the Laplace approximation, one versus rest."""
    scale = float(np.sqrt(x.shape[1]))
    kernel = ConstantKernel(1.0) * RBF(scale, (1e-2, 1e4))
    model = filled(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0))
    return probabilities(model, x, y, query, classes)


def nearest(x: X, y: Int[ndarray, " n"], query: X, classes: int) -> ndarray:
    """Nearest neighbor classifier."""
    return probabilities(filled(KNeighborsClassifier(1)), x, y, query, classes)


def _sampled(rows: int) -> int | None:
    return FOREST_ROWS if rows > FOREST_ROWS else None


_GP = "sklearn.gaussian_process"
_VALUES = (
    tool("ridge regression", ridge,
         code("sklearn.linear_model", "RidgeCV(alphas=[0.01, 0.1, 1, 10, 100, 1000])")),
    tool("random forest", forest,
         code("sklearn.ensemble", "RandomForestRegressor()", filled=False), trees=True),
    tool("gradient boosting", boosting,
         code("sklearn.ensemble", "HistGradientBoostingRegressor()", filled=False), trees=True),
    tool("exact GP", process,
         code(_GP, "GaussianProcessRegressor(1.0 * RBF([2.0] * X.shape[1]) "
               "+ WhiteKernel(0.1), normalize_y=True)",
              also="; from sklearn.gaussian_process.kernels import RBF, WhiteKernel"),
         lambda rows, columns, classes: rows <= GP_ROWS),
)  # fmt: skip
classifier = partial(tool, classes=True)
NEAREST = classifier(
    "nearest neighbor", nearest,
    code("sklearn.neighbors", "KNeighborsClassifier(1)", filled=False), images=True, density=False,
)  # fmt: skip
_CLASSES = (
    classifier("logistic regression", logistic,
               code("sklearn.linear_model", "LogisticRegression(max_iter=500)", PROBABLE)),
    NEAREST,
    classifier("random forest", forest_of_classes,
               code("sklearn.ensemble", "RandomForestClassifier()", PROBABLE, filled=False)),
    classifier("gradient boosting", boosting_of_classes,
               code("sklearn.ensemble", "HistGradientBoostingClassifier()", PROBABLE, filled=False),
               lambda rows, columns, classes: rows * columns * classes <= BOOSTING_COST
               and classes <= 30),
    classifier("GP by Laplace's approximation", process_of_classes,
               code(_GP, "GaussianProcessClassifier()", PROBABLE),
               lambda rows, columns, classes: rows**2 * max(1, classes - 1) <= GPC_COST),
)  # fmt: skip


def general_tools(classes: int) -> list[Learner]:
    """Return tools for regression (`classes` 0) or classification, fastest first, then extras."""
    return [*(_CLASSES if classes else _VALUES), *extras(classes)]
