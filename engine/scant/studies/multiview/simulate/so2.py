"""Sulphur dioxide 24 hours ahead, by simulation: 27 inputs, one value, as in a 2006 competition.

Weather fronts of about five days drive wind, which dilutes emissions, and cold, which raises them
by heating; levels are log-normal and heavy-tailed, as at a roadside. The inputs have the form of
Kandemir & Hamprecht (2015), section 5.1: the level now and before, other pollutants, the weather,
its trend, hour and season. Pressure and its trend give the phase of a front, and so the wind to
come: a nonlinear relation that linear models do not fit.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.signal import lfilter

from scant.studies.aggregation.thinning import Seeded, thinned

HOURS = 2 * 365 * 24
AHEAD = 24
ROWS = 2000
LAGS = (1, 3, 6, 12, 24)
FRONT = 120.0  # hours from one front to the next


def hourly(seed: int = 0, hours: int = HOURS) -> pd.DataFrame:
    """Simulate a station: one row per hour, levels in µg/m³ (also CO), and weather."""
    rng = np.random.default_rng([seed, 31])
    t = np.arange(hours)
    season, hour = 2 * np.pi * t / 8766, 2 * np.pi * t / 24
    front, shifted = _swinging(rng, hours)
    temp = (
        13 - 13 * np.cos(season) - 3.5 * np.cos(hour - 0.6) + 3 * shifted + 2 * _ar(rng, hours, 30)
    )
    pressure = 1013 + 6 * np.cos(season) - 7 * shifted + 2 * _ar(rng, hours, 40)
    wind = np.exp(0.5 + 0.55 * front - 0.15 * np.cos(hour - 0.6) + 0.3 * _ar(rng, hours, 6))
    direction = np.pi * np.tanh(front) + 0.8 * _ar(rng, hours, 15)
    rain = np.clip(front - 1.3 + 0.6 * rng.standard_normal(hours), 0, None) * 2
    heating = np.clip(16 - temp, 0, None) / 16
    stagnation = lfilter([1 / 10], [1, -9 / 10], 1.2 - np.log(wind))  # accumulation in calm hours
    rush = 0.15 * np.cos(hour - 2.3) + 0.1 * np.cos(2 * hour - 3.0)
    level = 1.5 + 1.3 * heating + 0.75 * stagnation + rush - 0.1 * np.minimum(rain, 4)
    level = level + 0.35 * _ar(rng, hours, 36) + 0.25 * rng.standard_normal(hours)
    so2 = np.exp(level)
    shared = _ar(rng, hours, 20)

    def pollutant(scale: float, share: float) -> Float[np.ndarray, " h"]:
        return scale * np.exp(share * (level - 2) + 0.3 * shared + 0.25 * _ar(rng, hours, 12))

    return pd.DataFrame(
        {
            "so2": so2,
            "no2": pollutant(40, 0.4),
            "co": pollutant(900, 0.5),
            "o3": 60 * np.exp(-0.3 * (level - 2) - 0.5 * np.cos(season) - 0.4 * np.cos(hour)),
            "pm25": pollutant(55, 0.6),
            "pm10": pollutant(90, 0.5),
            "temp_c": temp,
            "pres_hpa": pressure,
            "dewp_c": temp - 8 - 4 * _ar(rng, hours, 25) + np.minimum(rain, 6),
            "rain_mm": rain,
            "wind_ms": wind,
            "wind_u": wind * np.cos(direction),
            "wind_v": wind * np.sin(direction),
        }
    )


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """2,000 hours drawn at random, as in the publication.

    Returns:
        `y` (µg/m³, 24 hours later), and 27 inputs.
    """
    table = ahead(hourly(settings.data_seed))
    selected = np.random.default_rng([settings.data_seed, 32]).permutation(len(table))[:ROWS]
    return thinned(table.iloc[np.sort(selected)].reset_index(drop=True), rows)


def ahead(station: pd.DataFrame) -> pd.DataFrame:
    """Inputs of each hour and the level 24 hours later, rounded as by instruments."""
    so2, t = station["so2"], np.arange(len(station))
    hour, season = 2 * np.pi * t / 24, 2 * np.pi * t / 8766
    columns = {
        "y": so2.shift(-AHEAD),
        "so2": so2,
        **{f"so2_lag{lag}h": so2.shift(lag) for lag in LAGS},
        "so2_mean24h": so2.rolling(24).mean(),
        "so2_max24h": so2.rolling(24).max(),
        **{name: station[name] for name in station.columns if name != "so2"},
        "dtemp24h": station["temp_c"].diff(24),
        "dpres24h": station["pres_hpa"].diff(24),
        "hour_sin": np.sin(hour),
        "hour_cos": np.cos(hour),
        "doy_sin": np.sin(season),
        "doy_cos": np.cos(season),
        "weekend": (t // 24 % 7 >= 5).astype(float),
    }
    return pd.DataFrame(columns).dropna().round(4).reset_index(drop=True)


def _ar(rng: np.random.Generator, hours: int, memory: float) -> Float[np.ndarray, " h"]:
    """Autoregressive process with unit standard deviation and a memory in hours."""
    correlation = np.exp(-1 / memory)
    noise = np.sqrt(1 - correlation**2) * rng.standard_normal(hours)
    noise[0] = rng.standard_normal()
    return np.asarray(lfilter([1.0], [1.0, -correlation], noise))


def _swinging(
    rng: np.random.Generator, hours: int
) -> tuple[Float[np.ndarray, " h"], Float[np.ndarray, " h"]]:
    """Noisy oscillation with a front's period and unit deviation, and a quarter period earlier."""
    rotation = np.exp(1j * 2 * np.pi / FRONT - 1 / 90)
    spread = np.sqrt(1 - np.abs(rotation) ** 2)
    noise = spread * (rng.standard_normal(hours) + 1j * rng.standard_normal(hours))
    noise[0] = rng.standard_normal() + 1j * rng.standard_normal()
    swing = lfilter([1.0], [1.0, -rotation], noise)
    return np.real(swing), np.imag(swing)
