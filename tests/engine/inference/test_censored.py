"""Censored values against draws whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from scant.evaluate.scores import SCORES
from scant.inference import censored
from scant.predictive import MixturePredictive
from scant.problem import Comparison, Problem
from scant.training.folds import pooled

N = 20_000


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, what is seen of them, and whether that is a bound."""
    rng = np.random.default_rng(0)
    truth, end = rng.normal(2.0, 0.8, N), rng.normal(2.3, 1.0, N)
    return truth, np.minimum(truth, end), truth > end


def test_what_is_behind_bounds_is_found(drawn: tuple[np.ndarray, ...]) -> None:
    truth, seen, late = drawn
    mean, variance, value, rest = censored.uncensored(seen, late)
    assert mean == pytest.approx(2.0, abs=0.03)
    assert variance == pytest.approx(0.64, abs=0.03)
    assert (value[~late] == seen[~late]).all()
    assert not rest[~late].any()
    assert value[late].mean() == pytest.approx(truth[late].mean(), abs=0.03)
    assert abs(seen.mean() - 2.0) > 0.2, "as if bounds were values"
    assert abs(seen[~late].mean() - 2.0) > 0.2, "as if they were not there"


def test_weighted_errors_are_those_of_all_rows(drawn: tuple[np.ndarray, ...]) -> None:
    truth, seen, late = drawn
    horizon, weight = censored.observation(seen, late)
    assert weight.max() <= 1 / censored.OBSERVED
    assert not weight[late & (seen < horizon)].any()
    assert weight.mean() == pytest.approx(1, abs=0.03)
    for guess in (1.0, 2.5):
        all_rows = ((np.minimum(truth, horizon) - guess) ** 2).mean()
        squares = (np.minimum(seen, horizon) - guess) ** 2
        assert np.average(squares, weights=weight) == pytest.approx(all_rows, rel=0.03)
        of_known = squares[~late].mean()
        assert abs(of_known - all_rows) > 0.1 * all_rows, "scored without weights"


def test_the_restricted_mean_is_that_of_draws() -> None:
    draws = np.random.default_rng(1).normal(1.0, 2.0, 200_000)
    told = censored.restricted_mean(np.array([1.0]), np.array([4.0]), 1.5)
    assert told[0] == pytest.approx(np.minimum(draws, 1.5).mean(), abs=0.02)


def test_a_bound_counts_by_what_lies_above_it() -> None:
    y, late = np.array([0.3, 0.3]), np.array([False, True])
    told = censored.log_density(y, np.zeros(2), np.full(2, 4.0), late)
    assert told == pytest.approx([norm.logpdf(0.3, 0, 2), norm.logsf(0.3, 0, 2)])


@pytest.mark.parametrize("bounded", [False, True])
def test_variances_are_scaled_to_the_errors(drawn: tuple[np.ndarray, ...], bounded: bool) -> None:
    truth, seen, late = drawn
    y, late = (seen, late) if bounded else (truth, np.zeros(N, dtype=bool))
    made = censored.scale(y, np.full(N, 2.0), np.full(N, 0.16), late, 10.0)
    assert made == pytest.approx(4.0, rel=0.05)
    few = censored.scale(y[:2], np.full(2, 2.0), np.full(2, 0.16), late[:2], 1e4)
    assert few == pytest.approx(1.0, abs=0.01)


def test_censored_rows_are_compared_fairly(drawn: tuple[np.ndarray, ...]) -> None:
    """The true mean wins over that of the known values alone, also of two folds together."""
    _, seen, late = drawn
    folds = []
    for part in (slice(0, 1000), slice(1000, 2000)):
        rest = np.setdiff1d(np.arange(2000), np.arange(2000)[part])
        y = seen[part]
        problem = Problem(
            x=np.zeros((1000, 1)), y=seen[rest], x_test=np.zeros((1000, 1)), y_test=y,
            scores=("restricted NMSE (log time)",),
            late=late[rest], late_test=late[part],
        )  # fmt: skip
        folds.append(Comparison(problem, MixturePredictive.gaussian(y, np.ones(1000))))
    both, at = pooled(folds).problem, np.arange(2000)
    assert both.observation[0] == pytest.approx(folds[0].problem.observation[0])
    right, short = (
        both.scored(MixturePredictive.gaussian(np.full(2000, mean), np.full(2000, 0.64)))
        for mean in (2.0, seen[~late].mean())
    )
    for score in ("restricted NMSE (log time)", "censored NLPD (log time)"):
        assert SCORES[score](both, right, at) < SCORES[score](both, short, at)
    assert SCORES["restricted NMSE (log time)"](both, right, at) == pytest.approx(1, abs=0.01)
    assert SCORES["concordance"](both, right, at[:200]) == 0.5
    trivial = both.scored(both.trivial())
    assert trivial.value == pytest.approx(right.value, abs=0.05)
