"""What a rival is, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

BOOSTING_COST = 3e7  # rows times columns times classes
FLOOR = 1e-4  # of the target's variance: no density is narrower
PROBABLE = "predict_proba"

X = Float[ndarray, "_ d"]
MeanVariance = tuple[Float[ndarray, " t"], Float[ndarray, " t"] | None]


@dataclass(frozen=True)
class Rival:
    """One other tool.

    Attributes:
        name: As the report's table names it.
        ask: `(x, y, x_test)` for values, `(x, y, x_test, classes)` for classes.
        code: Two lines of Python that do it; `X`, `y` and `X_new` are the reader's own.
        takes: Whether so many rows, columns and classes take seconds and not minutes.
        images: Whether it is for images only.
        certain: Whether its probabilities are only 0 and 1.
    """

    name: str
    ask: Callable[..., Any]
    code: str
    takes: Callable[[int, int, int], bool] = lambda rows, columns, classes: True
    images: bool = False
    certain: bool = False


def filled(*steps: Any) -> Pipeline:
    """A method of complete rows, behind medians and indicators of what was missing."""
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(imputer, *steps)


def probabilities(model: Any, label: Int[ndarray, " n"]) -> Callable[[X, X, int], ndarray]:
    """How a classifier of scikit-learn's form is fitted to rows and asked."""

    def ask(x: X, asked: X, classes: int) -> ndarray:
        p = np.zeros((len(asked), classes))
        model.fit(x, label)
        p[:, model.classes_.astype(int)] = model.predict_proba(asked)
        return p

    return ask


def code(
    module: str, model: str, call: str = "predict", filled: bool = True, also: str = ""
) -> str:
    """Two lines; `filled`: behind medians and standardization, `also`: further imports."""
    name = model.partition("(")[0]
    imports, pipeline = f"from {module} import {name}{also}", model
    if filled:
        imports += (
            "; from sklearn.impute import SimpleImputer; from sklearn.pipeline import "
            "make_pipeline; from sklearn.preprocessing import StandardScaler"
        )
        pipeline = f'make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), {model})'
    return f"{imports}\n{pipeline}.fit(X, y).{call}(X_new)"
