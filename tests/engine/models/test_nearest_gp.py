"""The GP of the nearest rows against an exact one, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scant.models import nearest_gp
from scant.models.nearest_gp import QUICK, NearestGP
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, 2))
    return x, np.sin(2 * x[:, 0]) + 0.1 * generator.normal(size=n)


def test_with_all_rows_as_neighbors_it_is_the_exact_gp(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(60)
    asked = np.random.default_rng(1).normal(size=(7, 2))
    theta = torch.tensor([0.8, 1.5, 1.3, 0.02, 0.5], dtype=torch.float64).log()
    told = np.linspace(0.01, 0.05, 60)
    model = NearestGP.of(x, y, told, theta)
    mean, variance, noise = model.ask(asked, np.full(7, 0.1))
    kernel = ConstantKernel(1.3) * Matern([0.8, 1.5], nu=1.5)
    spread = 0.02 + nearest_gp.LEAST + 0.5 * told
    exact = GaussianProcessRegressor(kernel, alpha=spread, optimizer=None).fit(x, y)
    expected, deviation = exact.predict(asked, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-9)
    np.testing.assert_allclose(variance / deviation**2, noise / (model.noise + 0.05), rtol=1e-6)


def test_rows_without_themselves_are_the_others() -> None:
    x, y = rows(50)
    x[10:14] = x[10]  # alike, so that none need be its own nearest one
    model = NearestGP.of(x, y, theta=torch.zeros(5, dtype=torch.float64))
    near = nearest_gp._others(model.tree, torch.arange(50), 8)
    assert near.shape == (50, 8)
    assert not (near == torch.arange(50).unsqueeze(1)).any()


def test_it_finds_the_input_of_no_use_and_the_noise() -> None:
    x, y = rows(600)
    model = NearestGP.of(x[:500], y[:500], search=QUICK)
    assert model.widths[1] > 3 * model.widths[0]
    mean, variance, noise = model.ask(x[500:])
    z = (y[500:] - mean) / (variance + noise) ** 0.5
    assert np.sqrt(np.mean((y[500:] - mean) ** 2)) < 0.15
    assert 0.7 < z.std() < 1.3


def test_it_comes_back_as_it_was_put_down() -> None:
    x, y = rows(80)
    model = NearestGP.of(x, y, theta=torch.zeros(5, dtype=torch.float64))
    again = NearestGP.read(model.tensors())
    for a, b in zip(model.ask(x[:9]), again.ask(x[:9])):
        np.testing.assert_array_equal(a, b)
