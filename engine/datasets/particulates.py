"""A week of fine dust (PM2.5) as a 6-hour filter, a cheap counter and the truth see it.

After the air pollution experiment of Yousefi 2021, section 5.3: a filter or a calibrated monitor
gives exact averages over 6 hours, an optical counter beside it a biased value every 5 minutes, and
the filter's quantity is to be predicted over 15 minutes. Hours since the first midnight, local
time; concentrations in µg/m³. `simulate` makes such a week, `read_kampala` reads the publication's
instruments.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from engine.datasets.supports import TEST, TRAIN, Seeded, coarsen, thinned
from engine.errors import BadInput

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
    return thinned(simulate(settings.seed), rows)


def read_kampala(
    folder: Path,
    *,
    start: str = "2019-03-13",
    end: str = "2019-03-22",
    stamps: str = "end",
    filter_hours: float = FILTER_HOURS,
) -> pd.DataFrame:
    """The publication's instruments in the form of `simulate`, without the truth.

    The monitor (Osiris) reads some ten times less than the counter (PMS5003), so that each task
    is to be standardised on its own. The counter was published for 19 to 21 March only; for the
    other days there is the filter's task alone.

    Args:
        folder: Holds `paper_osiris_15min.csv` (`timestamp`, `pm25_ugm3`) and
            `paper_pms5003_windows_72h.csv` (`start_h`, `end_h` since 19 March, `mean_pm25_ugm3`).
        start: First midnight, from which hours are counted.
        end: Midnight after the last day.
        stamps: What the monitor's times are of their quarter of an hour: "end", as its correlation
            with the counter says, or "start", as the authors' code has it.
        filter_hours: Over which the monitor is averaged for training; only averages of full
            quarters are kept.

    Returns:
        `task`, `time_lo`, `time_hi` (hours since `start`), `y` (µg/m³), `split`.

    Raises:
        BadInput: A file or column is missing, or there is nothing in those days.
    """
    if stamps not in ("end", "start"):
        raise BadInput(f"stamps must be end or start; got {stamps!r}.")
    first, quarter = pd.Timestamp(start), TRUTH_MINUTES / 60
    hours = (pd.Timestamp(end) - first) / pd.Timedelta(hours=1)
    monitor = _columns(folder / "paper_osiris_15min.csv", ["timestamp", "pm25_ugm3"])
    stamp = (pd.to_datetime(monitor["timestamp"]) - first) / pd.Timedelta(hours=1)
    lo = stamp.to_numpy() - (quarter if stamps == "end" else 0.0)
    fine = _rows(FILTER, lo, lo + quarter, monitor["pm25_ugm3"].to_numpy(dtype=float), TEST)
    # A stamp off the quarters, as after the clock was set, would overlap with the next one.
    on_time = np.isclose(lo / quarter, np.round(lo / quarter))
    fine = fine[on_time & (lo >= -1e-9) & (lo + quarter <= hours + 1e-9)].reset_index(drop=True)
    if not len(fine):
        raise BadInput(f"The monitor has no values from {start} to {end}; choose other days.")
    weighed = coarsen(fine, {"time": filter_hours}, origin={"time": 0.0}).assign(split=TRAIN)
    seen = _columns(
        folder / "paper_pms5003_windows_72h.csv", ["start_h", "end_h", "mean_pm25_ugm3"]
    )
    later = (pd.Timestamp("2019-03-19") - first) / pd.Timedelta(hours=1)
    lo, hi = seen["start_h"].to_numpy() + later, seen["end_h"].to_numpy() + later
    counted = _rows(COUNTER, lo, hi, seen["mean_pm25_ugm3"].to_numpy(dtype=float), TRAIN)
    counted = counted[(lo >= 0) & (hi <= hours)]
    return pd.concat([weighed, fine, counted], ignore_index=True)


def _columns(path: Path, names: list[str]) -> pd.DataFrame:
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} of the Kampala instruments; check the path.")
    table = pd.read_csv(path)
    lost = [n for n in names if n not in table]
    if lost:
        raise BadInput(f"{path.name} has no column {lost[0]!r}; it has {', '.join(table)}.")
    return table[names]


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
