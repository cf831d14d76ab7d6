"""scikit-learn's own checks, all of them, without an exemption.

Few steps and functions suffice for them: they are some 50 an estimator, of many fits each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from scant import sklearn as estimators
from scant.sklearn import (
    DFGPClassifier,
    DFGPRegressor,
    GPzRegressor,
    LaplaceGPClassifier,
    MOGPARClassifier,
    SCLVMClassifier,
)

EVERY = [
    GPzRegressor(max_iter=10),
    DFGPRegressor(max_iter=20),
    LaplaceGPClassifier(max_iter=10),
    DFGPClassifier(10, max_iter=20),
    MOGPARClassifier(4, 10, max_iter=20),
    SCLVMClassifier(1, 2, 4, max_iter=20),
]


def test_no_estimator_is_left_out() -> None:
    assert {type(e).__name__ for e in EVERY} == set(estimators.__all__)


@pytest.mark.slow
@parametrize_with_checks(EVERY)
def test_estimator_passes_scikit_learns_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
