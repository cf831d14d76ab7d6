"""GPs for few rows: of neighbors, of classes, of all hyperparameters, of rows left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from linear_operator.utils.warnings import NumericalWarning
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from scant.models import nearest_gp
from scant.models.left_out import ExactGP, Form, Indicators, Similarity, select_kernel
from scant.models.marginal_gp import JITTER, NOISE, SIGNAL, SLOPE, WIDTH, MarginalGP
from scant.models.nearest_gp import QUICK, NearestGP
from scant.models.softmax_gp import Inputs, Kernel, Problem
from scant.models.softmax_mixture import SoftmaxMixture, relevance


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, 2))
    return x, np.sin(2 * x[:, 0]) + 0.1 * generator.normal(size=n)


def test_with_all_rows_as_neighbors_it_is_the_exact_gp(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(60)
    asked = np.random.default_rng(1).normal(size=(7, 2))
    theta = torch.tensor([0.8, 1.5, 1.3, 0.02, 0.5], dtype=torch.float64).log()
    told = np.linspace(0.01, 0.05, 60)
    model = NearestGP.fit(x, y, told, theta)
    near = model.tree.query((torch.from_numpy(asked) / model.widths).numpy(), 60)[1]
    mean, variance = (v.detach() for v in model._condition(near, torch.from_numpy(asked)))
    kernel = ConstantKernel(1.3) * Matern([0.8, 1.5], nu=1.5)
    spread = 0.02 + nearest_gp.MIN_NOISE + 0.5 * told
    exact = GaussianProcessRegressor(kernel, alpha=spread, optimizer=None).fit(x, y)
    expected, deviation = exact.predict(asked, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-9)
    np.testing.assert_allclose(variance, deviation**2, rtol=1e-6)
    means, variances, noise = model.predict(asked, np.full(7, 0.1))
    assert means.shape == (7, nearest_gp.PARTS)
    known = np.broadcast_to((model.noise + 0.05) / deviation[:, None] ** 2, noise.shape)
    np.testing.assert_allclose(noise / variances, known, rtol=1e-6)  # each part by its own share


def test_rows_almost_without_noise_need_jitter_that_is_reported() -> None:
    x, y = rows(80)
    x, y = np.concatenate([x, x]), np.concatenate([y, y])  # equal rows, and a signal of 1e10
    theta = torch.tensor([3.0, 3.0, 23.0, -40.0, -40.0], dtype=torch.float64)
    with pytest.warns(NumericalWarning, match="added jitter"):
        mean, variance, noise = NearestGP.fit(x, y, theta=theta).predict(x[:5])
    assert np.isfinite([mean, variance, noise]).all()
    np.testing.assert_allclose(mean.mean(1), y[:5], atol=1e-3)
    assert np.sqrt(variance + noise).max() < 0.1


@pytest.mark.slow
def test_a_density_has_two_peaks_where_rows_that_look_alike_went_two_ways() -> None:
    generator = np.random.default_rng(2)
    x, side = generator.normal(size=(1200, 2)), generator.choice([-1.0, 1.0], 1200)
    y = np.where(x[:, 0] > 0, side, 0.0) + 0.05 * generator.normal(size=1200)
    model = NearestGP.fit(x[:1000], y[:1000], search=QUICK)
    means, *variances = model.predict(x[1000:])
    std = np.sqrt(variances[0] + variances[1])
    unseen = y[1000:, None]
    several = np.log(norm.pdf(unseen, means, std).mean(1))
    whole, away = means.mean(1), means.var(1) + (std**2).mean(1)
    one = norm.logpdf(y[1000:], whole, away**0.5)
    two = x[1000:, 0] > 0.2
    assert several[two].mean() > one[two].mean() + 0.2
    middle = norm.pdf(0.0, means[two], std[two]).mean(1)
    peaks = norm.pdf(1.0, means[two], std[two]).mean(1)
    assert np.median(peaks / middle) > 2


def test_rows_without_themselves_are_the_others() -> None:
    x, y = rows(50)
    x[10:14] = x[10]  # alike, so that none need be its own nearest one
    model = NearestGP.fit(x, y, theta=torch.zeros(5, dtype=torch.float64))
    near = nearest_gp._neighbors(model.tree, torch.arange(50), 8)
    assert near.shape == (50, 8)
    assert not (near == torch.arange(50).unsqueeze(1)).any()


@pytest.mark.slow
def test_it_finds_the_input_of_no_use_and_the_noise() -> None:
    x, y = rows(600)
    model = NearestGP.fit(x[:500], y[:500], search=QUICK)
    assert model.widths[1] > 3 * model.widths[0]
    mean, variance, noise = model.predict(x[500:])
    whole = mean.mean(1)
    z = (y[500:] - whole) / (mean.var(1) + (variance + noise).mean(1)) ** 0.5
    assert np.sqrt(np.mean((y[500:] - whole) ** 2)) < 0.15
    assert 0.7 < z.std() < 1.3


def test_it_comes_back_as_it_was_put_down() -> None:
    x, y = rows(80)
    model = NearestGP.fit(x, y, theta=torch.zeros(5, dtype=torch.float64))
    again = NearestGP.from_tensors(model.tensors())
    for a, b in zip(model.predict(x[:9]), again.predict(x[:9])):
        np.testing.assert_array_equal(a, b)
    earlier = {k: v for k, v in model.tensors().items() if k != "error"} | {"surprise": model.y}
    torch.testing.assert_close(NearestGP.from_tensors(earlier).error, model.error)


def rings(n: int, seed: int, noise: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, by the distance from the middle; further columns say nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2 + noise))
    label = np.digitize(np.hypot(x[:, 0], x[:, 1]), [0.8, 1.5])
    return x, label


def test_the_mode_is_that_of_the_posterior() -> None:
    x, label = rings(25, 0)
    kernel = Kernel("rbf", False, length=1.0, amplitude=3.0)
    model = Problem(x, label, 3, np.arange(25), np.ones(2)).model(kernel)
    K = kernel(x, x)
    missed = np.eye(3)[label] - model.probability(x)
    # GPML 3.38: f = K (y - pi), and the slope by the constants is zero
    assert K @ model.coefficients == pytest.approx(kernel.amplitude * K @ missed, abs=0.2)
    assert missed.sum(0) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("ranks", [False, True])
def test_inputs_fill_gaps_and_say_so(ranks: bool) -> None:
    x = np.array([[1.0, 5.0, 7.0], [2.0, np.nan, 7.0], [3.0, 9.0, 7.0], [1000.0, 7.0, 7.0]])
    made = Inputs.fit(x).transform(x, ranks)
    assert made.shape == (4, 3)  # two that vary, and a gap
    assert made[:, 2].tolist() == [0, 1, 0, 0]
    assert np.isfinite(made).all()
    if ranks:
        assert made[:, 0] == pytest.approx(12**0.5 * (np.arange(4) / 3 - 0.5))
        new = Inputs.fit(x).transform(np.array([[1e9, 7.0, 0.0]]), True)
        assert new[0, 0] == made[3, 0]


@pytest.mark.slow
def test_a_mixture_tells_classes_and_keeps() -> None:
    x, label = rings(100, 1)
    x[::9, 1] = np.nan
    model = SoftmaxMixture.fit(x, label, 3)
    new, truth = rings(300, 2)
    p = model.probability(new)
    assert p.sum(1) == pytest.approx(1)
    assert sum(model.ensemble.weights.values()) == pytest.approx(1)
    assert np.log(p[np.arange(300), truth]).mean() > -0.65
    assert (p.argmax(1) == truth).mean() > 0.75
    back = SoftmaxMixture.from_arrays({k: v.copy() for k, v in model.arrays().items()})
    assert np.array_equal(back.probability(new), p)
    other = model.refit(x[:60], label[:60])
    assert (other.probability(new).argmax(1) == truth).mean() > 0.65


@pytest.mark.slow
def test_rows_left_out_are_not_seen() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 3))
    group = np.repeat(np.arange(20), 4)
    same = rng.integers(0, 2, 20)[group]
    x = rng.normal(size=(20, 3))[group] + 0.01 * x
    held = SoftmaxMixture.fit(x, same, 2, group=group).held[np.arange(80), same]
    assert np.log(held).mean() < -0.5  # of a group nothing is known by the others
    apart = SoftmaxMixture.fit(x, same, 2).held[np.arange(80), same]
    assert np.log(apart).mean() > -0.3


def test_columns_that_say_nothing_have_little_weight() -> None:
    x, label = rings(150, 4, noise=4)
    problem = Problem(x, np.minimum(label, 1), 2, np.arange(9), np.ones(6))
    scale = relevance(problem, np.arange(150), np.random.default_rng(0))
    assert scale[:2].min() > 2 * scale[2:].max()
    assert (scale**2).mean() == pytest.approx(1)


@pytest.mark.slow
def test_a_class_of_two_rows_is_learned() -> None:
    x, label = rings(40, 5)
    label = np.r_[np.minimum(label, 1), 2, 2]
    x = np.vstack([x, [[6.0, 6.0], [6.1, 6.0]]])
    p = SoftmaxMixture.fit(x, label, 3).probability(np.array([[6.0, 6.1], [0.0, 0.0]]))
    assert p.argmax(1).tolist() == [2, 0]


def _wave(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = np.linspace(-1.5, 1.5, n)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=n)
    return x, (y - y.mean()) / y.std()


def _covariance(a: np.ndarray, b: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Of 1-d inputs, for one draw of logarithms, written out."""
    r = math.sqrt(5) * np.abs(a[:, None] - b) / math.exp(theta[3])
    wave = math.exp(2 * theta[1]) * (1 + r + r**2 / 3) * np.exp(-r)
    return wave + math.exp(2 * theta[2]) * a[:, None] * b + 1


@pytest.mark.slow
def test_moments_are_those_of_the_posterior_of_the_hyperparameters() -> None:
    x, y = _wave(10)
    asked = np.array([-2.0, -0.4, 0.1, 1.0, 2.5])
    prior = np.array([NOISE, SIGNAL, SLOPE, WIDTH])
    draws = np.log(prior[:, 0]) + prior[:, 1] * np.random.default_rng(0).normal(size=(20_000, 4))
    evidence, means, squares = [], [], []
    for theta in draws:
        root = np.linalg.cholesky(
            _covariance(x[:, 0], x[:, 0], theta)
            + (math.exp(2 * theta[0]) + JITTER) * np.eye(len(x))
        )
        white = np.linalg.solve(root, y)
        seen = np.linalg.solve(root, _covariance(x[:, 0], asked, theta))
        mean = seen.T @ white
        own = math.exp(2 * theta[1]) + math.exp(2 * theta[2]) * asked**2 + 1
        evidence.append(-0.5 * white @ white - np.log(root.diagonal()).sum())
        means.append(mean)
        squares.append(own - (seen**2).sum(0) + mean**2)
    weight = np.exp(np.array(evidence) - max(evidence))
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 200, "enough draws count"
    mean = weight @ np.array(means)
    variance = weight @ np.array(squares) - mean**2

    found, spread = MarginalGP.fit(x, y).predict(asked[:, None])

    assert np.abs(found - mean) == pytest.approx(0, abs=0.1)
    assert spread**0.5 == pytest.approx(variance**0.5, rel=0.25)


def test_the_same_rows_give_the_same_bits_and_what_is_stored_is_read() -> None:
    x, y = _wave(12)
    first, again = MarginalGP.fit(x, y), MarginalGP.fit(x, y)
    read = MarginalGP.from_tensors(first.tensors())
    for other in (again, read):
        assert torch.equal(first.theta, other.theta)
        for one, two in zip(first.predict(x), other.predict(x)):
            assert np.array_equal(one, two)


def test_many_inputs_share_a_lengthscale_and_a_line_is_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 25))
    y = x[:, 0] + 0.05 * rng.normal(size=40)
    model = MarginalGP.fit(x, y / y.std())
    assert model.theta.shape[1] == 4
    far = np.zeros((2, 25))
    far[:, 0] = -3, 3
    low, high = model.predict(far)[0]
    assert high - low > 2, "a line goes on outside the rows"


RNG = np.random.default_rng(0)
VIEWS = [RNG.normal(size=(30, 2)), RNG.normal(size=(30, 3))]
Y = np.sin(2 * VIEWS[0][:, :1]) + 0.1 * RNG.normal(size=(30, 1))
FORMS = [
    Form("linear", 1.0, 0.0, False, 0.1),
    Form("rbf", 0.6, 0.0, True, 0.01),
    Form("matern", 0.6, 0.3, False, 0.1),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.shape)
def test_a_left_out_row_is_predicted_as_by_a_fit_without_it(form: Form) -> None:
    gp = ExactGP(form, VIEWS, Y)
    K = Similarity.matrix(form, gp.similarity.parts(VIEWS, VIEWS))
    rest = np.arange(30) != 7
    A = K[np.ix_(rest, rest)] + form.noise * np.eye(29)
    centered = Y - Y.mean(0)
    mean, variance = gp.left_out
    by_hand = K[7, rest] @ np.linalg.solve(A, centered[rest]) + Y.mean(0)
    np.testing.assert_allclose(mean[7], by_hand)
    own = K[7, 7] + form.noise - K[7, rest] @ np.linalg.solve(A, K[rest, 7])
    np.testing.assert_allclose(variance[7], own)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.shape)
def test_predictions_are_those_of_dense_algebra(form: Form) -> None:
    gp = ExactGP(form, VIEWS, Y)
    new = [v[:4] + 0.1 for v in VIEWS]
    A = Similarity.matrix(form, gp.similarity.parts(VIEWS, VIEWS)) + form.noise * np.eye(30)
    k = Similarity.matrix(form, gp.similarity.parts(new, VIEWS))
    prior = Similarity.matrix(form, gp.similarity.parts(new, new)).diagonal()
    mean, variance = gp.predict(new)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(A, Y - Y.mean(0)) + Y.mean(0))
    by_hand = prior - (k * np.linalg.solve(A, k.T).T).sum(1) + form.noise
    np.testing.assert_allclose(variance, gp.height * by_hand, rtol=1e-8)


def test_the_kernel_that_fits_is_chosen() -> None:
    x = np.random.default_rng(1).normal(size=(80, 2))
    bent = np.sin(3 * x[:, :1])
    straight = x @ np.array([[1.0], [2.0]])
    assert select_kernel([([x], bent)]).shape != "linear"
    assert select_kernel([([x], straight)], linear=True).shape == "linear"
    line = ExactGP(select_kernel([([x], straight)], linear=True), [x], straight)
    np.testing.assert_allclose(line.predict([x + 1])[0], (x + 1) @ [[1.0], [2.0]], atol=0.01)


def test_classes_that_a_circle_parts_are_told_apart_with_probabilities() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 2))
    label = ((x**2).sum(1) + 0.3 * rng.normal(size=300) > 1.4).astype(int)
    form = select_kernel([([x[:200]], np.eye(2)[label[:200]])])
    p = Indicators.from_labels(form, [x[:200]], label[:200], 2).predict([x[200:]])
    np.testing.assert_allclose(p.sum(1), 1)
    assert (p.argmax(1) == label[200:]).mean() > 0.85
    assert np.log(p[np.arange(100), label[200:]]).mean() > -0.4
    assert p.min() >= 1 / 201 / 2  # nothing is ruled out by 200 rows
