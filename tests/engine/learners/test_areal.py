"""Rivals of areal data, and part by part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from scant.evaluate.compare import compared
from scant.evaluate.parts import bins, everywhere, part
from scant.events import Finished, Metric, Report, State, decode, encode
from scant.predictive import MixturePredictive
from scant.predictive.scored import Scored
from scant.problem import Comparison, Problem
from scant.verdict import NOBODY, OURS, RIVAL, Part, Verdict
from scripts import areal_models as areal
from scripts.areal_models import LogRates

LINE = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) == 1  # six units in a row


def problem(groups: int = 3, seed: int = 0) -> areal.Problem:
    rng = np.random.default_rng(seed)
    people = np.zeros((groups, 6))
    people[np.arange(6) * groups // 6, np.arange(6)] = rng.uniform(500, 2000, 6)
    return areal.Problem(rng.poisson(people.sum(1) * 0.01).astype(float), people, np.ones((6, 1)))


def test_laplace_against_a_grid_of_two_units() -> None:
    people = np.array([[900.0, 400.0]])
    own = areal.Problem(np.array([25.0]), people, np.ones((2, 1)))
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
    sure = areal.bym2(areal.Problem(rates * 1e6, people, np.ones((6, 1))), LINE)
    np.testing.assert_allclose(sure.rate(), rates, rtol=0.01)
    one = people.copy()
    one[2, 2] = 1.0  # nearly nobody lives there
    shy = areal.bym2(areal.Problem(np.round(rates * one.sum(1)), one, np.ones((6, 1))), LINE)
    assert 0.015 < shy.rate()[2] < 0.045


@pytest.mark.slow
def test_a_related_task_tells_the_parts_of_a_group() -> None:
    rng = np.random.default_rng(1)
    rates = 0.02 * np.exp(rng.normal(0, 0.8, 6))
    known = areal.Problem(np.round(1e5 * rates), np.eye(6) * 1e5, np.ones((6, 1)))
    coarse = areal.Problem(np.array([1e5 * rates.sum()]), np.full((1, 6), 1e5), np.ones((6, 1)))
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


RNG = np.random.default_rng(11)
Y = RNG.uniform(0, 1, 400)


def predicted(y: np.ndarray, error: np.ndarray | float) -> MixturePredictive:
    """A prediction of these deviations, which it knows."""
    std = np.broadcast_to(np.asarray(error, float), y.shape)
    return MixturePredictive.gaussian(y + std * RNG.normal(size=len(y)), std**2)


def off(y: np.ndarray, error: np.ndarray | float) -> Scored:
    """Such a prediction beside the truth."""
    return Scored(y, predicted(y, error))


def test_a_rival_that_is_better_at_low_values_is_ahead_there_only() -> None:
    own = off(Y, 0.1)
    parts = everywhere(own, {"ridge": off(Y, np.where(Y < 0.25, 0.03, 0.3))}, "z")
    assert {p.kind for p in parts} == {"all", "truth"}
    assert len(parts) == 3 * 5
    for p in parts:
        low = p.kind == "truth" and p.stop < 0.3
        assert p.winner == (RIVAL if low else OURS), p
        assert p.contest.rival == "ridge"
    assert {p.of for p in parts if p.kind == "truth"} == {"z"}


def test_of_several_rivals_the_best_is_met_and_chance_counts_for_nobody() -> None:
    own = off(Y, 0.1)
    near = own.predictive.mean + 1e-4 * RNG.normal(size=len(Y))
    twin = Scored(Y, MixturePredictive.gaussian(near, own.predictive.variance))
    found = part(Part("all", rows=400), own, {"twin": twin, "bad": off(Y, 0.5)})
    assert [p.contest.rival for p in found if p.contest] == ["twin"] * 3
    assert {p.winner for p in found} == {NOBODY}


def test_the_error_of_a_difference_is_that_of_the_bootstrap() -> None:
    own, other = off(Y, 0.1), off(Y, 0.12)
    told = part(Part("all", rows=400), own, {"other": other})[0].contest
    assert told.high is not None
    draws = RNG.integers(400, size=(3000, 400))
    roots = [np.sqrt(((Y - p.value)[draws] ** 2).mean(1)) for p in (other, own)]
    assert (told.high - told.gain) / 2 == pytest.approx(np.std(roots[0] - roots[1]), rel=0.1)


def test_few_rows_and_rivals_without_a_density_are_told_as_far_as_they_go() -> None:
    some = slice(0, 29)
    assert part(Part("all"), off(Y[some], 0.1), {"r": off(Y[some], 0.1)}) == []
    line = Scored(Y, MixturePredictive.gaussian(Y + 0.2, None))
    found = part(Part("all"), off(Y, 0.1), {"line": line})
    assert [p.contest.score for p in found if p.contest] == ["RMSE"]


@pytest.mark.parametrize("y", [Y, Y[:70], Y[:40], np.ones(100), np.repeat([0.0, 1.0], 50)])
def test_bins_hold_every_row_once(y: np.ndarray) -> None:
    edges = bins(y)
    if len(y) < 60 or np.ptp(y) == 0:
        assert len(edges) == 0
        return
    assert edges[0] == y.min()
    assert edges[-1] == y.max()
    parts = everywhere(off(y, 0.1), {"r": off(y, 0.1)}, "z")
    told = {(p.start, p.stop): p.rows for p in parts if p.kind == "truth"}
    assert sum(told.values()) <= len(y)
    if np.ptp(np.diff(edges)) < 0.5 and len(y) == 400:
        assert sum(told.values()) == len(y)


def test_a_comparison_tells_its_parts_and_keeps_what_the_report_knew_of_gaps() -> None:
    x = RNG.uniform(-1, 1, size=(600, 2))
    y = x[:, 0]  # a line, which any rival knows
    error = np.where(y[300:] < 0, 0.2, 1e-6)
    own = predicted(y[300:], error)
    problem = Problem(x[:300], y[:300], x[300:], y[300:], ("RMSE", "CRPS"), by="z")
    c = Comparison(problem, own)
    scores, worse = c.scored, off(Y[:300], 1.0)
    gap = part(Part("missing", start=2, stop=2, rows=300), scores, {"r": worse})
    stale = part(Part("all", rows=300), scores, {"old": scores})
    report = Report((Metric("this run", "RMSE", 0.1),), verdict=Verdict(parts=(*stale, *gap)))
    made = compared(report, c, 1.0, own=True, rivals=True).verdict
    assert tuple(p for p in made.parts if p.kind == "missing") == tuple(gap)
    by_bin = {p.stop: p.winner for p in made.parts if p.kind == "truth" and p.contest is not None
              and p.contest.score == "RMSE"}  # fmt: skip
    assert by_bin[min(by_bin)] == RIVAL
    assert by_bin[max(by_bin)] == OURS
    assert "old" not in {p.contest.rival for p in made.parts if p.contest}
    [back] = decode(encode([Finished(State.CONVERGED, "", Report(verdict=made))]))
    assert back.report.verdict == made


@pytest.mark.slow
def test_rows_with_gaps_are_asked_of_rivals_that_have_seen_gaps() -> None:
    truth = RNG.uniform(0, 1, 500)
    x = truth[:, None] + 0.05 * RNG.normal(size=(500, 2))
    gaps = x[300:].copy()
    gaps[np.arange(200), RNG.integers(2, size=200)] = np.nan
    own = predicted(truth[300:], 1.0)
    errors = []
    for blocks in (None, np.arange(2)):
        problem = Problem(x[:300], truth[:300], gaps, truth[300:], ("RMSE",), blocks=blocks)
        report = compared(Report(), Comparison(problem, own), 1.0, own=True, rivals=True)
        errors.append({m.method: m.value for m in report.metrics if m.source == "rival"})
    for name in ("random forest", "gradient boosting"):
        assert errors[1][name] < 0.6 * errors[0][name]
