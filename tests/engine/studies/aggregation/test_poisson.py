"""The Poisson toy: as published where the text speaks, and the covariance against quadrature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import dblquad

from scant.studies.aggregation.simulate.poisson import (
    GAP,
    TASKS,
    averaged_covariance,
    simulate,
)


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
    table = simulate(3)
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
    table = simulate(0, weights=(1.0, 0.5))
    one, two = (table.loc[table["task"] == task, "truth"].to_numpy() for task in TASKS)
    np.testing.assert_allclose(np.log(two), 0.5 * np.log(one).reshape(-1, 2).mean(axis=1))
    # Over many draws: log-rate has mean zero and the averages' variance; counts are Poisson.
    many = [simulate(seed) for seed in range(40)]
    log_rate = np.array([np.log(t["truth"][:250]) for t in many])
    assert log_rate.mean() == pytest.approx(0, abs=0.06)
    assert log_rate.var() == pytest.approx(averaged_covariance()[0, 0], rel=0.08)
    lagged = np.mean(log_rate[:, 3:] * log_rate[:, :-3])
    assert lagged == pytest.approx(averaged_covariance()[0, 3], abs=0.05)
    all_rows = pd.concat(many)
    pearson = (all_rows["y"] - all_rows["truth"]) ** 2 / all_rows["truth"]
    assert pearson.mean() == pytest.approx(1, abs=0.04)
