"""Areal rivals against quadrature and against what is known of their priors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from scant.rivals import areal
from scant.rivals.areal import LogRates, Problem

LINE = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) == 1  # six units in a row


def problem(groups: int = 3, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    people = np.zeros((groups, 6))
    people[np.arange(6) * groups // 6, np.arange(6)] = rng.uniform(500, 2000, 6)
    return Problem(rng.poisson(people.sum(1) * 0.01).astype(float), people, np.ones((6, 1)))


def test_laplace_against_a_grid_of_two_units() -> None:
    people = np.array([[900.0, 400.0]])
    own = Problem(np.array([25.0]), people, np.ones((2, 1)))
    K = np.array([[0.3, 0.1], [0.1, 0.2]])
    offset = float(np.log(25 / 1300))
    evidence, mean, variance, _ = areal._laplace(own, offset, K, np.zeros(2))
    side = np.linspace(-4, 4, 401)
    f = np.stack([g.ravel() for g in np.meshgrid(side, side)], 1)
    prior = -0.5 * np.einsum("ni,ij,nj->n", f, np.linalg.inv(K), f)
    prior -= 0.5 * np.log(np.linalg.det(2 * np.pi * K))
    total = np.exp(offset + f) @ people[0]
    density = np.exp(prior) * poisson.pmf(25, total) * (side[1] - side[0]) ** 2
    assert evidence == pytest.approx(np.log(density.sum()), abs=0.05)
    weights = density / density.sum()
    exact = weights @ f
    np.testing.assert_allclose(mean - offset, exact, atol=0.05)
    np.testing.assert_allclose(variance, weights @ (f - exact) ** 2, rtol=0.15)


def test_probabilities_of_counts_add_up_and_have_the_rates_mean() -> None:
    fitted = areal.bym2(problem(), LINE)
    people = np.full(6, 800.0)
    counts = np.arange(400.0)
    p = np.exp([fitted.log_probability(np.full(6, k), people) for k in counts])
    np.testing.assert_allclose(p.sum(0), 1, atol=1e-6)
    np.testing.assert_allclose(counts @ p, people * fitted.rate(), rtol=1e-3)


def test_the_scaled_autoregression_and_the_prior_of_its_share() -> None:
    S = areal._scaled(LINE)
    assert np.exp(np.log(np.diag(S)).mean()) == pytest.approx(1)
    np.testing.assert_allclose(S.sum(0), 0, atol=1e-9)  # no variance of the mean
    phi, log = areal._phi_prior(np.linalg.eigvalsh(S))
    assert np.isfinite(log).all()
    share = np.exp(log)  # by the logit, whose grid is even
    assert share[phi < 0.5].sum() / share.sum() == pytest.approx(0.5, abs=0.15)


def test_many_counts_leave_no_doubt_and_few_borrow_from_neighbors() -> None:
    people = np.eye(6) * 1e6
    rates = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06])
    sure = areal.bym2(Problem(rates * 1e6, people, np.ones((6, 1))), LINE)
    np.testing.assert_allclose(sure.rate(), rates, rtol=0.01)
    one = people.copy()
    one[2, 2] = 1.0  # nearly nobody lives there
    shy = areal.bym2(Problem(np.round(rates * one.sum(1)), one, np.ones((6, 1))), LINE)
    assert 0.015 < shy.rate()[2] < 0.045


@pytest.mark.slow
def test_a_related_task_tells_the_parts_of_a_group() -> None:
    rng = np.random.default_rng(1)
    rates = 0.02 * np.exp(rng.normal(0, 0.8, 6))
    known = Problem(np.round(1e5 * rates), np.eye(6) * 1e5, np.ones((6, 1)))
    coarse = Problem(np.array([1e5 * rates.sum()]), np.full((1, 6), 1e5), np.ones((6, 1)))
    places = np.column_stack([np.arange(6.0), np.zeros(6)])
    for fit in (
        lambda p, tasks: areal.bym2(p, LINE, tasks),
        lambda p, tasks: areal.matern(p, places, tasks),
    ):
        alone = fit(coarse, None).rate()
        both = fit(areal.joined([known, coarse]), np.ones((2, 2))).rate()[6:]
        # The one group is no hint that tasks are alike: half of the way at least.
        assert np.abs(both - rates).sum() < 0.6 * np.abs(alone - rates).sum()


def test_group_rates_and_shares_by_area() -> None:
    own = problem(2)
    rate = areal.group_rate(own)
    np.testing.assert_allclose(own.people @ rate, own.y)
    shapely = pytest.importorskip("shapely")
    pytest.importorskip("tobler")
    units = np.array([shapely.box(x, 0, x + w, 1) for x, w in ((0, 1), (1, 3), (4, 2))])
    groups = np.array([shapely.box(0, 0, 4, 1), shapely.box(4, 0, 6, 1)])
    made = areal.by_area(groups, units, np.array([8.0, 5.0]), "+proj=cea +datum=WGS84 +units=m")
    np.testing.assert_allclose(made, [2.0, 6.0, 5.0], rtol=1e-6)


def test_units_may_be_named_several_times() -> None:
    mixture = LogRates(np.ones(1), np.array([[0.0, 1.0]]), np.array([[0.1, 0.2]]))
    again = mixture.at(np.array([1, 1, 0]))
    assert again.mean.tolist() == [[1.0, 1.0, 0.0]]
