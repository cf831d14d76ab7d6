"""A week of fine dust (PM2.5) as a 6-hour filter, a cheap counter and the truth see it.

After the air pollution experiment of Yousefi 2021, section 5.3: a filter or a calibrated monitor
gives exact averages over 6 hours, an optical counter beside it a biased value every 5 minutes, and
the filter's quantity is to be predicted over 15 minutes. Hours since the first midnight, local
time; concentrations in µg/m³.
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

_STEP = 1 / 60  # hours, on which the concentration is drawn


def concentration(days: int = 7, seed: int = 0) -> Float[np.ndarray, " t"]:
    """PM2.5 minute by minute, µg/m³.

    A diurnal cycle with peaks of traffic and cooking at 7:30 and 20:30 and a trough in the mixed
    air of the afternoon; weather that turns over a day and eddies over 1.5 hours, both Gaussian in
    the logarithm; and some eight plumes a day (a burning heap, a lorry) that rise within minutes
    and decay over half an hour.
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
    """A table in long form: what the instruments gave, and the truth that is to be found.

    Args:
        seed: Seed of the air and, in a stream of its own, of the instruments.
        days: From a midnight on.
        filter_noise: Deviation of the filter's error, as a share of its value.

    Returns:
        `task`, `time_lo`, `time_hi` (hours), `y`, `truth` (µg/m³) and `split`: the task "filter"
        over 6 hours, then the same over 15 minutes, to be tested and without noise; last the task
        "counter" over 5 minutes. The counter reads high, more so in the damp of the night, bends
        at high values, scatters by a tenth, and its `truth` is the air's, not its own.
    """
    air = concentration(days, seed)
    rng = np.random.default_rng([seed, 2])
    weighed = _averages(air, FILTER, FILTER_HOURS, TRAIN)
    weighed["y"] *= 1 + filter_noise * rng.standard_normal(len(weighed))
    fine = _averages(air, FILTER, TRUTH_MINUTES / 60, TEST)
    counted = _averages(air, COUNTER, COUNTER_MINUTES / 60, TRAIN)
    damp = 1 + 0.3 * np.cos(2 * np.pi * (counted["time_lo"] - 4.0) / 24)
    level = 6.0 + 1.5 * damp * MEDIAN * (counted["truth"] / MEDIAN) ** 0.9
    counted["y"] = level * np.exp(0.1 * rng.standard_normal(len(counted)))
    return pd.concat([weighed, fine, counted], ignore_index=True)


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """The week of the settings' seed, or `rows` of its rows."""
    return thinned(simulate(settings.data_seed), rows)


def _averages(air: np.ndarray, task: str, width: float, split: str) -> pd.DataFrame:
    """Averages over consecutive intervals of `width` hours, as a task whose y is the truth."""
    means = air.reshape(-1, round(width / _STEP)).mean(axis=1)
    lo = np.arange(len(means)) * width
    return _rows(task, lo, lo + width, means, split).assign(truth=means)


def _rows(task: str, lo: np.ndarray, hi: np.ndarray, y: np.ndarray, split: str) -> pd.DataFrame:
    return pd.DataFrame({"task": task, "time_lo": lo, "time_hi": hi, "y": y, "split": split})


def _peak(clock: np.ndarray, hour: float, width: float) -> np.ndarray:
    """A bump around an hour of the day, 1 at most; days join without a step."""
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
