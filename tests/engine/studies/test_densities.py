"""Densities as a few Gaussians: moments of log-normals, modes and medians by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from scant.studies.densities import Densities, column_specs, few_gaussians


def some(n: int = 300, k: int = 5) -> Densities:
    generator = np.random.default_rng(0)
    spread = np.sqrt(generator.gamma(1.0, 0.1, (n, k)) + 1e-3)
    return Densities(generator.dirichlet(np.ones(k), n), generator.normal(size=(n, k)), spread)


def test_modes_are_the_highest_points_of_a_fine_grid() -> None:
    told = some()
    modes, medians = told.mode(), told.median()
    for row, (w, m, s) in enumerate(zip(*told, strict=True)):
        grid = np.linspace(m.min(), m.max(), 20_001)
        height = (w * norm.pdf(grid[:, None], m, s)).sum(1).max()
        assert (w * norm.pdf(modes[row], m, s)).sum() >= height * (1 - 1e-12)
        assert (w * norm.cdf(medians[row], m, s)).sum() == pytest.approx(0.5, abs=1e-9)


def test_a_mode_of_one_gaussian_is_its_mean() -> None:
    told = Densities(*(np.array([row]) for row in ([1.0, 0.0], [0.3, 0.3], [0.1, 0.1])))
    assert told.mode() == pytest.approx([0.3], abs=1e-6)
    assert told.median() == pytest.approx([0.3])
    assert told.mean() == pytest.approx([0.3])


def test_log_normals_keep_the_mean_and_variance_of_the_whole() -> None:
    generator = np.random.default_rng(1)
    w, m = generator.dirichlet(np.ones(9), 50), generator.normal(-0.5, 0.3, (50, 9))
    v = generator.gamma(2.0, 0.005, (50, 9))
    told = few_gaussians(w, m, v, 4, positive=True)
    each = lognorm(s=np.sqrt(v), scale=np.exp(m))
    mean = (w * each.mean()).sum(1)
    square = (w * (each.var() + each.mean() ** 2)).sum(1)
    np.testing.assert_allclose(told.mean(), mean, rtol=1e-10)
    own = (told.weights * (told.stds**2 + told.means**2)).sum(1)
    np.testing.assert_allclose(own - mean**2, square - mean**2, rtol=1e-9)


@pytest.mark.parametrize("s", [0.05, 0.1, 0.2])
def test_a_log_normal_is_as_far_from_its_gaussian_as_the_docstring_says(s: float) -> None:
    one = np.ones((1, 1))
    told = few_gaussians(one, 0 * one, s**2 * one, 5, positive=True)
    z = np.exp(np.linspace(-8 * s, 8 * s, 20_001))
    apart = lognorm.pdf(z, s) - norm.pdf(z, told.means[0, 0], told.stds[0, 0])
    assert 0.5 * np.trapezoid(np.abs(apart), z) == pytest.approx(0.37 * s, rel=0.05)


def test_columns_are_those_that_are_explained() -> None:
    told = some(3)
    assert list(told.columns()) == [spec.name for spec in column_specs("target")]
    np.testing.assert_array_equal(told.columns()["std_2"], told.stds[:, 1])
