"""GPyTorch's interface of the Laplace classifier: `model(x)`, `likelihood(model(x))`, kernels."""

from __future__ import annotations

import gpytorch
import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import BernoulliLikelihood
from torch import Tensor

from scant.errors import BadInput
from scant.models.laplace.acquisition import posterior_covariance
from scant.models.laplace.approximation import Curvature, mode
from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.models.laplace.links import LIKELIHOODS, LINKS

KINDS = pytest.mark.parametrize("link", list(LINKS))


def rows(n: int = 40, seed: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g, dtype=torch.float64)
    return x, (x[:, 0] + 0.5 * x[:, 1].square() > 0.3).long()


@KINDS
def test_the_latent_function_and_the_label_are_distributions_of_gpytorch(link: str) -> None:
    model, new = LaplaceGPC.build(*rows(), link), rows(seed=1)[0]
    model.fit(3)
    assert isinstance(model, gpytorch.Module)
    assert isinstance(model.likelihood, BernoulliLikelihood)
    f = model(new)
    assert isinstance(f, MultivariateNormal)
    mean, variance = model.latent(new)
    torch.testing.assert_close(f.mean, mean)
    torch.testing.assert_close(f.variance, variance)
    torch.testing.assert_close(f.covariance_matrix, posterior_covariance(model, new, new))
    torch.testing.assert_close(model.likelihood(f).mean, model.probability(new))


def test_parameters_have_constraints_and_the_state_its_keys() -> None:
    model = LaplaceGPC.build(*rows(), ard=True)
    learned = {name for name, _ in model.named_parameters()}
    held = {name for name, _, constraint in model.named_parameters_and_constraints() if constraint}
    assert learned == held
    bounds = [f"raw_{p}_constraint.{e}_bound" for p in ("lengthscale",) for e in ("lower", "upper")]
    inner = ["raw_lengthscale", *bounds]
    outer = [name.replace("lengthscale", "outputscale") for name in inner]
    expected = {*outer, *(f"base_kernel.{name}" for name in inner)}
    assert set(model.kernel.state_dict()) == expected
    assert set(model.state_dict()) == {"x", "y", "a", *(f"kernel.{k}" for k in expected)}


@KINDS
def test_expectations_are_those_of_samples(link: str) -> None:
    mean, deviation = (
        torch.tensor([-1.0, 0.3, 2.0]).double(),
        torch.tensor([0.5, 1.5, 3.0]).double(),
    )
    q = MultivariateNormal(mean, torch.diag(deviation.square()))
    y, likelihood = torch.tensor([0.0, 1.0, 1.0]).double(), LIKELIHOODS[link]()
    draws = torch.randn(400_000, 3, generator=torch.Generator().manual_seed(0)).double()
    seen = likelihood.forward(mean + deviation * draws).log_prob(y)
    error = 5 * seen.std(0) / len(draws) ** 0.5
    assert bool(((likelihood.expected_log_prob(y, q) - seen.mean(0)).abs() < error).all())
    density = seen.exp()
    error = 5 * density.std(0) / len(draws) ** 0.5
    assert bool(((likelihood.log_marginal(y, q).exp() - density.mean(0)).abs() < error).all())


def test_a_kernel_of_ones_own_is_learned() -> None:
    x, y = rows()
    model = LaplaceGPC.build(x, y, kernel=ScaleKernel(MaternKernel(2.5)))
    before = model.log_evidence().item()
    assert model.fit(10).item() > before + 0.1
    grown = model.observe(*rows(5, seed=2))
    torch.testing.assert_close(
        grown.kernel.base_kernel.lengthscale, model.kernel.base_kernel.lengthscale
    )
    with pytest.raises(BadInput, match="ScaleKernel"):
        LaplaceGPC.build(x, y, prior=Prior(), kernel=MaternKernel(2.5))


@KINDS
def test_the_mode_is_the_same_from_afar_from_near_and_with_an_old_factor(link: str) -> None:
    """What a factor of another kernel predicts, Newton's method confirms."""
    x, y = rows(60)
    model = LaplaceGPC.build(x, y, link)
    K = model.covariance(x).detach()
    zero = torch.zeros_like(model.y)
    cold = mode(K, model.y, model.link, zero)
    for scale in (1.1, 3.0, 50.0):
        near = mode(scale * K, model.y, model.link, zero)
        warm = mode(K, model.y, model.link, near.a, near)
        for ours, theirs in zip(warm, cold, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_an_old_factor_saves_factorizations(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(60)
    model, made = LaplaceGPC.build(x, y), []
    K = model.covariance(x).detach()
    near = mode(1.02 * K, model.y, model.link, torch.zeros_like(model.y))
    factor = Curvature.at
    monkeypatch.setattr(Curvature, "at", lambda *a: (made.append(1), factor(*a))[1])
    mode(K, model.y, model.link, near.a, near)
    assert len(made) == 1
    mode(K, model.y, model.link, near.a)
    assert len(made) > 2
