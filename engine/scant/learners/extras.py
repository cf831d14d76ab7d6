"""Methods of optional packages: CatBoost, NGBoost and TabPFN.

Boosting uses early stopping on a validation split, followed by a fit to all rows with this number
of trees. TabPFN uses weights of the user; nothing is downloaded.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.model_selection import train_test_split

from scant.errors import BadInput
from scant.learners.cost import CROSS_ROWS, ROUNDS
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

WEIGHTS = "SCANT_TABPFN"  # environment variable with a weights file of TabPFN or a folder
TABPFN_ROWS = 2_000  # maximum rows, for seconds on a CPU
TABPFN_COLUMNS = 500
TABPFN_CLASSES = 10
DEVIATION = (0.158655, 0.841345)  # normal quantile levels one standard deviation from the mean


def catboost(x: X, y: Float[ndarray, " n"], query: X) -> MeanVariance:
    """Predict mean and variance with CatBoost."""
    from catboost import CatBoostRegressor

    loss = {"loss_function": "RMSEWithUncertainty", "random_seed": 0, "verbose": 0}
    loss["allow_writing_files"] = False
    x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, random_state=0)
    search = CatBoostRegressor(**loss)
    search.fit(x_train, y_train, eval_set=(x_val, y_val), early_stopping_rounds=ROUNDS)
    model = CatBoostRegressor(search.get_best_iteration() + 1, **loss).fit(x, y)
    answer = np.asarray(model.predict(query))
    return answer[:, 0], np.maximum(answer[:, 1], FLOOR * np.var(y))


def catboost_of_classes(x: X, y: Int[ndarray, " n"], query: X, classes: int) -> ndarray:
    """Predict classes with CatBoost, with 300 trees since 1,000 are slow for many classes."""
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(300, random_seed=0, verbose=0, allow_writing_files=False)
    return probabilities(model, x, y, query, classes)


def ngboost(x: X, y: Float[ndarray, " n"], query: X) -> MeanVariance:
    """Predict a normal distribution with NGBoost, with early stopping for small tables."""
    from ngboost import NGBRegressor

    prepare = filled().fit(x)
    x, query = prepare.transform(x), prepare.transform(query)
    x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, random_state=0)
    search = NGBRegressor(random_state=0, verbose=False)
    search.fit(x_train, y_train, x_val, y_val, early_stopping_rounds=ROUNDS)
    model = NGBRegressor(n_estimators=search.best_val_loss_itr + 1, random_state=0, verbose=False)
    normal = model.fit(x, y).pred_dist(query).params
    return normal["loc"], np.maximum(normal["scale"] ** 2, FLOOR * np.var(y))


def tabpfn(x: X, y: Float[ndarray, " n"], query: X) -> MeanVariance:
    """Predict with TabPFN, with the variance from the quantiles at 16 and 84 %."""
    weights = tabpfn_weights("regressor")
    from tabpfn import TabPFNRegressor

    model = TabPFNRegressor(model_path=str(weights), random_state=0).fit(x, y)
    answer = model.predict(query, output_type="main", quantiles=list(DEVIATION))
    low, high = answer["quantiles"]
    variance = ((np.asarray(high) - np.asarray(low)) / 2) ** 2
    return np.asarray(answer["mean"]), np.maximum(variance, FLOOR * np.var(y))


def tabpfn_of_classes(x: X, y: Int[ndarray, " n"], query: X, classes: int) -> ndarray:
    """Predict classes with TabPFN."""
    weights = tabpfn_weights("classifier")
    from tabpfn import TabPFNClassifier

    model = TabPFNClassifier(model_path=str(weights), random_state=0)
    return probabilities(model, x, y, query, classes)


def tabpfn_weights(kind: str) -> Path:
    """Return the weights file of TabPFN in `SCANT_TABPFN`.

    Args:
        kind: "regressor" or "classifier", matched with file names; "" for any.

    Raises:
        BadInput: The package is not installed, or there is no such file.
    """
    given = Path(os.environ.get(WEIGHTS, ""))
    if not find_spec("tabpfn"):
        raise BadInput(
            f"There are weights of TabPFN ({given}), and the package is not installed; "
            "`pip install tabpfn` or the extra `rivals` installs it."
        )
    files = sorted(given.glob("*.ckpt")) if given.is_dir() else [given]
    other = {"regressor": "classifier", "classifier": "regressor"}.get(kind, "\0")
    fitting = [f for f in files if f.is_file() and other not in f.name]
    if not fitting:
        raise BadInput(
            f"{WEIGHTS} names no file with weights of TabPFN's {kind or 'models'}: {given}."
        )
    return next((f for f in fitting if kind in f.name), fitting[0])


def _small(rows: int, columns: int, classes: int) -> bool:
    return rows <= TABPFN_ROWS and columns <= TABPFN_COLUMNS and classes <= TABPFN_CLASSES


_WITH_WEIGHTS = 'model_path="the weights file")'
_EXTRAS = {
    "catboost": (
        tool("CatBoost", catboost,
             code("catboost", 'CatBoostRegressor(loss_function="RMSEWithUncertainty")',
                  filled=False), trees=True),
        tool("CatBoost", catboost_of_classes,
             code("catboost", "CatBoostClassifier()", PROBABLE, filled=False),
             lambda rows, columns, classes: rows * columns * classes <= BOOSTING_COST,
             classes=True),
    ),
    "ngboost": (
        tool("NGBoost", ngboost, code("ngboost", "NGBRegressor()", filled=False),
             lambda rows, columns, classes: rows <= CROSS_ROWS, trees=True),
        None,
    ),
    "tabpfn": (
        tool("TabPFN", tabpfn,
             code("tabpfn", f"TabPFNRegressor({_WITH_WEIGHTS}", filled=False), _small),
        tool("TabPFN", tabpfn_of_classes,
             code("tabpfn", f"TabPFNClassifier({_WITH_WEIGHTS}", PROBABLE, filled=False), _small,
             classes=True),
    ),
}  # fmt: skip


def extras(classes: int) -> list[Learner]:
    """Return the methods of installed packages; TabPFN also requires weights."""
    available = {name for name in ("catboost", "ngboost") if find_spec(name)}
    if os.environ.get(WEIGHTS):
        available.add("tabpfn")
    installed = [pair[1 if classes else 0] for name, pair in _EXTRAS.items() if name in available]
    return [learner for learner in installed if learner is not None]
