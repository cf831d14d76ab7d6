"""What every form of predictive distribution has to fulfill, by draws and by quadrature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import nbinom, norm

from scant.predictive import (
    BernoulliPredictive,
    CategoricalPredictive,
    CountsPredictive,
    JoinedPredictive,
    MixturePredictive,
    Predictive,
    ValuePredictive,
)
from scant.predictive.base import Rows

N, DRAWS = 5, 200_000


def _mixture(log: bool = False, shift: float = 0.0) -> MixturePredictive:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(4), N)
    weights[0] = [0, 1, 0, 0]
    means, variances = rng.normal(0, 0.7, (N, 4)), rng.uniform(0.05, 0.4, (N, 4))
    means[0, 0] = np.nan  # a component without weight may hold anything
    sources = rng.uniform(0.1, 1, (3, N))
    made = MixturePredictive(weights, means, variances, log=log, shift=shift)
    return made.with_sources(*sources)


def _counts(dispersion: float) -> CountsPredictive:
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(2), N)
    means, variances = rng.normal(1.5, 1.0, (N, 2)), rng.uniform(0.01, 0.3, (N, 2))
    return CountsPredictive(weights, means, variances, rng.choice([1.0, 2.5], N), dispersion)


def _joined(first: ValuePredictive, second: ValuePredictive) -> ValuePredictive:
    return JoinedPredictive((first.rows(slice(0, 2)), second.rows(slice(2, None))))


VALUES: dict[str, Callable[[], ValuePredictive]] = {
    "mixture": _mixture,
    "log mixture": lambda: _mixture(log=True),
    "mixture of log(1 + y)": lambda: _mixture(log=True, shift=1.0),
    "scaled": lambda: _mixture().scaled(np.arange(1.0, N + 1), 3.0, log=False),
    "joined": lambda: _joined(_mixture(), _mixture(log=True)),
    "Poisson": lambda: _counts(0.0),
    "negative binomial": lambda: _counts(0.4),
    "Bernoulli": lambda: BernoulliPredictive(np.linspace(0.1, 0.9, N)),
}
ALL: dict[str, Callable[[], Predictive]] = {
    **VALUES,
    "classes": lambda: CategoricalPredictive(np.random.default_rng(2).dirichlet(np.ones(3), N)),
}
DISCRETE = {"Poisson", "negative binomial", "Bernoulli"}


def _same(a: Predictive, b: Predictive) -> None:
    for name, values in a._arrays().items():
        np.testing.assert_array_equal(values, getattr(b, name), err_msg=name)
    np.testing.assert_array_equal(a.point, b.point)


@pytest.mark.parametrize("form", ALL)
def test_rows_taken_apart_and_joined_are_the_same(form: str) -> None:
    made = ALL[form]()
    order = np.array([3, 0, 4, 1, 2])
    _same(type(made).concat([made.rows(slice(0, 2)), made.rows(slice(2, None))]), made)
    _same(made.rows(order).rows(np.argsort(order)), made)
    assert len(made.rows(np.arange(N) < 2)) == 2
    np.testing.assert_array_equal(made.rows(order).point, made.point[order])


@pytest.mark.parametrize("form", VALUES)
def test_moments_quantiles_and_scores_are_those_of_draws(form: str) -> None:
    made = VALUES[form]()
    draws = made.sample(np.random.default_rng(3), DRAWS)
    error = made.std / DRAWS**0.5
    np.testing.assert_array_less(np.abs(draws.mean(0) - made.mean), 5 * error)
    np.testing.assert_allclose(draws.var(0), made.variance, rtol=0.1)
    y = np.quantile(draws, 0.6, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(made.cdf(y), (draws <= y).mean(0), atol=0.006)
    one, other = draws[: DRAWS // 2], draws[DRAWS // 2 :]
    crps = np.abs(draws - y).mean(0) - 0.5 * np.abs(one - other).mean(0)
    np.testing.assert_allclose(made.crps(y), crps, atol=0.03 * made.std.max(), rtol=0.02)
    p = np.array([0.025, 0.3, 0.5, 0.95])
    found = made.quantile(p)
    for row, level in zip(found, p):
        assert (made.cdf(row + 1e-9 * np.abs(row)) >= level - 1e-7).all()
        assert ((draws < row - 1e-9).mean(0) <= level + 0.006).all()
    np.testing.assert_array_equal(made.interval(0.5), made.quantile(np.array([0.25, 0.75])))


@pytest.mark.parametrize("form", sorted(set(VALUES) - DISCRETE))
def test_a_density_is_the_slope_of_its_distribution_function(form: str) -> None:
    made = VALUES[form]()
    low, high = made.quantile(np.array([1e-7, 1 - 1e-7]))
    y = made.quantile(np.array([0.37]))[0]
    step = 1e-5 * made.std
    slope = (made.cdf(y + step) - made.cdf(y - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(made.log_prob(y)), slope, rtol=1e-5)

    def density(x: float, row: int) -> float:
        return float(np.exp(made.rows(slice(row, row + 1)).log_prob(np.array([x]))[0]))

    for row in range(N):
        middle = made.quantile(np.array([0.05, 0.5, 0.95]))[:, row]
        whole = quad(density, low[row], high[row], (row,), points=middle, limit=200)[0]
        assert whole == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("form", sorted(DISCRETE))
def test_probabilities_of_counts_add_up(form: str) -> None:
    made = VALUES[form]()
    unit: Rows = getattr(made, "unit", np.ones(N))
    steps = int(np.max(made.quantile(np.array([1 - 1e-9]))[0] / unit)) + 1
    each = np.exp([made.log_prob(k * unit) for k in range(steps + 1 if form != "Bernoulli" else 2)])
    np.testing.assert_allclose(each.sum(0), 1.0, atol=1e-6)
    np.testing.assert_allclose(each[:4].sum(0)[:], made.cdf(3 * unit), atol=1e-6)


def test_counts_of_a_known_rate_are_negative_binomials_and_large_counts_keep_their_digits() -> None:
    rates = np.array([0.5, 30.0, 1e5])
    one = np.ones((3, 1))
    made = CountsPredictive(one, np.log(rates)[:, None], 1e-14 * one, np.ones(3), 0.3)
    y = np.array([1.0, 41.0, 1.1e5])
    size = 1 / 0.3
    np.testing.assert_allclose(
        made.log_prob(y), nbinom.logpmf(y, size, size / (size + rates)), rtol=1e-6
    )
    wide = CountsPredictive(one[:1], np.array([[np.log(1e4)]]), one[:1] * 0.25, np.ones(1))
    f = np.linspace(7, 12, 400_001)
    prior = norm.pdf(f, np.log(1e4), 0.5)
    pmf = np.exp(9000 * f - np.exp(f) - 9000 * np.log(9000) + 9000)  # but for Stirling's factor
    brute = np.log(np.trapezoid(prior * pmf, f)) - 0.5 * np.log(2 * np.pi * 9000)
    assert wide.log_prob(np.array([9000.0]))[0] == pytest.approx(brute, abs=1e-4)


def test_sources_add_up_to_the_variance_and_disagreement_is_the_models() -> None:
    rng = np.random.default_rng(4)
    members = [
        MixturePredictive.gaussian(rng.normal(size=N), np.full(N, 2.0), np.full(N, 1.5))
        for _ in range(3)
    ]
    mixed = MixturePredictive.mixed(members, np.array([0.5, 0.3, 0.2]))
    sources = mixed.model_variance, mixed.noise_variance, mixed.input_variance
    np.testing.assert_allclose(sum(sources), mixed.variance)
    np.testing.assert_allclose(mixed.noise_variance, 1.5)
    means = np.stack([m.mean for m in members])
    between = np.array([0.5, 0.3, 0.2]) @ (means - mixed.mean) ** 2
    np.testing.assert_allclose(mixed.model_variance, 0.5 + between)
    log = _mixture(log=True)
    total = log.model_variance + log.noise_variance + log.input_variance
    np.testing.assert_allclose(total, log.variance)


def test_one_gaussian_with_the_moments_of_a_mixture_and_a_bound_for_a_truth() -> None:
    made = _mixture()
    np.testing.assert_allclose(made.collapsed().mean, made.mean)
    np.testing.assert_allclose(made.collapsed().variance, made.variance)
    y, bound = made.mean + 0.2, np.array([True, False, True, False, True])
    told = made.log_prob(y, bound)
    np.testing.assert_allclose(told[~bound], made.log_prob(y)[~bound])
    np.testing.assert_allclose(told[bound], np.log1p(-made.cdf(y))[bound])
    draws = made.sample(np.random.default_rng(5), DRAWS)
    np.testing.assert_allclose(made.restricted_mean(0.3), np.minimum(draws, 0.3).mean(0), atol=0.01)


def test_a_method_without_a_density_has_a_mean_only() -> None:
    made = MixturePredictive.gaussian(np.arange(3.0), None)
    np.testing.assert_array_equal(made.mean, np.arange(3.0))
    assert np.isnan(made.log_prob(np.zeros(3))).all()


def test_classes_of_groups_are_numbered_through_all_groups() -> None:
    p = np.array([[0.2, 0.8], [0.9, 0.1]])
    made = CategoricalPredictive(p, first=np.array([0, 5]))
    assert made.point.tolist() == [1, 5]
    np.testing.assert_allclose(made.log_prob(np.array([0, 6])), np.log([0.2, 0.1]))
    np.testing.assert_allclose(made.entropy, -(p * np.log(p)).sum(1))
    assert CategoricalPredictive(p, np.array([0, 1])).point.tolist() == [0, 1]
    assert np.isnan(
        CategoricalPredictive.named(np.array([1, 0]), 2).log_prob(np.array([1, 0]))
    ).all()
