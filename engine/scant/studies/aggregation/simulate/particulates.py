"""Simulated week of fine dust (PM2.5): a 6-hour filter, a cheap counter and the truth.

The air pollution experiment of Yousefi 2021, section 5.3, is the model: a filter or a calibrated
monitor gives exact averages over 6 hours, an optical counter a biased value every 5 minutes, and
the filter's quantity is predicted over 15 minutes. Times are hours since the first midnight, local
time; concentrations are in µg/m³.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.studies.aggregation.thinning import Seeded, thinned
from scant.studies.split import TEST, TRAIN

FILTER, COUNTER = "filter", "counter"
FILTER_HOURS = 6.0
TRUTH_MINUTES, COUNTER_MINUTES = 15, 5
MEDIAN = 35.0  # µg/m³, a city by the equator

_STEP = 1 / 60  # hours, resolution of the concentration


def concentration(days: int = 7, seed: int = 0) -> Float[np.ndarray, " t"]:
    """PM2.5 minute by minute, µg/m³.

    It has a diurnal cycle with peaks of traffic and cooking at 7:30 and 20:30 and a trough in the
    afternoon; weather that varies over a day and eddies over 1.5 hours, both Gaussian in the
    logarithm; and some eight plumes a day (a burning heap, a lorry) that rise within minutes and
    decay over half an hour.
    """
    rng = np.random.default_rng([seed, 1])
    hours = np.arange(days * 24 * 60) * _STEP
    clock = hours % 24
    cycle = (
        0.45 * _peak(clock, 7.5, 1.6) + 0.5 * _peak(clock, 20.5, 2.4) - 0.5 * _peak(clock, 15, 3)
    )
    weather = 0.25 * _smooth(rng, len(hours), 12.0) + 0.2 * _smooth(rng, len(hours), 0.75)
    plumes = np.zeros(len(hours))
    for start in rng.uniform(0, days * 24, rng.poisson(8 * days)):
        since = np.maximum(hours - start, 0)
        plumes += rng.exponential(25.0) * (1 - np.exp(-since / 0.05)) * np.exp(-since / 0.5)
    return MEDIAN * np.exp(cycle + weather) + plumes


def simulate(seed: int = 0, *, days: int = 7, filter_noise: float = 0.02) -> pd.DataFrame:
    """Table in long form: readings of the instruments, and the truth.

    Args:
        seed: Seed of the air and, in a separate stream, of the instruments.
        days: Number of days, from midnight.
        filter_noise: Deviation of the filter's error, as a share of its value.

    Returns:
        `task`, `time_lo`, `time_hi` (hours), `y`, `truth` (µg/m³) and `split`: the task "filter"
        over 6 hours, then the same over 15 minutes without noise, as test rows; last the task
        "counter" over 5 minutes. The counter reads too high, more so at night, is sublinear at
        high values, and has 10 % noise; its `truth` is the concentration, not its own.
    """
    air = concentration(days, seed)
    rng = np.random.default_rng([seed, 2])
    filtered = _averages(air, FILTER, FILTER_HOURS, TRAIN)
    filtered["y"] *= 1 + filter_noise * rng.standard_normal(len(filtered))
    fine = _averages(air, FILTER, TRUTH_MINUTES / 60, TEST)
    counts = _averages(air, COUNTER, COUNTER_MINUTES / 60, TRAIN)
    damp = 1 + 0.3 * np.cos(2 * np.pi * (counts["time_lo"] - 4.0) / 24)
    level = 6.0 + 1.5 * damp * MEDIAN * (counts["truth"] / MEDIAN) ** 0.9
    counts["y"] = level * np.exp(0.1 * rng.standard_normal(len(counts)))
    return pd.concat([filtered, fine, counts], ignore_index=True)


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Week of the settings' seed, or `rows` of its rows."""
    return thinned(simulate(settings.data_seed), rows)


def _averages(air: np.ndarray, task: str, width: float, split: str) -> pd.DataFrame:
    """Averages over consecutive intervals of `width` hours, as a task whose y is the truth."""
    means = air.reshape(-1, round(width / _STEP)).mean(axis=1)
    lo = np.arange(len(means)) * width
    return _rows(task, lo, lo + width, means, split).assign(truth=means)


def _rows(task: str, lo: np.ndarray, hi: np.ndarray, y: np.ndarray, split: str) -> pd.DataFrame:
    return pd.DataFrame({"task": task, "time_lo": lo, "time_hi": hi, "y": y, "split": split})


def _peak(clock: np.ndarray, hour: float, width: float) -> np.ndarray:
    """Bump of height 1 around an hour of the day, periodic over days."""
    away = (clock - hour + 12) % 24 - 12
    return np.exp(-0.5 * (away / width) ** 2)


def _smooth(rng: np.random.Generator, n: int, lengthscale: float) -> np.ndarray:
    """A Gaussian process of unit variance with EQ covariance, minute by minute.

    White noise is smoothed with a Gaussian of 1/√2 of the lengthscale (hours).
    """
    reach = round(3 * lengthscale / _STEP)
    window = np.exp(-((np.arange(-reach, reach + 1) * _STEP / lengthscale) ** 2))
    white = rng.standard_normal(n + 2 * reach)
    return np.convolve(white, window / np.sqrt((window**2).sum()), mode="valid")
