"""Exact scores of mixtures against quadrature and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm

from scant.metrics import pit_ks
from scant.predictive.mixture_scores import mixture_scores


def integrals(
    weights: np.ndarray, mean: np.ndarray, std: np.ndarray, y: float, positive: bool
) -> tuple[float, float]:
    """CRPS and CDE loss of one row, by quadrature."""

    def scale(z: float) -> float:
        return np.log(z) if positive else z

    def below(z: float) -> float:
        return float((weights * norm.cdf(scale(z), mean, std)).sum())

    def density(z: float) -> float:
        own = float((weights * norm.pdf(scale(z), mean, std)).sum())
        return own / z if positive else own

    low, high = (1e-9, 60.0) if positive else (-8.0, 8.0)
    crps = quad(lambda z: below(z) ** 2, low, y, limit=300)[0]
    crps += quad(lambda z: (1 - below(z)) ** 2, y, high, limit=300)[0]
    square = quad(lambda z: density(z) ** 2, low, high, limit=500, points=[1.0])[0]
    return crps, square - 2 * density(y)


@pytest.mark.parametrize("positive", [False, True])
def test_crps_and_cde_loss_are_their_integrals(positive: bool) -> None:
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(3), 4)
    weights[0] = [1.0, 0.0, 0.0]
    mean = generator.normal(0.0, 0.5, (4, 3))
    std = generator.uniform(0.2, 0.6, (4, 3))
    y = np.exp(generator.normal(0.0, 0.5, 4))
    found = mixture_scores(weights, mean, std, y, positive)
    for k in range(4):
        crps, cde = integrals(weights[k], mean[k], std[k], float(y[k]), positive)
        assert found.crps[k] == pytest.approx(crps, abs=1e-6)
        assert found.cde[k] == pytest.approx(cde, abs=1e-6)


def test_rows_in_blocks_are_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    weights, y = generator.dirichlet(np.ones(2), 50), generator.normal(size=50)
    mean, std = generator.normal(size=(50, 2)), generator.uniform(0.5, 1.0, (50, 2))
    whole = mixture_scores(weights, mean, std, y, False)
    monkeypatch.setattr("scant.predictive.mixture_scores.PAIRS", 20)
    for a, b in zip(whole, mixture_scores(weights, mean, std, y, False)):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_the_distance_from_uniform_is_scipys() -> None:
    pit = np.random.default_rng(2).beta(1.3, 0.9, 200)
    assert pit_ks(pit) == pytest.approx(kstest(pit, "uniform").statistic, abs=1e-12)
