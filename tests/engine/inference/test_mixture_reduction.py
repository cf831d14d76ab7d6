"""Mixtures with fewer parts, and weights of stacked predictions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from scant.predictive import mixture_reduction
from scant.predictive.mixture_reduction import reduce_mixtures

Mixture = tuple[np.ndarray, np.ndarray, np.ndarray]


def mixtures(n: int, c: int, seed: int = 0) -> Mixture:
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.full(c, 0.7), n)
    return weights, generator.normal(size=(n, c)), generator.gamma(2.0, 0.05, (n, c))


def moments(weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    mean = (weights * means).sum(1)
    spread = (weights * (variances + (means - mean[:, None]) ** 2)).sum(1)
    return np.array([weights.sum(1), mean, spread])


def distance(one: Mixture, other: Mixture) -> np.ndarray:
    """Total variation of each row, by quadrature."""
    x = np.linspace(-7, 7, 6001)

    def density(w: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
        return (w[:, :, None] * norm.pdf(x, m[:, :, None], np.sqrt(v)[:, :, None])).sum(1)

    return np.asarray(0.5 * np.trapezoid(np.abs(density(*one) - density(*other)), x, axis=1))


@pytest.mark.parametrize("c", [3, 5, 14, 60])
@pytest.mark.parametrize("most", [1, 5])
def test_mean_and_variance_are_kept(c: int, most: int) -> None:
    full = mixtures(200, c)
    few = reduce_mixtures(*full, most)
    assert all(part.shape == (200, most) for part in few)
    np.testing.assert_allclose(moments(*few), moments(*full), atol=1e-10)
    assert (np.diff(few[0], axis=1) <= 0).all()
    assert (few[2] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("c", "far"), [(14, 0.12), (60, 0.15)])
def test_near_to_the_whole_and_nearer_than_its_heaviest(c: int, far: float) -> None:
    full = mixtures(100, c)
    order = np.argsort(-full[0], axis=1)[:, :5]
    weights, means, variances = (np.take_along_axis(part, order, 1) for part in full)
    heaviest = weights / weights.sum(1, keepdims=True), means, variances
    own, theirs = distance(full, reduce_mixtures(*full, 5)), distance(full, heaviest)
    assert own.max() < far
    assert own.mean() < 0.3 * theirs.mean()


def test_the_pair_merged_first_is_the_cheapest_of_all() -> None:
    w, m, v = mixtures(40, 6, seed=1)
    found = reduce_mixtures(w, m, v, 5)
    for row in range(40):
        best, least = None, np.inf
        for i, j in combinations(range(6), 2):
            a, b = w[row, i], w[row, j]
            mean = (a * m[row, i] + b * m[row, j]) / (a + b)
            joint = (a * (v[row, i] + (m[row, i] - mean) ** 2)) / (a + b)
            joint += (b * (v[row, j] + (m[row, j] - mean) ** 2)) / (a + b)
            cost = (a + b) * np.log(joint) - a * np.log(v[row, i]) - b * np.log(v[row, j])
            if cost < least:
                least, best = cost, (a + b, mean, joint, [k for k in range(6) if k not in (i, j)])
        rest = best[3]
        expected = {
            *zip(w[row, rest], m[row, rest], v[row, rest], strict=True),
            best[:3],
        }
        np.testing.assert_allclose(
            sorted(zip(*(part[row] for part in found))), sorted(expected), rtol=1e-9
        )


def test_few_components_stay_and_those_without_weight_are_not_looked_at() -> None:
    weights = np.array([[0.25, 0.0, 0.75, 0.0], [0.0, 1.0, 0.0, 0.0]])
    means = np.array([[1.0, np.nan, 2.0, 0.0], [0.0, -1.0, 7.0, np.nan]])
    variances = np.array([[0.1, 0.0, 0.2, np.nan], [0.0, 0.5, 0.0, 0.0]])
    w, m, v = reduce_mixtures(weights, means, variances, 3)
    np.testing.assert_array_equal(w, [[0.75, 0.25, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(m, [[2.0, 1.0, 2.0], [-1.0, -1.0, -1.0]])
    np.testing.assert_array_equal(v, [[0.2, 0.1, 0.2], [0.5, 0.5, 0.5]])


def test_rows_do_not_depend_on_those_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    w, m, v = mixtures(60, 20, seed=2)
    w[::3, 4:] = 0.0
    w /= w.sum(1, keepdims=True)
    whole = reduce_mixtures(w, m, v, 5)
    monkeypatch.setattr(mixture_reduction, "_BLOCK", 1)
    for one, other in zip(whole, reduce_mixtures(w, m, v, 5), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
