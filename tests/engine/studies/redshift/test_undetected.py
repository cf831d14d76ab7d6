"""Bands without a detection: draws beyond their limits, and what training makes of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import multivariate_normal

from scant.models.gpz.input_density import Mixture, chosen_components, spread_mixture
from scant.studies.redshift.undetected import draws
from scant.training.api import Fit, fit


def density() -> Mixture:
    means = torch.tensor([[0.0, 0.5, -0.5], [1.0, -1.0, 0.5]], dtype=torch.float64)
    A = torch.tensor([[1.0, 0.6, 0.3], [0.6, 1.2, 0.5], [0.3, 0.5, 0.8]], dtype=torch.float64)
    precisions = torch.stack([torch.linalg.inv(A), torch.linalg.inv(0.5 * A)])
    return Mixture(torch.tensor([0.7, 0.3], dtype=torch.float64).log(), means, precisions)


@pytest.mark.parametrize("hidden", [[1], [0, 1], [1, 2]])
def test_draws_have_the_moments_of_the_density_beyond_the_limits(hidden: list[int]) -> None:
    mixture, limit = density(), 0.4
    row = torch.tensor([[0.2, -0.1, 0.3]], dtype=torch.float64)
    x, beyond = row.clone(), np.full((1, 3), np.nan)
    x[0, hidden], beyond[0, hidden] = torch.nan, limit
    values, weights = draws(mixture, x, beyond, [0, 1, 2], 4096)
    told = (weights[0][:, None] * values[0].numpy()).sum(0)
    axis = np.linspace(limit, limit + 8, 400)
    grid = np.stack(np.meshgrid(*[axis] * len(hidden), indexing="ij"), -1)
    points = np.broadcast_to(row.numpy(), (*grid.shape[:-1], 3)).copy()
    points[..., hidden] = grid
    p = sum(
        w * multivariate_normal(m, np.linalg.inv(P)).pdf(points)
        for w, m, P in zip(mixture.log_weights.exp(), mixture.means, mixture.precisions)
    )
    step = np.full(len(axis), axis[1] - axis[0])
    step[[0, -1]] /= 2
    for k in range(len(hidden)):
        p = p * np.expand_dims(step, [a for a in range(len(hidden)) if a != k])
    expected = [(p * points[..., k]).sum() / p.sum() for k in range(3)]
    np.testing.assert_allclose(told, expected, atol=0.02)
    assert (values[0][:, hidden] >= limit - 1e-9).all()


def test_what_was_never_observed_stays_missing_and_errors_follow_their_bands() -> None:
    x = torch.tensor([[torch.nan, torch.nan, torch.nan]], dtype=torch.float64)
    beyond = np.array([[0.4, np.nan]])
    values, _ = draws(density(), x, beyond, [0, 1, 0], 8)
    assert values[0, :, [0, 2]].isfinite().all()
    assert values[0, :, 1].isnan().all()


def galaxies(n: int, seed: int = 0) -> pd.DataFrame:
    """The band u drops out of sight beyond a redshift; it is brighter nearby."""
    generator = np.random.default_rng(seed)
    z, size = generator.uniform(0.1, 1.0, n), 20 + generator.normal(size=n)
    table = pd.DataFrame({"redshift": z})
    slopes = {"u": 5.0, "g": 0.8, "r": 0.5, "i": 0.4}
    for band, slope in slopes.items():
        table[band] = size + slope * z + 0.3 * generator.normal(size=n)
        table[f"{band}_err"] = 0.05 * np.exp(0.1 * (table[band] - 20))
    lost = table["u"] > 23.5
    table["u_lim"] = np.where(lost, 23.5, np.nan)
    table.loc[lost, ["u", "u_err"]] = np.nan
    return table


@cache
def run() -> Fit:
    values = {"target": "redshift", "log_target": "no", "time_budget": 4.0, "gap_seconds": 6.0}
    values["max_steps"] = 3000  # so that no clock decides what is left out
    made = fit("redshift", galaxies(900), own=False, **values)
    list(made)
    return made


@pytest.mark.slow
def test_rows_without_a_detection_are_learned_from() -> None:
    study = run().study
    assert study.data.learn["u"].notna().all()
    assert len(study.data.learn) + len(study.data.held) == 900
    assert (study.data.learn["u"][study.data.learn["u_lim"].notna()] >= 23.5 - 1e-6).all()
    assert any("without a detection" in note for note in study.notes)


@pytest.mark.slow
def test_not_detected_says_more_than_not_observed() -> None:
    study, held = run().study, galaxies(400, seed=1)
    lost = held[held["u_lim"].notna()].reset_index(drop=True)
    known = study.posterior.score(lost)
    unknown = study.posterior.score(lost.assign(u_lim=np.nan))
    assert known.log_density.mean() > unknown.log_density.mean() + 0.05
    error, other = (j.y - j.value for j in (known, unknown))
    assert np.mean(error**2) < np.mean(other**2)


@pytest.mark.slow
def test_rows_are_answered_one_by_one_as_together() -> None:
    study, held = run().study, galaxies(12, seed=2)
    predictive = study.posterior.predict(held)
    np.testing.assert_allclose(predictive.weights.sum(1), 1.0, atol=1e-9)
    together = study.predict(held)
    alone = pd.concat([study.predict(held.iloc[[k]]) for k in range(len(held))])
    np.testing.assert_allclose(together.to_numpy(float), alone.to_numpy(float), rtol=1e-7)


def test_as_many_gaussians_as_left_out_rows_want() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 2, dtype=torch.float64, generator=generator)
    assert chosen_components(x) <= 2
    clumps = 0.1 * x + 3 * torch.randint(0, 3, (2000, 2), generator=generator)
    assert chosen_components(clumps) >= 8
    assert len(spread_mixture(x[:60], 8).log_weights) == 1
