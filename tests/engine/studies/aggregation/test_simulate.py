"""The week of fine dust, and the Poisson toy: what each sees of one function."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import dblquad

from scant.studies.aggregation.simulate import poisson
from scant.studies.aggregation.simulate.particulates import COUNTER, FILTER, concentration, simulate
from scant.studies.aggregation.simulate.poisson import GAP, TASKS, averaged_covariance
from scant.studies.aggregation.thinning import coarsen


@pytest.fixture(scope="module")
def week() -> pd.DataFrame:
    return simulate(0)


def part(table: pd.DataFrame, task: str, split: str) -> pd.DataFrame:
    return table[(table["task"] == task) & (table["split"] == split)]


def test_supports_cover_the_week(week: pd.DataFrame) -> None:
    for task, split, width, rows in (
        (FILTER, "train", 6, 28),
        (FILTER, "test", 0.25, 672),
        (COUNTER, "train", 1 / 12, 2016),
    ):
        result = part(week, task, split)
        assert len(result) == rows
        np.testing.assert_allclose(result["time_hi"] - result["time_lo"], width)
        np.testing.assert_allclose(result["time_lo"], np.arange(rows) * width, atol=1e-9)
    assert len(week) == 28 + 672 + 2016


def test_all_instruments_breathe_the_same_air(week: pd.DataFrame) -> None:
    air = concentration(7, seed=0)
    fine = part(week, FILTER, "test")
    np.testing.assert_allclose(fine["y"], air.reshape(-1, 15).mean(axis=1))
    weighed = part(week, FILTER, "train")
    np.testing.assert_allclose(coarsen(fine, {"time": 6})["y"], weighed["truth"])
    error = weighed["y"] / weighed["truth"] - 1
    assert 0.01 < error.std() < 0.03
    exact = part(simulate(0, filter_noise=0.0), FILTER, "train")
    np.testing.assert_array_equal(exact["y"], exact["truth"])


def test_counter_is_biased_and_noisy_but_follows(week: pd.DataFrame) -> None:
    counted = part(week, COUNTER, "train")
    assert counted["y"].mean() > 1.3 * counted["truth"].mean()
    assert 0.75 < np.corrcoef(counted["y"], counted["truth"])[0, 1] < 0.97
    ratio = (counted["y"] / counted["truth"]).groupby(counted["time_lo"] % 24 // 6).mean()
    assert ratio[0] > 1.15 * ratio[2]  # damp nights, dry afternoons
    # Neighboring readings scatter by a tenth each, beyond what the air does in five minutes.
    log = np.log(counted["y"]).to_numpy() - np.log(counted["truth"]).to_numpy()
    assert np.diff(log).std() / np.sqrt(2) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_air_has_a_daily_cycle_and_spikes(seed: int) -> None:
    air = concentration(28, seed)
    assert (air > 0).all()
    hour = air.reshape(28, 24, 60).mean(axis=(0, 2))
    assert hour[20] > 1.5 * hour[15] < hour[7]
    assert 25 < np.median(air) < 55
    assert air.max() > 2.5 * np.quantile(air, 0.75)
    fine = np.log(air.reshape(-1, 15).mean(axis=1))
    hours = [float(np.corrcoef(fine[lag:], fine[:-lag])[0, 1]) for lag in (1, 16)]
    assert hours[0] > 0.9  # what fifteen minutes keep
    assert hours[1] < 0.7  # four hours do not


@pytest.mark.parametrize("lengthscale", [0.6, 2.0])
def test_covariance_of_averages_against_quadrature(lengthscale: float) -> None:
    covariance = averaged_covariance(lengthscale)
    for lag in (0, 1, 4):
        expected, _ = dblquad(
            lambda a, b: np.exp(-0.5 * ((a - b) / lengthscale) ** 2), 0, 1, lag, lag + 1
        )
        assert covariance[3, 3 + lag] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_array_equal(covariance, covariance.T)


def test_tasks_supports_and_gap_are_as_published() -> None:
    table = poisson.simulate(3)
    one, two = (table[table["task"] == task] for task in TASKS)
    assert (len(one), len(two)) == (250, 125)
    for task, width in ((one, 1), (two, 2)):
        assert (task["x_hi"] - task["x_lo"] == width).all()
        assert (task["x_lo"].min(), task["x_hi"].max()) == (0, 250)
        assert (np.diff(task["x_lo"]) == width).all()
    held = table[table["split"] == "test"]
    assert len(held) == 50
    assert set(held["task"]) == {TASKS[0]}
    assert (held["x_lo"].min(), held["x_hi"].max()) == GAP


def test_rates_are_of_the_averaged_function() -> None:
    table = poisson.simulate(0, weights=(1.0, 0.5))
    one, two = (table.loc[table["task"] == task, "truth"].to_numpy() for task in TASKS)
    np.testing.assert_allclose(np.log(two), 0.5 * np.log(one).reshape(-1, 2).mean(axis=1))
    # Over many draws: log-rate has mean zero and the averages' variance; counts are Poisson.
    many = [poisson.simulate(seed) for seed in range(40)]
    log_rate = np.array([np.log(t["truth"][:250]) for t in many])
    assert log_rate.mean() == pytest.approx(0, abs=0.06)
    assert log_rate.var() == pytest.approx(averaged_covariance()[0, 0], rel=0.08)
    lagged = np.mean(log_rate[:, 3:] * log_rate[:, :-3])
    assert lagged == pytest.approx(averaged_covariance()[0, 3], abs=0.05)
    all_rows = pd.concat(many)
    pearson = (all_rows["y"] - all_rows["truth"]) ** 2 / all_rows["truth"]
    assert pearson.mean() == pytest.approx(1, abs=0.04)
