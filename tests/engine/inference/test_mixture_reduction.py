"""Mixtures with fewer parts, and weights of stacked predictions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from scant.inference.stacking import best_expected_threshold, sharpened, sharpness, weights
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


def test_the_method_that_is_right_gets_the_weight_and_a_useless_one_none() -> None:
    y = np.random.default_rng(0).normal(size=400)
    log_density = np.stack([norm.logpdf(y), norm.logpdf(y, 3, 1), norm.logpdf(y, 0, 9)], 1)
    result = weights(log_density)
    np.testing.assert_allclose(result.sum(), 1)
    assert result[0] > 0.9
    assert result[1] == 0


def test_of_few_rows_equal_methods_share() -> None:
    np.testing.assert_allclose(weights(np.full((3, 4), -1.0)), 0.25)


def test_the_trivial_method_gains_weight_where_the_others_gain_little_on_it() -> None:
    rng = np.random.default_rng(2)
    y, x = rng.normal(size=(2, 60))
    guesses = np.stack([norm.logpdf(y), norm.logpdf(y, 0.3 * x, 1), norm.logpdf(y, 0.2, 0.9)], 1)
    plain, made = weights(guesses), weights(guesses, trivial=0)
    assert made.sum() == pytest.approx(1)
    assert made[0] > plain[0] + 0.3
    assert made[2] / made[1] == pytest.approx(plain[2] / plain[1])
    known = np.stack([norm.logpdf(y + x, 0, 2**0.5), norm.logpdf(y + x, x)], 1)
    assert weights(known, trivial=0) == pytest.approx(weights(known), abs=0.01)


def test_methods_worse_than_the_trivial_one_are_left_out() -> None:
    y = np.random.default_rng(3).normal(size=200)
    assert weights(np.stack([norm.logpdf(y), norm.logpdf(y, 3)], 1), trivial=0).tolist() == [1, 0]


def test_weights_are_of_the_densest_mixture() -> None:
    y = np.random.default_rng(1).normal(size=4000)
    y[:1000] += 6
    made = weights(np.stack([norm.logpdf(y, mean) for mean in (6, 0, -9)], 1))
    assert made.tolist() == pytest.approx([0.25, 0.75, 0], abs=0.01)


def test_a_threshold_is_half_the_expected_f1() -> None:
    assert best_expected_threshold(np.full(50, 0.4)) == pytest.approx(0.4 / 1.4)
    assert best_expected_threshold(np.array([1.0, 1.0, 0.0])) == pytest.approx(0.5)


def test_probabilities_that_are_not_sure_enough_are_sharpened() -> None:
    rng = np.random.default_rng(1)
    true = rng.dirichlet([0.5] * 3, size=3000)
    label = np.array([rng.choice(3, p=row) for row in true])
    power = sharpness(sharpened(true, 0.5), label)
    assert 1.8 < power < 2.2
    np.testing.assert_allclose(sharpened(true, power).sum(1), 1)
    assert sharpened(np.array([[0.5, 0.5, 0.0]]), 3.0)[0, 2] == 0
