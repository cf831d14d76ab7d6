"""Base types and utilities of comparison methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

BOOSTING_COST = 3e7  # maximum of rows times columns times classes
FLOOR = 1e-4  # minimum predictive variance relative to the target's variance
PROBABLE = "predict_proba"

X = Float[ndarray, "_ d"]
MeanVariance = tuple[Float[ndarray, " t"], Float[ndarray, " t"] | None]


@dataclass(frozen=True)
class Rival:
    """Comparison method.

    Attributes:
        name: Name in the report.
        ask: Function `(x, y, x_test)` for regression, `(x, y, x_test, classes)` for classification.
        code: Two lines of Python code with `X`, `y` and `X_new`.
        takes: Function of the numbers of rows, columns and classes that returns True if a fit takes
            seconds and not minutes.
        images: True if the method is only for images.
        certain: True if probabilities are only 0 and 1.
    """

    name: str
    ask: Callable[..., Any]
    code: str
    takes: Callable[[int, int, int], bool] = lambda rows, columns, classes: True
    images: bool = False
    certain: bool = False


def filled(*steps: Any) -> Pipeline:
    """Return a pipeline with median imputation and missing-value indicators."""
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(imputer, *steps)


def probabilities(model: Any, label: Int[ndarray, " n"]) -> Callable[[X, X, int], ndarray]:
    """Return a function that fits a scikit-learn classifier and predicts probabilities."""

    def ask(x: X, query: X, classes: int) -> ndarray:
        p = np.zeros((len(query), classes))
        model.fit(x, label)
        p[:, model.classes_.astype(int)] = model.predict_proba(query)
        return p

    return ask


def code(
    module: str, model: str, call: str = "predict", filled: bool = True, also: str = ""
) -> str:
    """Return code in two lines, with imputation if `filled` and further imports `also`."""
    name = model.partition("(")[0]
    imports, pipeline = f"from {module} import {name}{also}", model
    if filled:
        imports += (
            "; from sklearn.impute import SimpleImputer; from sklearn.pipeline import "
            "make_pipeline; from sklearn.preprocessing import StandardScaler"
        )
        pipeline = f'make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), {model})'
    return f"{imports}\n{pipeline}.fit(X, y).{call}(X_new)"
