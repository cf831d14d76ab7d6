"""The GP of the nearest rows against an exact one, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from scant.models import nearest_gp
from scant.models.nearest_gp import QUICK, NearestGP


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
    near = model.tree.query((torch.from_numpy(asked) / model.widths).numpy(), 60)[1]
    mean, variance = (v.detach() for v in model._given(near, torch.from_numpy(asked)))
    kernel = ConstantKernel(1.3) * Matern([0.8, 1.5], nu=1.5)
    spread = 0.02 + nearest_gp.LEAST + 0.5 * told
    exact = GaussianProcessRegressor(kernel, alpha=spread, optimizer=None).fit(x, y)
    expected, deviation = exact.predict(asked, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-9)
    np.testing.assert_allclose(variance, deviation**2, rtol=1e-6)
    means, variances, noise = model.ask(asked, np.full(7, 0.1))
    assert means.shape == (7, nearest_gp.PARTS)
    known = np.broadcast_to((model.noise + 0.05) / deviation[:, None] ** 2, noise.shape)
    np.testing.assert_allclose(noise / variances, known, rtol=1e-6)  # each part by its own share


@pytest.mark.slow
def test_a_density_has_two_peaks_where_rows_that_look_alike_went_two_ways() -> None:
    generator = np.random.default_rng(2)
    x, side = generator.normal(size=(1200, 2)), generator.choice([-1.0, 1.0], 1200)
    y = np.where(x[:, 0] > 0, side, 0.0) + 0.05 * generator.normal(size=1200)
    model = NearestGP.of(x[:1000], y[:1000], search=QUICK)
    means, *variances = model.ask(x[1000:])
    std = np.sqrt(variances[0] + variances[1])
    unseen = y[1000:, None]
    several = np.log(norm.pdf(unseen, means, std).mean(1))
    whole, away = means.mean(1), means.var(1) + (std**2).mean(1)
    one = norm.logpdf(y[1000:], whole, away**0.5)
    two = x[1000:, 0] > 0.2
    assert several[two].mean() > one[two].mean() + 0.2
    middle = norm.pdf(0.0, means[two], std[two]).mean(1)
    peaks = norm.pdf(1.0, means[two], std[two]).mean(1)
    assert np.median(peaks / middle) > 2


def test_rows_without_themselves_are_the_others() -> None:
    x, y = rows(50)
    x[10:14] = x[10]  # alike, so that none need be its own nearest one
    model = NearestGP.of(x, y, theta=torch.zeros(5, dtype=torch.float64))
    near = nearest_gp._others(model.tree, torch.arange(50), 8)
    assert near.shape == (50, 8)
    assert not (near == torch.arange(50).unsqueeze(1)).any()


@pytest.mark.slow
def test_it_finds_the_input_of_no_use_and_the_noise() -> None:
    x, y = rows(600)
    model = NearestGP.of(x[:500], y[:500], search=QUICK)
    assert model.widths[1] > 3 * model.widths[0]
    mean, variance, noise = model.ask(x[500:])
    whole = mean.mean(1)
    z = (y[500:] - whole) / (mean.var(1) + (variance + noise).mean(1)) ** 0.5
    assert np.sqrt(np.mean((y[500:] - whole) ** 2)) < 0.15
    assert 0.7 < z.std() < 1.3


def test_it_comes_back_as_it_was_put_down() -> None:
    x, y = rows(80)
    model = NearestGP.of(x, y, theta=torch.zeros(5, dtype=torch.float64))
    again = NearestGP.read(model.tensors())
    for a, b in zip(model.ask(x[:9]), again.ask(x[:9])):
        np.testing.assert_array_equal(a, b)
    earlier = {k: v for k, v in model.tensors().items() if k != "error"} | {"surprise": model.y}
    torch.testing.assert_close(NearestGP.read(earlier).error, model.error)
