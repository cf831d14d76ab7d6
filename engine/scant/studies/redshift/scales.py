"""Scales that suit a table: whether to take the target's logarithm, and to limit wild inputs.

A straight line and a small GP try each of them; the one that predicts better decides.
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

MOST_ROWS = 5000  # that a line is tried on
GP_ROWS = 200
LEAST_GAIN = 0.02  # nats a row that a choice must bring

# Densities of as many unseen rows as were tried, and the mean squared error.
Tried = tuple[Float[ndarray, " _"], float]


def scale_of(x: Float[ndarray, "n d"], y: Float[ndarray, " n"]) -> Choice:
    """Whether the logarithm of the target is predicted better than the target.

    By the density of rows left out; the error must not be larger, either.
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
    tamed: Float[ndarray, "n d"], x: Float[ndarray, "n d"], y: Float[ndarray, " n"], log: bool
) -> Choice:
    """Whether wild values of the inputs are better limited: unless a line or a GP says no."""
    if np.allclose(tamed, x, equal_nan=True):
        return Choice("yes", "there are no outliers")
    what, ((limited, _), (plain, _)) = _better(
        *([rule(inputs, y, log) for inputs in (tamed, x)] for rule in (straight, curved))
    )
    if _gains(plain - limited, 1.0):
        return Choice("no", f"{what} predicts better from all values as they are")
    return Choice("yes", f"{what} predicts no worse")


def straight(x: Float[ndarray, "n d"], y: Float[ndarray, " n"], log: bool) -> Tried:
    """What a straight line makes of rows that it has not seen.

    Args:
        x: Inputs, NaN where missing; of many rows some are taken.
        y: Targets.
        log: Whether the line is of their logarithm.
    """
    x, values = _some(x, np.log(y) if log else y, MOST_ROWS)
    mean = cross_val_predict(RidgeCV(alphas=np.logspace(-3, 5, 9)), x, values, cv=5)
    variance = np.full(len(mean), np.square(values - mean).mean() + 1e-300)
    return _judged(values, mean, variance, log)


def curved(x: Float[ndarray, "n d"], y: Float[ndarray, " n"], log: bool) -> Tried:
    """The same of a GP with a lengthscale of each input, each row left out in turn."""
    x, values = _some(x, np.log(y) if log else y, GP_ROWS)
    centre, unit = values.mean(), values.std() or 1.0
    made = AnchoredGP.fit("rbf", x, (values - centre) / unit)
    K = torch.as_tensor(made.signal(x) + made.noise * np.eye(len(x)))
    error, variance = left_out(K, torch.as_tensor((values - centre) / unit))
    mean = values - unit * error.numpy()
    return _judged(values, mean, unit**2 * variance.numpy(), log)


def _some(
    x: Float[ndarray, "n d"], values: Float[ndarray, " n"], most: int
) -> tuple[Float[ndarray, "k d"], Float[ndarray, " k"]]:
    """The same rows first, however many are taken; what is missing is the column's mean."""
    some = np.random.default_rng(0).permutation(len(values))[:most]
    return np.where(np.isnan(x), np.nanmean(x, axis=0), x)[some], values[some]


def _judged(
    values: Float[ndarray, " k"],
    mean: Float[ndarray, " k"],
    variance: Float[ndarray, " k"],
    log: bool,
) -> Tried:
    """Densities and error in the target's own unit."""
    y, guess = values, mean
    if log:
        y, guess = np.exp(values), np.exp(np.minimum(mean, values.max()) + variance / 2)
    density = -0.5 * (np.square(values - mean) / variance + np.log(variance))
    return density - (values if log else 0), float(np.mean((y - guess) ** 2))


def _better(line: list[Tried], gp: list[Tried]) -> tuple[str, list[Tried]]:
    """What predicts the rows that both were asked better, at its best."""
    asked = len(gp[0][0])
    height = [max(density[:asked].mean() for density, _ in tried) for tried in (line, gp)]
    return ("a GP", gp) if height[1] > height[0] + LEAST_GAIN else ("a line", line)


def _gains(gain: Float[ndarray, " k"], errors: float) -> bool:
    """Whether densities have risen beyond so many standard errors."""
    return bool(gain.mean() > max(LEAST_GAIN, errors * gain.std() / len(gain) ** 0.5))
