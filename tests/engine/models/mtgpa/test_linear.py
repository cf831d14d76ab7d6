"""Known noise, rates with denominators and covariates, against dense algebra and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor
from torch.distributions import MultivariateNormal

from scant.errors import BadInput
from scant.kernels.box_average.support import boxes
from scant.models.mtgpa.coefficients import Coefficients
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.initialization import check
from scant.models.mtgpa.likelihoods import GaussianRate
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import COEFFICIENT, Data
from scant.models.mtgpa.training import MTGPATrainer

N = 24


def _rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _data(covariates: int = 0, tasks: int = 2) -> Data:
    lower = 4 * _rand(N, 1)
    x = boxes(lower, lower + _rand(N, 1, seed=1))
    z = _rand(N, covariates, seed=2) - 0.5
    y = torch.sin(lower[:, 0]) + z.sum(1) + 0.1 * _rand(N, seed=3)
    task = torch.arange(N) % tasks
    return Data(torch.cat([x, z], 1), y, task, 1 + 9 * _rand(N, seed=4), 0.3 * _rand(N, seed=5))


def _exact(data: Data, kinds: tuple[str, ...] = ("gaussian", "gaussian"), p: int = 0) -> ExactGP:
    g = torch.Generator().manual_seed(0)
    return ExactGP.build(
        data, len(kinds), 1, g, likelihoods=kinds, covariates=p, lengthscale=0.8, ranks=(1, 1)
    )


def _dense(model: ExactGP, data: Data, p: int) -> tuple[Tensor, Tensor]:
    """Mean and covariance of y, from the parts of the model."""
    x, z = data.supports[:, : data.supports.shape[1] - p], data.supports[:, 2:]
    K, a = torch.zeros(N, N).double(), model.prior.mixing
    for row, kernel in enumerate(model.prior.kernels):
        K += torch.outer(a[row][data.task], a[row][data.task]) * kernel(x).to_dense()
    K += (data.task[:, None] == data.task) * (COEFFICIENT**2 * z @ z.T)
    noise = torch.zeros(N).double()
    for d, lik in enumerate(model.likelihoods):
        mine = data.task == d
        noise[mine] = lik.log_noise.exp() + 1e-6
        if isinstance(lik, GaussianRate) and data.exposure is not None:
            noise[mine] += lik.log_spread.exp() / data.exposure[mine]
    assert data.known is not None
    return model.prior.offset[data.task], K + torch.diag(noise + data.known)


@pytest.mark.parametrize("p", [0, 2])
@pytest.mark.parametrize("kinds", [("gaussian", "gaussian"), ("gaussian_rate", "gaussian")])
@torch.no_grad()
def test_evidence_and_posterior_are_those_of_dense_algebra(kinds: tuple[str, str], p: int) -> None:
    data = _data(p)
    with torch.enable_grad():
        model = _exact(data, kinds, p)
    mean, K = _dense(model, data, p)
    torch.testing.assert_close(model.elbo(), MultivariateNormal(mean, K).log_prob(data.y))
    j = torch.ones(N, dtype=torch.long)
    cross = model.prior.covariance(data.supports, data.task, data.supports, j)
    own = model.prior.variance(data.supports, j)
    told = model.predict(data.supports, 1, data.exposure, data.known)
    solved = torch.linalg.solve(K, cross)
    expected = model.prior.offset[1] + solved.T @ (data.y - mean)
    torch.testing.assert_close(told.mean, expected)
    torch.testing.assert_close(told.variance, own - (solved * cross).sum(0), rtol=1e-6, atol=1e-9)
    assert data.known is not None
    learned = model.likelihoods[1].noise()
    torch.testing.assert_close(told.noise, learned + data.known)


@torch.no_grad()
def test_known_noise_is_the_alpha_of_scikit_learn() -> None:
    x, y = 4 * _rand(N, 1), torch.sin(4 * _rand(N, 1))[:, 0]
    error = 0.1 + 0.4 * _rand(N, seed=1)
    data = Data(boxes(x, x), y, torch.zeros(N, dtype=torch.long), None, error**2)
    with torch.enable_grad():
        model = ExactGP.build(data, 1, 1, torch.Generator().manual_seed(0))
    learned, m = float(model.likelihoods[0].noise()), float(model.prior.offset[0])
    kernel = ConstantKernel(float(model.prior.mixing[0, 0]) ** 2, "fixed") * RBF(
        float(model.prior.lengthscales()[0, 0]), "fixed"
    )
    gp = GaussianProcessRegressor(kernel, alpha=(error**2 + learned).numpy(), optimizer=None)
    gp.fit(x.numpy(), y.numpy() - m)
    at = torch.linspace(0, 5, 30).double()[:, None]
    mean, std = gp.predict(at.numpy(), return_std=True)
    told = model.predict(boxes(at, at), 0)
    np.testing.assert_allclose(told.mean.numpy(), m + mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(told.variance.sqrt().numpy(), std, rtol=1e-4, atol=1e-6)
    assert float(model.elbo()) == pytest.approx(gp.log_marginal_likelihood_value_, rel=1e-8)


@torch.no_grad()
def test_the_bound_reaches_the_evidence_with_known_noise_and_a_denominator() -> None:
    data = _data(0)
    g = torch.Generator().manual_seed(0)
    model = MTGPA.build(
        data, ["gaussian_rate", "gaussian"], 1, g, inducing=data.supports, natural=True
    )
    trainer = MTGPATrainer(model, data, g, "natural", natural_rate=1.0)
    trainer.optimizers.clear()
    with torch.enable_grad():
        trainer.step()
    exact = ExactGP(model.likelihoods, model.prior, data)
    torch.testing.assert_close(model.elbo(data), exact.elbo(), rtol=1e-4, atol=1e-3)
    for d in (0, 1):
        ours, theirs = (m.predict(data.supports, d, data.exposure) for m in (model, exact))
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        model.log_predictive(data), exact.log_predictive(data), rtol=1e-3, atol=1e-3
    )
    wide = exact.mixture(data.supports, 1, data.exposure, data.known)
    bare = exact.mixture(data.supports, 1, data.exposure)
    assert bool((wide.std > bare.std).all())


@torch.no_grad()
def test_coefficients_have_their_moments_and_divergence() -> None:
    made = Coefficients(2, 3)
    made.mean.copy_(_rand(2, 3))
    made.raw_root.copy_(0.3 * _rand(2, 3, 3, seed=1) - torch.eye(3))
    z = _rand(5, 3, seed=2)
    mean, variance = made.moments(z)
    root = made.root()
    for j in range(2):
        q = MultivariateNormal(made.mean[j], scale_tril=root[j])
        prior = MultivariateNormal(torch.zeros(3).double(), torch.eye(3).double())
        kl = torch.distributions.kl_divergence(q, prior)
        torch.testing.assert_close(made.kl_divergence()[j], kl)
        torch.testing.assert_close(mean[j], COEFFICIENT * z @ made.mean[j])
        C = COEFFICIENT**2 * root[j] @ root[j].T
        torch.testing.assert_close(variance[j], (z @ C * z).sum(1))


@pytest.mark.parametrize("name", ["gaussian", "heteroscedastic", "poisson"])
def test_a_linear_mean_is_in_moments_and_in_the_gaussian_of_gpytorch(name: str) -> None:
    data = _data(2)
    data = data._replace(y=(data.y > 0).double())
    g = torch.Generator().manual_seed(0)
    model = MTGPA.build(data, [name, "gaussian"], 1, g, inducing=6, covariates=2)
    trainer = MTGPATrainer(model, data, g)
    for _ in range(10):
        trainer.step()
    model.eval()
    with torch.no_grad():
        x = data.supports[:7]
        f, own = model(x, task=0), model.moments(x, 0)
        columns = own.mean.shape
        torch.testing.assert_close(f.mean.reshape(7, -1).mT.reshape(columns), own.mean)
        variances = own.covariance.diagonal().mT
        torch.testing.assert_close(f.variance.reshape(7, -1).mT.reshape(columns), variances)


@pytest.mark.slow
def test_slopes_are_found_by_counts_over_boxes_and_by_averages() -> None:
    g = torch.Generator().manual_seed(0)
    lower = 8 * _rand(120, 1)
    z = 2 * _rand(120, 1, seed=1) - 1
    x = torch.cat([boxes(lower, lower + 0.4), z], 1)
    task = torch.arange(120) % 2
    rate = torch.exp(3 + 0.5 * torch.sin(lower[:, 0]) + 0.8 * z[:, 0])
    value = torch.sin(lower[:, 0]) - 0.6 * z[:, 0] + 0.1 * torch.randn(120, generator=g).double()
    data = Data(x, torch.where(task == 0, torch.poisson(rate, generator=g), value), task)
    model = MTGPA.build(
        data, ["poisson", "gaussian"], 1, g, inducing=15, natural=True, summed=True, covariates=1
    )
    trainer = MTGPATrainer(model, data, g, "natural", rate=0.1, natural_rate=0.2)
    for _ in range(150):
        bound = trainer.step()
    assert np.isfinite(bound)
    slope = COEFFICIENT * model.coefficients.mean.detach()[:, 0]
    error = model.coefficients.covariances().detach()[:, 0, 0].sqrt()
    for found, sd, true in zip(slope, error, (0.8, -0.6)):
        assert abs(float(found) - true) < 0.15
        assert 0 < float(sd) < 0.2
    ends = torch.cat([x[:1], x[:1]])
    ends[:, 2] = torch.tensor([-1.0, 1.0])
    mean = model.predict(ends, 0).mean
    assert float((mean[1] / mean[0]).log()) == pytest.approx(2 * float(slope[0]), abs=0.02)


def test_known_noise_below_zero_is_named() -> None:
    data = _data(0)
    data.known[3] = -1
    with pytest.raises(BadInput, match="Row 3 of task 1 has known noise whose variance is below"):
        check(data, 2)
