"""Calibration of predicted standard deviations on left-out rows, by level and input.

A model with homoscedastic noise is overconfident where values scatter more (rates where they are
high) and underconfident elsewhere. Predicted deviations are multiplied by a log-linear function of
the predicted level and the inputs, fitted to left-out rows by maximum a posteriori.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

# Prior deviations of the log variance factor: its constant, and its slopes per standard deviation
# of the level and of an input.
PRIOR_CONSTANT, PRIOR_LEVEL, PRIOR_INPUT = 0.5, 0.75, 0.35
MAX_DEVIATIONS = 3.0  # features are clipped to this many standard deviations
MIN_ROWS = 20  # with fewer left-out rows the factor stays one

Features = Float[np.ndarray, "n f"]


def features(level: Float[np.ndarray, " n"], inputs: Float[np.ndarray, "n d"]) -> Features:
    """Design matrix (1, level, inputs) of the log variance factor, from standardized columns."""
    columns = np.column_stack([level, inputs]).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)
    return np.column_stack([np.ones(len(level)), columns])


def factor(coefficients: Float[np.ndarray, " f"], x: Features) -> Float[np.ndarray, " n"]:
    """Factor of the predicted standard deviation of each row."""
    return np.asarray(np.exp(0.5 * x @ coefficients))


def fitted(
    log_density: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
    x: Features,
    prior_deviation: Float[np.ndarray, " f"] | None = None,
) -> Float[np.ndarray, " f"]:
    """Maximum a posteriori coefficients; zeros (a factor of one) if there are too few rows.

    Args:
        log_density: Function from the deviation factor to the log density of each left-out row, in
            nats.
        x: Features of the same rows.
        prior_deviation: Prior deviations of the coefficients; None: those of level and inputs.
    """
    n, f = x.shape
    if n < MIN_ROWS:
        return np.zeros(f)
    if prior_deviation is None:
        prior_deviation = np.array([PRIOR_CONSTANT, PRIOR_LEVEL] + [PRIOR_INPUT] * f)[:f]

    def cost(z: Float[np.ndarray, " f"]) -> float:
        return 0.5 * float(z @ z) - float(log_density(factor(z * prior_deviation, x)).sum())

    return np.asarray(
        minimize(cost, np.zeros(f), method="BFGS", options={"gtol": 1e-3}).x * prior_deviation
    )
