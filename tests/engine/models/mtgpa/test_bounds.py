"""MTGPA against what is known exactly: the marginal likelihood, the posterior, and kriging."""

import pytest
import torch
from linear_operator.utils.errors import NotPSDError
from torch.distributions import MultivariateNormal

from scant.errors import BadInput
from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import boxes, join, weighted_points
from scant.models.mtgpa.baselines import alone, baseline
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data
from scant.models.mtgpa.training import MTGPATrainer


def _rand(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _data(d=2):
    """Two tasks: boxes, and a mixture of points and bags."""
    lower = 3 * _rand(25, d)
    wide = boxes(lower, lower + _rand(25, d, seed=1))
    bags = weighted_points(3 * _rand(5, 3, d, seed=2))
    supports = join([wide, 3 * _rand(12, d, seed=3), bags], d)
    task = torch.tensor([0] * 25 + [1] * 17)
    y = torch.randn(42, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return Data(supports, y, task)


def _model(data, natural=True, **other):
    g = torch.Generator().manual_seed(5)
    other = {"ranks": (2, 1), "lengthscale": 0.8} | other
    model = MTGPA.build(data, ["gaussian", "gaussian"], 2, g, natural=natural, **other)
    for lik in model.likelihoods:
        lik.log_noise.data.fill_(-1.0)
    return model, g


def _exact(model, data):
    """The posterior that MTGPA approximates, at its present hyperparameters."""
    return ExactGP(model.likelihoods, model.prior, data)


def _at_best(model, data, g):
    """With Gaussian likelihoods and one latent function, one natural step of size one suffices."""
    alone = len(model.prior.mixing) == 1
    training = MTGPATrainer(model, data, g, "natural", natural_rate=1.0 if alone else 0.3)
    training.optimizers.clear()
    for _ in range(1 if alone else 60):
        training.step()
    return model


def test_the_prior_is_the_sum_of_its_parts():
    data = _data()
    model, _ = _model(data)
    x, j = data.supports, data.task
    K = model.prior.covariance(x, j, x, j)
    torch.testing.assert_close(K.diagonal(), model.prior.variance(x, j))
    a = model.prior.mixing
    by_hand = sum(
        a[row][j].unsqueeze(1) * a[row][j] * model.prior.kernels[q](x).to_dense()
        for row, q in enumerate(model.prior.kernel_of.tolist())
    )
    torch.testing.assert_close(K, by_hand)
    assert model.prior.matrices().shape == (2, 2, 2)


def test_marginal_likelihood_is_that_of_the_gaussian():
    data = _data()
    model, _ = _model(data)
    exact = _exact(model, data)
    x, y, j, *_ = data
    K = model.prior.covariance(x, j, x, j) + exact.noise()[j].diag()
    expected = MultivariateNormal(model.prior.offset[j], K).log_prob(y)
    torch.testing.assert_close(exact.elbo(), expected)


def test_a_covariance_without_a_factor_is_a_wall_to_the_fit_and_no_end_of_it(monkeypatch):
    data = _data()
    exact = _exact(_model(data)[0], data)
    start, covariance = exact.noise().detach().log(), exact._covariance
    before, met = exact.elbo().item(), []

    def narrow():
        if (exact.noise().log() - start).abs().max() > 0.05:
            met.append(exact.noise().detach())
            raise NotPSDError("no factor here")
        return covariance()

    monkeypatch.setattr(exact, "_covariance", narrow)
    assert exact.fit(5) > before
    assert met
    assert (exact.noise().log() - start).abs().max() <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("inducing", [4, 12])
def test_the_bound_is_below_the_marginal_likelihood(inducing):
    data = _data()
    model, g = _model(data, inducing=inducing)
    exact = _exact(model, data).elbo().item()
    before = model.elbo(data).item()
    after = _at_best(model, data, g).elbo(data).item()
    assert before < after < exact


def test_the_bound_is_reached_with_every_support_inducing():
    """With one latent function: q(u) of several is a product, and the posterior is not."""
    data = _data()
    model, g = _model(data, inducing=data.supports, ranks=(1,))
    exact = _exact(model, data)
    _at_best(model, data, g)
    assert model.elbo(data).item() == pytest.approx(exact.elbo().item(), abs=1e-4)
    lower = 3 * _rand(6, 2, seed=6)
    for new in (lower, boxes(lower, lower + 0.5), weighted_points(_rand(6, 4, 2, seed=7))):
        for task in (0, 1):
            got, expected = model.predict(new, task), exact.predict(new, task)
            for ours, theirs in zip(got, expected):
                torch.testing.assert_close(ours, theirs.detach(), rtol=0, atol=1e-5)


def test_one_task_is_area_to_point_kriging():
    """The textbook system: simple kriging with block covariances (Kyriakidis 2004)."""
    lower = torch.arange(8, dtype=torch.float64).unsqueeze(1)
    data = Data(boxes(lower, lower + 1), torch.sin(lower[:, 0]), torch.zeros(8, dtype=torch.long))
    g = torch.Generator().manual_seed(0)
    model = MTGPA.build(
        data, ["gaussian"], 1, g, inducing=data.supports, lengthscale=1.5, natural=True
    )
    points = torch.tensor([[0.2], [3.7], [9.0]], dtype=torch.float64)
    _at_best(model, data, g)
    kernel = IntervalKernel(1).double()
    kernel.lengthscale = 1.5
    variance, offset = model.prior.matrices().item(), model.prior.offset.item()
    noise = model.likelihoods[0].noise().detach()
    K = variance * kernel(data.supports).to_dense() + noise * torch.eye(8)
    cross = variance * kernel(data.supports, points).to_dense()
    weights = torch.linalg.solve(K, cross)
    got = model.predict(points, 0)
    torch.testing.assert_close(got.mean, (offset + weights.T @ (data.y - offset)).detach())
    torch.testing.assert_close(got.variance, (variance - (weights * cross).sum(0)).detach())
    kriging = baseline("kriging", data, 1, g, torch.tensor([1.5]).double())
    kriging.likelihoods[0].log_noise.data.fill_(model.likelihoods[0].log_noise.item())
    for ours, theirs in zip(kriging.predict(points, 0), got):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_posterior_averages_are_averages_of_the_posterior():
    """The mean over a box is the mean of the means in it; its variance is less than theirs."""
    data = _data()
    model, g = _model(data, inducing=15)
    _at_best(model, data, g)
    steps = (torch.arange(30, dtype=torch.float64) + 0.5) / 30
    grid = torch.cartesian_prod(steps, steps)
    whole = model.predict(torch.tensor([[0.0, 0.0, 1.0, 1.0]], dtype=torch.float64), 1)
    parts = model.predict(grid, 1)
    assert whole.mean.item() == pytest.approx(parts.mean.mean().item(), abs=1e-4)
    assert whole.variance.item() < parts.variance.mean().item()


@pytest.mark.slow
def test_a_difference_of_supports_has_no_offset():
    data = _data()
    model, g = _model(data, inducing=15)
    _at_best(model, data, g)
    lower = torch.tensor([[0.0, 0.0], [2.0, 1.0]], dtype=torch.float64)
    each = model.predict(boxes(lower, lower + 1), 0)
    both = torch.cat([lower, lower + 1, torch.tensor([[1.0], [-1.0]])], dim=1).reshape(1, -1)
    apart = model.predict(both, 0)
    assert apart.mean.item() == pytest.approx((each.mean[0] - each.mean[1]).item())


def test_baselines_of_centroids_are_points_and_improve_with_training():
    data = _data()
    g = torch.Generator().manual_seed(0)
    for name in ("icm", "dependent", "single"):
        given = alone(data, 0) if name == "single" else data
        model = baseline(name, given, 2, g)
        x, j = given.supports, given.task
        K = model.prior.covariance(x, j, x, j).detach()
        torch.testing.assert_close(K.diagonal(), model.prior.variance(x, j).detach())
        assert torch.linalg.eigvalsh(K).min().item() > -1e-10
        before = model.elbo().item()
        assert model.fit(10) > before + 0.1
        assert bool(model.log_predictive(given).isfinite().all())
    with pytest.raises(BadInput, match="one task"):
        baseline("kriging", data, 2, g)
    with pytest.raises(BadInput, match="unknown"):
        baseline("oracle", data, 2, g)


def test_dependent_outputs_smooth_one_noise():
    """Its shared covariance is the convolution of the two smoothing kernels."""
    data = _data()._replace(supports=_rand(42, 2))
    model = baseline("dependent", data, 2, torch.Generator())
    prior = model.prior.prior
    prior.log_lengthscale.data = torch.tensor([[0.5, 0.9], [1.2, 0.4]]).double().log()
    prior.log_own.data.fill_(-30.0)
    z = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
    expected = prior.shared[0] * prior.shared[1]
    for i, gap in enumerate((0.3, -0.7)):
        halves = prior.log_lengthscale.exp()[:, i] / 2**0.5
        smooth = [torch.exp(-0.5 * ((z - c) / h) ** 2) for c, h in zip((0.0, gap), halves)]
        smooth = [s / torch.trapezoid(s * s, z).sqrt() for s in smooth]
        expected = expected * torch.trapezoid(smooth[0] * smooth[1], z)
    x = torch.tensor([[0.0, 0.0], [0.3, -0.7]], dtype=torch.float64)
    got = prior.covariance(x[:1], torch.tensor([0]), x[1:], torch.tensor([1]))
    assert got.item() == pytest.approx(expected.item(), rel=1e-8)


def test_what_is_not_gaussian_is_not_exact():
    data = _data()._replace(y=torch.ones(42, dtype=torch.float64))
    model = MTGPA.build(data, ["gaussian", "poisson"], 2, torch.Generator())
    with pytest.raises(BadInput, match="Gaussian"):
        _exact(model, data)
