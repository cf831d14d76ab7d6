"""The posterior of an average by its two moments, against distributions of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from scant.studies.aggregation import mean_rate

MEAN, STD = np.array([0.02, 0.3, 0.9]), np.array([0.01, 0.1, 0.05])


def distribution(kind: str, mean: float, std: float) -> stats.rv_continuous:
    if kind == "gaussian":
        return stats.norm(mean, std)
    if kind == "poisson":
        s = np.sqrt(np.log1p((std / mean) ** 2))
        return stats.lognorm(s, scale=mean * np.exp(-s * s / 2))
    total = mean * (1 - mean) / std**2 - 1
    return stats.beta(mean * total, (1 - mean) * total)


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "bernoulli"])
def test_quantiles_and_exceedance_are_those_of_the_distribution(kind: str) -> None:
    p = np.array([0.025, 0.5, 0.975])
    made = mean_rate.quantiles(kind, MEAN, STD, p)
    above = mean_rate.exceedance(kind, MEAN, STD, 0.25)
    for i, (mean, std) in enumerate(zip(MEAN, STD)):
        own = distribution(kind, mean, std)
        assert own.mean() == pytest.approx(mean)
        assert own.std() == pytest.approx(std)
        np.testing.assert_allclose(made[:, i], own.ppf(p), rtol=1e-6)
        assert above[i] == pytest.approx(own.sf(0.25), abs=1e-9)
    low, high = mean_rate.interval(kind, MEAN, STD)
    np.testing.assert_allclose([low, high], made[[0, 2]])
    grid = np.linspace(*mean_rate.quantiles(kind, MEAN[1:2], STD[1:2], np.array([0.01, 0.99])), 400)
    density = mean_rate.density(kind, float(MEAN[1]), float(STD[1]), grid[:, 0])
    expected = distribution(kind, float(MEAN[1]), float(STD[1])).pdf(grid[:, 0])
    np.testing.assert_allclose(density[2:-2], expected[2:-2], rtol=0.02, atol=0.01)


def test_a_certain_value_exceeds_or_does_not() -> None:
    for kind in ("gaussian", "poisson", "bernoulli"):
        made = mean_rate.exceedance(kind, np.array([0.2, 0.4]), np.zeros(2), 0.3)
        np.testing.assert_allclose(made, [0, 1], atol=1e-9)
    assert mean_rate.exceedance("poisson", np.array([0.2]), np.array([5.0]), 0.0) == 1
