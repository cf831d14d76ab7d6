"""Scales that suit a table: whether to take the target's logarithm and to limit outliers.

A straight line and a small GP are fitted with each; the one that predicts better decides.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_predict

from scant.inference.exact import left_out
from scant.models.anchored_gp import AnchoredGP
from scant.studies.auto import Choice

MOST_ROWS = 5000  # rows that a line is fitted to
GP_ROWS = 200
LEAST_GAIN = 0.02  # least gain of a choice, in nats a row

# Log densities of the left-out rows, and the mean squared error.
Tried = tuple[Float[ndarray, " _"], float]


def scale_of(x: Float[ndarray, "n d"], y: Float[ndarray, " n"]) -> Choice:
    """Choose whether to predict the logarithm of the target.

    It must raise the density of left-out rows, and must not raise the error either.
    """
    if not y.min() > 0:
        return Choice("no", "values of zero or below")
    what, ((plain, error), (log, log_error)) = _better(
        *([rule(x, y, is_log) for is_log in (False, True)] for rule in (straight, curved))
    )
    if _gains(log - plain, 2.0) and log_error < 1.05 * error:
        return Choice("yes", f"{what} predicts the logarithm better")
    return Choice("no", f"{what} predicts the logarithm no better")


def taming_of(
    limited: Float[ndarray, "n d"], x: Float[ndarray, "n d"], y: Float[ndarray, " n"], log: bool
) -> Choice:
    """Choose to limit outliers of the inputs, unless a line or a GP predicts worse."""
    if np.allclose(limited, x, equal_nan=True):
        return Choice("yes", "there are no outliers")
    what, ((with_limits, _), (without, _)) = _better(
        *([rule(inputs, y, log) for inputs in (limited, x)] for rule in (straight, curved))
    )
    if _gains(without - with_limits, 1.0):
        return Choice("no", f"{what} predicts better from all values as they are")
    return Choice("yes", f"{what} predicts no worse")


def straight(x: Float[ndarray, "n d"], y: Float[ndarray, " n"], log: bool) -> Tried:
    """Predict left-out rows by a straight line.

    Args:
        x: Inputs, NaN where missing; some rows are used if there are many.
        y: Targets.
        log: Whether the line predicts their logarithm.
    """
    x, values = _sample(x, np.log(y) if log else y, MOST_ROWS)
    mean = cross_val_predict(RidgeCV(alphas=np.logspace(-3, 5, 9)), x, values, cv=5)
    variance = np.full(len(mean), np.square(values - mean).mean() + 1e-300)
    return _scores(values, mean, variance, log)


def curved(x: Float[ndarray, "n d"], y: Float[ndarray, " n"], log: bool) -> Tried:
    """Predict rows, left out one by one, by a GP with a lengthscale for each input."""
    x, values = _sample(x, np.log(y) if log else y, GP_ROWS)
    centre, unit = values.mean(), values.std() or 1.0
    gp = AnchoredGP.fit("rbf", x, (values - centre) / unit)
    K = torch.as_tensor(gp.signal(x) + gp.noise * np.eye(len(x)))
    error, variance = left_out(K, torch.as_tensor((values - centre) / unit))
    mean = values - unit * error.numpy()
    return _scores(values, mean, unit**2 * variance.numpy(), log)


def _sample(
    x: Float[ndarray, "n d"], values: Float[ndarray, " n"], max_rows: int
) -> tuple[Float[ndarray, "k d"], Float[ndarray, " k"]]:
    """Sample rows in one fixed order, with missing values filled by the column's mean."""
    rows = np.random.default_rng(0).permutation(len(values))[:max_rows]
    return np.where(np.isnan(x), np.nanmean(x, axis=0), x)[rows], values[rows]


def _scores(
    values: Float[ndarray, " k"],
    mean: Float[ndarray, " k"],
    variance: Float[ndarray, " k"],
    log: bool,
) -> Tried:
    """Log densities and error in the target's unit."""
    y, predicted = values, mean
    if log:
        y, predicted = np.exp(values), np.exp(np.minimum(mean, values.max()) + variance / 2)
    density = -0.5 * (np.square(values - mean) / variance + np.log(variance))
    return density - (values if log else 0), float(np.mean((y - predicted) ** 2))


def _better(line: list[Tried], gp: list[Tried]) -> tuple[str, list[Tried]]:
    """Return the better method on the common rows, and its results."""
    n_common = len(gp[0][0])
    best = [max(density[:n_common].mean() for density, _ in tried) for tried in (line, gp)]
    return ("a GP", gp) if best[1] > best[0] + LEAST_GAIN else ("a line", line)


def _gains(gain: Float[ndarray, " k"], errors: float) -> bool:
    """Return True if densities rise beyond `errors` standard errors."""
    return bool(gain.mean() > max(LEAST_GAIN, errors * gain.std() / len(gain) ** 0.5))
