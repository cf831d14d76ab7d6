"""Quantiles, densities and rows outside of what was learned, by brute force and by SciPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import lognorm, norm, poisson
from sklearn.metrics.pairwise import nan_euclidean_distances

from scant.models.mtgpa.likelihoods import Moments, likelihood
from scant.predictive import (
    BernoulliPredictive,
    CountsPredictive,
    MixturePredictive,
    ValuePredictive,
)
from scant.predictive.quantiles import quantiles
from scant.studies import entry
from scant.studies.densities import column_specs
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_columns import added_names, data_dictionary
from scant.studies.predicted_table import place, with_columns

ENDS = np.array([0.25, 0.75, 0.1, 0.9, 0.025, 0.975])


def test_a_mixture_has_the_quantiles_of_its_draws() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([[0.7, 0.3, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    mean, std = rng.normal(0, 3, (3, 3)), rng.uniform(0.1, 2, (3, 3))
    std[0, 2] = mean[0, 2] = 0.0  # what has no weight may be anything
    ends = quantiles(weights, mean, std, ENDS)
    for i in range(3):
        which = rng.choice(3, 200_000, p=weights[i])
        draws = rng.normal(mean[i, which], std[i, which])
        share = (draws <= ends[:, i, None]).mean(1)
        np.testing.assert_allclose(share, ENDS, atol=0.005)
    np.testing.assert_allclose(ends[:, 2], norm.ppf(ENDS, mean[2, 0], std[2, 0]), atol=1e-9)


@pytest.mark.parametrize("kind", ["gaussian", "heteroscedastic", "poisson", "bernoulli"])
def test_a_likelihood_has_the_quantiles_of_its_draws(kind: str) -> None:
    lik = likelihood(kind)
    n, f = 4, lik.functions
    generator = torch.Generator().manual_seed(0)
    mean = torch.linspace(-1, 2, f * n, dtype=torch.float64).view(f, n)
    root = 0.5 * torch.randn(n, f, f, generator=generator, dtype=torch.float64)
    K = root @ root.mT + 0.05 * torch.eye(f, dtype=torch.float64)
    exposure = torch.tensor([1.0, 2.0, 5.0, 0.5], dtype=torch.float64)
    q = Moments(mean, K.permute(1, 2, 0))
    with torch.no_grad():
        ends = _told(kind, q, exposure).quantile(ENDS)
    rng = np.random.default_rng(1)
    for i in range(n):
        drawn = rng.multivariate_normal(mean[:, i].numpy(), K[i].numpy(), 40_000)
        samples = torch.tensor(drawn if f > 1 else drawn[:, 0])
        with torch.no_grad():
            p = lik(samples, exposure=exposure[i]) if kind == "poisson" else lik(samples)
        torch.manual_seed(i)
        y = p.sample().numpy()
        at = (y <= ends[:, i, None] + 1e-9).mean(1)
        below = (y < ends[:, i, None] - 1e-9).mean(1)
        assert (at >= ENDS - 0.012).all()  # the least y that is not exceeded so often
        assert (below <= ENDS + 0.012).all()


def _told(kind: str, q: Moments, exposure: torch.Tensor) -> ValuePredictive:
    """New observations under a likelihood, of which f has these moments."""
    lik, one = likelihood(kind), np.ones((len(exposure), 1))
    if kind == "bernoulli":
        return BernoulliPredictive(lik.predict(q, exposure).mean.numpy())
    if kind == "poisson":
        log_rate = (q.mean[0] + exposure.log()).numpy()[:, None]
        return CountsPredictive(one, log_rate, q.covariance[0, 0].numpy()[:, None], one[:, 0])
    weights, means, variances = lik.components(q, exposure)
    shares = weights.expand_as(means)
    return MixturePredictive(*(column.T.numpy() for column in (shares, means, variances)))


def test_counts_of_a_known_rate_are_poissons() -> None:
    rate = np.array([0.01, 3.0, 250.0, 1e6])
    q = Moments(torch.tensor(rate).log()[None], torch.zeros(1, 1, 4, dtype=torch.float64))
    ends = _told("poisson", q, torch.ones(4, dtype=torch.float64)).quantile(ENDS)
    np.testing.assert_array_equal(ends, poisson.ppf(ENDS[:, None], rate))


def test_one_row_in_a_hundred_like_the_learned_ones_is_outside_and_all_far_ones_are() -> None:
    rng = np.random.default_rng(0)
    region = LearnedRegion(rng.normal(size=(1500, 3)))
    assert 0.003 < region.outside(rng.normal(size=(4000, 3))).mean() < 0.03
    assert region.outside(rng.normal(size=(50, 3)) + 9).all()
    holes = rng.normal(size=(300, 3))
    holes[:, 1] = np.nan
    assert region.outside(holes).mean() < 0.03
    assert region.outside(np.full((1, 3), np.nan)).all()
    assert not LearnedRegion(np.zeros((5, 2))).outside(np.full((2, 2), 1e9)).any()  # one place


def test_a_box_is_outside_where_its_middle_is_far_from_every_learned_box() -> None:
    low = np.array([[0.0, 0.0], [10.0, 0.0], [4.0, 4.0]])
    region = LearnedRegion(low, low + np.array([[10.0, 10.0], [10.0, 10.0], [1.0, 1.0]]))
    asked = np.array([[5.0, 5.0], [19.0, 9.0], [60.0, 5.0], [-90.0, 0.0]])
    assert region.outside(asked, asked + 0.5).tolist() == [False, False, True, True]
    points = LearnedRegion(np.arange(10.0)[:, None])
    assert points.outside(np.array([[3.5], [10.0], [10.2], [-4.0]])).tolist() == [
        False, False, True, True,
    ]  # fmt: skip


def test_the_data_dictionary_has_units_and_escapes_what_a_table_is_made_of() -> None:
    given, every = ["a|b", "d [km]"], ["a|b", "d [km]", "mean", "predicted_std", "lo50", "outside"]
    words = data_dictionary(entry("redshift"), given, every, "flux [mJy]")
    assert "| a\\|b | as given | as given |" in words
    assert "| d [km] | as given | km |" in words
    assert "| mean | predictive mean | mJy |" in words
    assert "| predicted_std | deviation of a new value: of all its parts | mJy |" in words
    assert "| lo50 |" in words
    assert "| mean | predictive mean | that of z |" in data_dictionary(
        entry("redshift"), given, every, "z"
    )
    words = data_dictionary(entry("redshift"), ["z_spec", "z"], ["z_spec", "z"], "z_spec")
    assert "| z_spec | as given: what is predicted |" in words
    assert "| z | as given | as given |" in words  # a band
    every = ["predicted", "p(cat)", "role", "information"]
    words = data_dictionary(entry("multiview"), [], every)
    assert "| predicted | class that is predicted" in words
    assert "| p(cat) | probability of the class cat | probability |" in words
    assert "train, validation or test" in words


def test_no_column_of_the_table_is_written_over() -> None:
    assert added_names(["label", "mean"], ["label", "mean", "std"]) == [
        "predicted", "predicted_mean", "std",
    ]  # fmt: skip
    taken = ["label", "predicted", "predicted_mean", "mean"]
    assert added_names(taken, ["label", "mean"]) == [
        "predicted_predicted",
        "predicted_predicted_mean",
    ]
    table = pd.DataFrame({"mean": [7]}, index=[4])
    told = with_columns(table, {"mean": np.array([0.5])})
    assert told.to_dict("list") == {"mean": [7], "predicted_mean": [0.5]}
    assert told.index.tolist() == [4]
    assert place(table) == ("the table", np.array([2]))
    table.attrs["file"] = "mine.csv"
    assert place(table) == ("mine.csv", np.array([4]))


@pytest.mark.parametrize("gaps", [(0.0, 0.0), (0.0, 0.3), (0.2, 0.3)])
@pytest.mark.parametrize("wild", [1.0, 1e9])
def test_distances_by_matrix_products_are_those_of_scikit_learn(
    gaps: tuple[float, float], wild: float
) -> None:
    rng = np.random.default_rng(0)
    known, asked = rng.normal(size=(300, 4)), 2 * rng.normal(size=(900, 4))
    asked[:30] = known[:30]
    known[5] *= wild
    asked[40] *= wild
    for rows, share in zip((known, asked), gaps):
        rows[rng.random(rows.shape) < share] = np.nan
    asked[50] = np.nan
    region = LearnedRegion(known)
    apart = nan_euclidean_distances(asked, known[np.isfinite(known).any(1)])
    away = np.nanmin(np.where(np.isnan(apart), np.inf, apart), axis=1)
    near = np.abs(away - region.reach) < 1e-6 * region.reach
    outside = region.outside(asked)
    assert 20 < outside.sum() < 880
    np.testing.assert_array_equal(outside[~near], (away > region.reach)[~near])


@pytest.mark.parametrize("spread", [0.1, 3.0, 1e4])
def test_quantiles_of_mixtures_are_roots_of_their_distribution_functions(spread: float) -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(6, 0.3), 500)
    weights[rng.random(weights.shape) < 0.3] = 0.0
    weights[:, 0] += 1e-3
    weights /= weights.sum(1, keepdims=True)
    mean, std = spread * rng.normal(size=(500, 6)), 10 ** rng.uniform(-3, 1, (500, 6))
    ends = quantiles(weights, mean, std, ENDS)

    def below(y: np.ndarray) -> np.ndarray:
        return (weights * norm.cdf((y[..., None] - mean) / std)).sum(-1)

    p, reach = ENDS[:, None], 1e-9 * np.abs(ends) + 1e-12
    assert (below(ends - reach) <= p + 1e-11).all()
    assert (below(ends + reach) >= p - 1e-11).all()


def some(n: int = 300, k: int = 5) -> MixturePredictive:
    generator = np.random.default_rng(0)
    weights, variances = generator.dirichlet(np.ones(k), n), generator.gamma(1.0, 0.1, (n, k))
    return MixturePredictive(weights, generator.normal(size=(n, k)), variances + 1e-3)


def test_modes_are_the_highest_points_of_a_fine_grid() -> None:
    told = some()
    modes, medians = told.mode(), told.median()
    for row, (w, m, s) in enumerate(zip(*told.parameters().values(), strict=True)):
        grid = np.linspace(m.min(), m.max(), 20_001)
        height = (w * norm.pdf(grid[:, None], m, s)).sum(1).max()
        assert (w * norm.pdf(modes[row], m, s)).sum() >= height * (1 - 1e-12)
        assert (w * norm.cdf(medians[row], m, s)).sum() == pytest.approx(0.5, abs=1e-9)


def test_a_mode_of_one_gaussian_is_its_mean() -> None:
    told = MixturePredictive(*(np.array([row]) for row in ([1.0, 0.0], [0.3, 0.3], [0.01, 0.01])))
    assert told.mode() == pytest.approx([0.3], abs=1e-6)
    assert told.median() == pytest.approx([0.3])
    assert told.mean == pytest.approx([0.3])


def test_log_normals_keep_the_mean_and_variance_of_the_whole() -> None:
    generator = np.random.default_rng(1)
    w, m = generator.dirichlet(np.ones(9), 50), generator.normal(-0.5, 0.3, (50, 9))
    v = generator.gamma(2.0, 0.005, (50, 9))
    told = MixturePredictive(w, m, v, log=True).reduced(4)
    each = lognorm(s=np.sqrt(v), scale=np.exp(m))
    mean = (w * each.mean()).sum(1)
    square = (w * (each.var() + each.mean() ** 2)).sum(1)
    np.testing.assert_allclose(told.mean, mean, rtol=1e-10)
    own = (told.weights * (told.variances + told.means**2)).sum(1)
    np.testing.assert_allclose(own - mean**2, square - mean**2, rtol=1e-9)


@pytest.mark.parametrize("s", [0.05, 0.1, 0.2])
def test_a_log_normal_is_as_far_from_its_gaussian_as_the_docstring_says(s: float) -> None:
    one = np.ones((1, 1))
    told = MixturePredictive(one, 0 * one, s**2 * one, log=True).reduced(5)
    z = np.exp(np.linspace(-8 * s, 8 * s, 20_001))
    apart = lognorm.pdf(z, s) - norm.pdf(z, told.means[0, 0], told.std[0])
    assert 0.5 * np.trapezoid(np.abs(apart), z) == pytest.approx(0.37 * s, rel=0.05)


def test_columns_are_those_that_are_explained() -> None:
    told = some(3)
    assert list(told.columns()) == [spec.name for spec in column_specs("target")]
    np.testing.assert_array_equal(told.columns()["std_2"], told.variances[:, 1] ** 0.5)
