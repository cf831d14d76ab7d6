"""How wide errors of left-out rows are beside what was said of them, by level and place.

A model of one noise is too sure where values scatter more, as rates do where they are high, and too
unsure elsewhere. Left-out rows show it: the factor of a deviation that makes them the most probable
is found as an exponential of a straight line in the predicted level and the inputs, shrunk to one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

# Deviations before anything is known: of the log variance's constant, and of its slope by one
# standard deviation of the level, and of an input.
PRIOR_CONSTANT, PRIOR_LEVEL, PRIOR_INPUT = 0.5, 0.75, 0.35
FURTHEST = 3.0  # standard deviations; beyond them a slope goes no further
LEAST_ROWS = 20  # that tell anything

Features = Float[np.ndarray, "n f"]


def features(level: Float[np.ndarray, " n"], inputs: Float[np.ndarray, "n d"]) -> Features:
    """A row of those that `fitted` and `factor` take; level and inputs are standardized."""
    told = np.column_stack([level, inputs]).clip(-FURTHEST, FURTHEST)
    return np.column_stack([np.ones(len(level)), told])


def factor(coefficients: Float[np.ndarray, " f"], told: Features) -> Float[np.ndarray, " n"]:
    """Of the predicted deviations."""
    return np.asarray(np.exp(0.5 * told @ coefficients))


def fitted(
    log_density: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]], told: Features
) -> Float[np.ndarray, " f"]:
    """The most probable coefficients; zeros, which change nothing, where rows are few.

    Args:
        log_density: Of each left-out row, in nats, given factors of their predicted deviations.
        told: Of the same rows.
    """
    n, f = told.shape
    if n < LEAST_ROWS:
        return np.zeros(f)
    wide = np.array([PRIOR_CONSTANT, PRIOR_LEVEL] + [PRIOR_INPUT] * (f - 2))

    def cost(z: Float[np.ndarray, " f"]) -> float:
        return 0.5 * float(z @ z) - float(log_density(factor(z * wide, told)).sum())

    return np.asarray(minimize(cost, np.zeros(f), method="BFGS", options={"gtol": 1e-3}).x * wide)
