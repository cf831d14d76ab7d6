"""Rivals that know gaps: what they learn from lacks whole bands, and their densities are honest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from scant.learners.knocked_out import (
    forest,
    knocked,
    learners,
    with_contrasts,
    with_copies,
    without,
)
from scant.learners.learner import Learner
from scant.problem import Problem

RNG = np.random.default_rng(5)
BLOCKS = np.array([0, 1, 2, 0, 1, 2])  # three bands and their errors


def table(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Bands that rise and fall together, so that one is nearly known from the others."""
    y = RNG.uniform(0, 1, n)
    bands = y[:, None] * [1.0, 2.0, 3.0] + 0.1 * RNG.normal(size=(n, 3))
    return np.column_stack([bands, RNG.normal(size=(n, 3))]), y


X, Y = table(500)
ASKED, TRUTH = table(300)


def problem(query: np.ndarray) -> Problem:
    """These rows to learn from, those to predict; their truth does not matter."""
    return Problem(X, Y, query, np.zeros(len(query)), (), blocks=BLOCKS)


LESS = without(ASKED, BLOCKS, np.arange(3) == RNG.integers(3, size=300)[:, None])


def test_a_copy_lacks_bands_with_their_errors_and_keeps_one() -> None:
    x, y, row = with_copies(X, Y, BLOCKS, 0)
    assert np.array_equal(x[: len(X)], X)
    assert np.array_equal(y, Y[row])
    assert np.bincount(row).tolist() == [5] * len(X)
    gone = np.isnan(x[len(X) :])
    assert np.array_equal(gone[:, :3], gone[:, 3:])
    assert set(gone[:, :3].sum(1)) == {1, 2}
    assert np.array_equal(np.where(gone, 0, x[len(X) :]), np.where(gone, 0, X[row[len(X) :]]))


def test_a_lonely_band_is_never_knocked_out() -> None:
    one = X[:, :1]
    assert np.array_equal(knocked(RNG, one, np.zeros(1, int)), one)
    assert len(with_copies(one, Y, np.zeros(1, int), 0)[0]) == len(one)


def test_what_no_row_lacks_stays_in_every_copy() -> None:
    blocks = np.array([0, -1, 1, 0, -1, 1])
    x, _, _ = with_copies(X, Y, blocks, 0)
    gone = np.isnan(x[len(X) :])
    assert gone.any(0).tolist() == [True, False, True] * 2
    assert (gone[:, [0, 2]].sum(1) == 1).all()
    nothing = np.full(6, -1)
    assert np.array_equal(knocked(RNG, X, nothing), X)
    assert len(with_copies(X, Y, nothing, 0)[0]) == len(X)


def test_a_contrast_is_missing_where_a_column_that_it_needs_is() -> None:
    x = np.array([[3.0, 1.0, 7.0], [np.nan, 1.0, 7.0], [3.0, 1.0, np.nan]])
    rows, contrasts = np.tile([3.0, 1.0, np.nan], (60, 1)), np.eye(2, 3) - np.eye(2, 3, 1)
    learned, made = with_contrasts(rows, x, contrasts)  # no row has the second contrast
    np.testing.assert_array_equal(made, np.column_stack([x, [2.0, np.nan, 2.0]]))
    np.testing.assert_array_equal(learned, np.column_stack([rows, np.full(60, 2.0)]))


@pytest.mark.slow
@pytest.mark.parametrize("learner", learners(0), ids=lambda learner: learner.name)
def test_bands_that_no_row_has_together_do_no_harm(learner: Learner) -> None:
    x = X[:, :3].copy()
    x[:250, 0] = x[250:, 1] = np.nan
    blocks, contrasts = np.arange(3), np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    each = Problem(x, Y, LESS[:40, :3], TRUTH[:40], (), blocks=blocks, contrasts=contrasts)
    assert np.isfinite(learner.predict(each).mean).all()


@pytest.mark.slow
@pytest.mark.parametrize("query", [ASKED, LESS], ids=["whole", "gaps"])
@pytest.mark.parametrize("learner", learners(0), ids=lambda learner: learner.name)
def test_a_step_along_a_contrast_is_learned(learner: Learner, query: np.ndarray) -> None:
    contrasts = np.array([[1.0, -1.0, 0, 0, 0, 0]])
    y = np.sign(X[:, 0] - X[:, 1] + 0.5)
    plain = replace(problem(query), y=y)
    errors = [
        np.mean((learner.predict(each).mean - np.sign(ASKED[:, 0] - ASKED[:, 1] + 0.5)) ** 2)
        for each in (plain, replace(plain, contrasts=contrasts))
    ]
    assert errors[1] < 0.9 * errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("learner", learners(0), ids=lambda learner: learner.name)
def test_rows_with_gaps_are_answered_better_than_by_filling_in(learner: Learner) -> None:
    told = learner.predict(problem(LESS))
    mean, variance = told.mean, told.variance
    filled = make_pipeline(SimpleImputer(), RandomForestRegressor(random_state=0)).fit(X, Y)
    straw = np.mean((filled.predict(LESS) - TRUTH) ** 2)
    assert np.mean((mean - TRUTH) ** 2) < 0.5 * straw
    z = (mean - TRUTH) / np.sqrt(variance)
    assert 0.4 < np.mean(z**2) < 2.0  # a forest's deviation is rather large


@pytest.mark.slow
@pytest.mark.parametrize("learner", learners(0), ids=lambda learner: learner.name)
def test_whole_rows_are_asked_of_a_fit_to_whole_rows(learner: Learner) -> None:
    both = np.concatenate([LESS[:20], ASKED[:20]])
    told, alone = learner.predict(problem(both)), learner.predict(problem(ASKED[:20]))
    np.testing.assert_allclose(told.mean[20:], alone.mean)
    np.testing.assert_allclose(told.variance[20:], alone.variance)


def test_the_forest_s_variance_is_that_of_its_leaves_rows_and_between_trees() -> None:
    x, y, row = with_copies(X[:60], Y[:60], BLOCKS, 0)
    mean, variance = forest(x, y, row, LESS[:4], 1)
    model = RandomForestRegressor(
        100, min_samples_leaf=3, max_features=0.4, max_samples=len(y), random_state=1
    ).fit(x, y)
    each = np.zeros((100, 4, 2))
    for t, (tree, rows) in enumerate(zip(model.estimators_, model.estimators_samples_)):
        mine = tree.apply(x[rows].astype(np.float32))
        for q, leaf in enumerate(tree.apply(LESS[:4].astype(np.float32))):
            inside = y[rows][mine == leaf]
            each[t, q] = inside.mean(), inside.var()
    np.testing.assert_allclose(mean, each[..., 0].mean(0))
    np.testing.assert_allclose(variance, each[..., 0].var(0) + each[..., 1].mean(0))
