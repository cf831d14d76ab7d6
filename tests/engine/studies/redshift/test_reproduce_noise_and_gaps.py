"""Chapter 5: moments against quadrature, ways to fill gaps, and that every run has its scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from scant.models.gpz.input_density import Mixture
from scant.studies.redshift.reproduce import artificial
from scant.studies.redshift.reproduce import noise_and_gaps as chapter
from scant.training.api import fit


def _learned(noise_link: str) -> artificial.Learned:
    x = np.linspace(-3, 3, 80)
    y = artificial.noisy_sinc(x, np.random.default_rng(0))
    return artificial.learn(x[:, None], y, 6, steps=15, seed=0, noise_link=noise_link)


@pytest.fixture(scope="module")
def learned() -> artificial.Learned:
    return _learned("exp")


def test_targets_around_sinc_take_the_next_numbers_of_the_generator() -> None:
    """Stored results depend on it."""
    x = np.linspace(-3, 3, 50)
    sigma = 0.01 + 0.2 * (1 + np.sin(2 * x)) / (1 + np.exp(-0.2 * x))  # section 3.2
    expected = np.sinc(x) + sigma * np.random.default_rng(0).standard_normal(50)
    assert artificial.noisy_sinc(x, np.random.default_rng(0)) == pytest.approx(expected)


@pytest.mark.slow
def test_every_run_has_finite_scores_of_its_own() -> None:
    runs = list(chapter.runs(quick=True, data=None, fit=fit))
    assert len({run.key for run in runs}) == len(runs)
    scores = [score for run in runs for score in run.scores()]
    assert len(scores) == len({score[:3] for score in scores})
    assert np.isfinite([score.value for score in scores]).all()
    ways = {score.method for score in scores if score.experiment == chapter.TRAINING}
    assert ways == set(chapter.WAYS)
    squared = {score.metric for score in scores if "squared link" in score.metric}
    name = "z-score of E[sigma^2], squared link"
    assert squared == {name, f"{name}, x missing", f"{name}, y missing"}


@pytest.mark.parametrize("noise_link", ["exp", "squared"])
def test_moments_at_noisy_inputs_are_those_of_quadrature(noise_link: str) -> None:
    learned = _learned(noise_link)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    center, variance = 0.7, 0.3
    at = (center + np.sqrt(variance) * nodes)[:, None]
    exact = chapter.quantities(learned.predict(at)) @ (weights / weights.sum())
    given = np.array([[center]]), np.array([[variance]])
    formula = chapter.quantities(learned.predict(*given))[:, 0]
    count = 4 if noise_link == "squared" else 3  # else the fourth is a Taylor series
    assert formula[:count] == pytest.approx(exact[:count], rel=1e-6)


def test_z_scores_of_exact_moments_are_those_of_chance(learned: artificial.Learned) -> None:
    """Mean |N(0, 1 / draws)|; its standard error over 400 inputs is 4%."""
    x, variance = np.linspace(-3, 3, 400)[:, None], np.full((400, 1), 0.2)
    rng = np.random.default_rng(0)
    scores = chapter.z_scores(learned.predict, x, variance, 200, rng)
    expected = np.sqrt(2 / (np.pi * 200))
    for name in ("E[f]", "E[f^2]", "E[nu^2]"):
        assert scores[name] == pytest.approx(expected, rel=0.2)


def test_moments_given_observed_inputs_are_those_of_a_grid() -> None:
    precisions = torch.tensor([[[2.0, 0.6], [0.6, 1.0]], [[1.0, -0.4], [-0.4, 3.0]]]).double()
    means = torch.tensor([[0.0, 1.0], [1.5, -1.0]]).double()
    mixture = Mixture(torch.tensor([0.3, 0.7]).double().log(), means, precisions)
    row = torch.tensor([[0.4, float("nan")]]).double()
    mean, covariance = artificial.moments_given(mixture, row, torch.tensor([True, False]))
    u = torch.linspace(-12, 12, 4001).double()
    grid = torch.stack([torch.full_like(u, 0.4), u], 1)
    density = mixture.log_joint(grid, torch.tensor([True, True])).exp().sum(1)
    density = density / density.sum()
    assert mean[0, 0].item() == pytest.approx(0.4)
    assert covariance[0, 0].tolist() == pytest.approx([0, 0])
    assert mean[0, 1].item() == pytest.approx((density @ u).item(), rel=1e-6)
    second = (density @ u.square()).item() - mean[0, 1].item() ** 2
    assert covariance[0, 1, 1].item() == pytest.approx(second, rel=1e-6)


def test_a_joint_mixture_of_one_component_predicts_by_regression() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 2))
    y = 2 * x[:, 0] + 0.5 * rng.standard_normal(500)
    joint = chapter.joint_mixture(np.column_stack([x, y]), 1, seed=0)
    query = np.column_stack([x[:, 0], np.full(500, np.nan)])
    slope, offset = np.polyfit(x[:, 0], y, 1)
    residual = y - slope * x[:, 0] - offset
    expected = norm(0, residual.std()).logpdf(residual).mean()
    found = chapter.by_mixture(joint, query, y, np.array([True, False]))
    assert found == pytest.approx(expected, abs=1e-3)  # scikit-learn adds 1e-6 to the variances


def test_a_tree_without_values_stops_at_its_root() -> None:
    """It predicts the mean and the variance of what it learned from: a bootstrap sample."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2000, 2)), rng.standard_normal(2000)
    nothing = np.full((1, 2), np.nan)
    found = chapter.by_forest(x, y, nothing, y[:1], trees=50, seed=0)
    assert found == pytest.approx(norm(y.mean(), y.std()).logpdf(y[0]), abs=0.02)


def test_a_gap_needs_the_other_input() -> None:
    """With half of the rows incomplete no row lacks both inputs, and the truth is still found."""
    small = chapter.SMALL._replace(trained=400, many=15, steps=60)
    half, none = (
        {s.method: s.value for s in chapter.training_with_gaps(small, share, seed=0)}
        for share in (50, 0)
    )
    assert none["GPz"] < half["GPz"] < 0.12  # the deviation of the targets
