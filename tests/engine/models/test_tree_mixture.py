"""Randomized trees with Gaussian leaves, beside scikit-learn's forest and the known density."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor

from scant.models.tree_mixture import LEAF_ROWS, N_QUICK_TREES, PARTS, TreeMixture

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def rows(n: int, seed: int) -> Rows:
    """A step, which is noisy on one side; the true standard deviation."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (n, 3))
    std = np.where(x[:, 1] > 0, 0.3, 0.05)
    return x, np.sign(x[:, 0]) + std * generator.normal(size=n), std


@pytest.fixture(scope="module")
def model() -> TreeMixture:
    x, y, _ = rows(1000, 0)
    return TreeMixture.fit(x, y, N_QUICK_TREES)


def test_the_mean_is_that_of_scikit_learn(model: TreeMixture) -> None:
    x, y, _ = rows(1000, 0)
    forest = ExtraTreesRegressor(N_QUICK_TREES, min_samples_leaf=LEAF_ROWS, random_state=0)
    query, *_ = rows(300, 1)
    mean, variance = model.predict(query)
    assert mean.shape == variance.shape == (300, PARTS)
    assert (np.diff(mean) >= 0).all()
    np.testing.assert_allclose(mean.mean(1), forest.fit(x, y).predict(query), atol=1e-5)


def test_components_keep_the_variance_of_the_mixture_of_leaves(model: TreeMixture) -> None:
    query, *_ = rows(50, 1)
    own_mean, own_variance = model._gaussians(query)
    mean, variance = model.predict(query)
    expected = own_variance.mean(1) + own_mean.var(1)
    np.testing.assert_allclose(variance.mean(1) + mean.var(1), expected, rtol=1e-9)


def test_the_density_follows_the_step_and_the_noise(model: TreeMixture) -> None:
    query, y, std = rows(4000, 2)
    mean, variance = model.predict(query)
    density = logsumexp(norm.logpdf(y[:, None], mean, np.sqrt(variance)), axis=1) - np.log(PARTS)
    constant = norm.logpdf(y, mean.mean(1), np.std(y - mean.mean(1)))
    assert density.mean() > constant.mean() + 0.4
    away = (np.abs(query[:, :2]) > 0.2).all(1)  # from the step and from the change of noise
    total = np.sqrt(variance.mean(1) + mean.var(1))
    loud, quiet = (np.median(total[away & (std == one)]) for one in (0.3, 0.05))
    assert loud == pytest.approx(0.3, rel=0.15)
    assert 0.05 < quiet < 0.12  # leaves of three rows blur it
    assert np.mean(np.abs(y - mean.mean(1))[away] < 2 * total[away]) > 0.94


def test_a_restored_model_predicts_the_same(model: TreeMixture) -> None:
    query, *_ = rows(20, 3)
    again = TreeMixture.from_tensors(model.tensors())
    np.testing.assert_array_equal(again.predict(query), model.predict(query))


def test_a_contrast_lets_trees_split_obliquely() -> None:
    generator = np.random.default_rng(4)
    x, new = generator.uniform(-1, 1, (2, 1000, 4))
    contrast = np.array([[1.0, -1.0, 0.0, 0.0]])
    plain, oblique = (
        TreeMixture.fit(x, np.sign(x @ contrast[0]), N_QUICK_TREES, contrasts=each)
        for each in (None, contrast)
    )
    error = [np.mean((m.predict(new)[0].mean(1) - np.sign(new @ contrast[0])) ** 2)
             for m in (plain, oblique)]  # fmt: skip
    assert error[1] < 0.5 * error[0]
    again = TreeMixture.from_tensors(oblique.tensors())
    np.testing.assert_array_equal(again.predict(new), oblique.predict(new))
