"""Counts of two tasks on intervals of one and two units: the synthetic experiment of MTGPA.

Yousefi 2021, section 5.3 (Yousefi, Smith & Álvarez 2019, section 4): a latent function u with an
EQ covariance on [0, 250] is averaged over each interval, f_d(v) = a_d / |v| ∫_v u(z) dz, and the
counts are Poisson with rate exp(f_d(v)). 250 intervals of one unit and 125 of two cover the range;
the 50 of one unit in [130, 180] are held out. The rate is that of an averaged function: it is not
multiplied by the interval's length, and the authors' own draw has equal mean counts, too.

The text gives neither lengthscale nor a_d. Here they are 2 units and 1 for both tasks, with mean
zero: maximum likelihood (Laplace's approximation) on the authors' draw gives a lengthscale of 1.95,
a = (0.95, 0.98), a correlation of 1 between the tasks, and a mean that zero explains as well.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.studies.aggregation.thinning import Seeded, thinned
from scant.studies.split import TEST, TRAIN

LENGTH = 250  # units, the range of the input
GAP = (130, 180)  # units, what task 1 lacks in training
TASKS = ("support 1", "support 2")
LENGTHSCALE = 2.0  # units
WEIGHTS = (1.0, 1.0)  # a_1, a_2
SEEDS = (0, 1, 2, 3, 4)  # of five independent runs


def averaged_covariance(lengthscale: float = LENGTHSCALE) -> Float[np.ndarray, "n n"]:
    """Covariance of u's averages over the unit intervals of the range.

    In lags, the double integral of exp(-r²/2l²) over two unit intervals is a second difference of
    G(r) = l² (h(r/√2l) - 1), h(s) = √π s erf(s) + exp(-s²) (Yousefi 2021, app. C).
    """
    lags = np.arange(-1, LENGTH + 1) / (math.sqrt(2) * lengthscale)
    erf = np.array([math.erf(s) for s in lags])
    second = lengthscale**2 * (math.sqrt(math.pi) * lags * erf + np.exp(-(lags**2)))
    row = second[2:] - 2 * second[1:-1] + second[:-2]
    index = np.arange(LENGTH)
    covariance: Float[np.ndarray, "n n"] = row[np.abs(index[:, None] - index)]
    return covariance


def simulate(
    seed: int = 0,
    *,
    lengthscale: float = LENGTHSCALE,
    weights: tuple[float, float] = WEIGHTS,
) -> pd.DataFrame:
    """One draw of the experiment in long form.

    Args:
        seed: Seed of the latent function and of the counts.
        lengthscale: Lengthscale of the latent function, units.
        weights: a_1 and a_2 (the latent function has unit variance).

    Returns:
        250 rows of task "support 1", then 125 of "support 2": `task`, `x_lo`, `x_hi` (units), `y`
        (count), `split` ("test" in the gap of the first task) and `truth` (the rate).
    """
    rng = np.random.default_rng(seed)
    # Two-unit averages are means of one-unit ones, so u is drawn on unit intervals only; by its
    # eigenvectors, because a smooth function's covariance has no Cholesky factor in float64.
    values, vectors = np.linalg.eigh(averaged_covariance(lengthscale))
    latent = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(LENGTH))
    parts = []
    for task, weight, support in zip(TASKS, weights, (1, 2)):
        rate = np.exp(weight * latent.reshape(-1, support).mean(axis=1))
        lo = np.arange(0.0, LENGTH, support)
        held = (support == 1) & (lo >= GAP[0]) & (lo < GAP[1])
        counts = rng.poisson(rate).astype(np.float64)
        parts.append(_rows(task, lo, lo + support, counts, held).assign(truth=rate))
    return pd.concat(parts, ignore_index=True)


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Draw of the settings' seed, or `rows` of its rows."""
    return thinned(simulate(settings.data_seed), rows)


def _rows(
    task: str, lo: np.ndarray, hi: np.ndarray, counts: np.ndarray, held: np.ndarray
) -> pd.DataFrame:
    split = np.where(held, TEST, TRAIN).astype(object)
    return pd.DataFrame({"task": task, "x_lo": lo, "x_hi": hi, "y": counts, "split": split})
