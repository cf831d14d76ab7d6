"""MTGPA by GPyTorch's interface, and hyperpriors of maps."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from torch import Tensor

from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import boxes, weighted_points
from scant.models.hyperprior import log_hyperprior
from scant.models.mtgpa.hyperpriors import (
    ALIKE,
    LARGE,
    SHARE,
    AlikeDeviations,
    ShortLengthscale,
    favor_flat_maps,
)
from scant.models.mtgpa.initialization import inducing_points
from scant.models.mtgpa.likelihoods import LIKELIHOODS, Moments
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Coregionalization, Data
from scant.models.mtgpa.training import MTGPATrainer


@torch.enable_grad()
def _trained(name: str) -> tuple[MTGPA, Tensor]:
    g = torch.Generator().manual_seed(0)
    lower = torch.rand(30, 1, generator=g, dtype=torch.float64) * 4
    y = (torch.sin(lower[:, 0]) > 0).double()
    data = Data(boxes(lower, lower + 0.5), y, torch.arange(30) % 2)
    model = MTGPA.build(data, [name, "gaussian"], 1, g, inducing=8, ranks=(2, 1))
    trainer = MTGPATrainer(model, data, g)
    for _ in range(20):
        trainer.step()
    return model.eval(), data.supports[:7]


@pytest.mark.parametrize("name", LIKELIHOODS)
@torch.no_grad()
def test_a_task_is_a_gaussian_of_gpytorch_and_its_likelihood_takes_it(name: str) -> None:
    model, x = _trained(name)
    likelihood = model.likelihoods[0]
    assert isinstance(model, gpytorch.Module)
    assert isinstance(likelihood, gpytorch.likelihoods.Likelihood)
    f, own = model(x, task=0), model.moments(x, 0)
    assert isinstance(f, MultivariateNormal)
    assert isinstance(f, MultitaskMultivariateNormal) == (likelihood.functions == 2)
    columns = (likelihood.functions, 7)
    variances = own.covariance.diagonal().mT
    torch.testing.assert_close(f.mean.reshape(7, -1).mT.reshape(columns), own.mean)
    torch.testing.assert_close(f.variance.reshape(7, -1).mT.reshape(columns), variances)
    y, exposure = torch.ones(7, dtype=torch.float64), torch.full((7,), 2.0, dtype=torch.float64)
    for given in (f, Moments(*own)):
        torch.testing.assert_close(
            likelihood.expected_log_prob(y, given, exposure),
            likelihood.expected_log_prob(y, own, exposure),
        )
    torch.testing.assert_close(
        likelihood.log_marginal(y, f, exposure), likelihood.log_predictive(y, own, exposure)
    )
    told, predicted = likelihood(f), model.predict(x, 0)
    if name in ("gaussian", "bernoulli"):  # the others are GPyTorch's samples
        torch.testing.assert_close(told.mean, predicted.mean)
        torch.testing.assert_close(told.variance, predicted.variance + predicted.noise)
    else:
        assert told.mean.shape[-1] == 7


def test_the_gradient_of_the_bound_is_that_of_gpytorchs_strategy() -> None:
    model, x = _trained("gaussian")
    latent = model.latents[0]
    found = []
    for moments in (latent.moments, lambda x: (latent(x).mean, latent(x).variance)):
        model.zero_grad()
        model.train()
        mean, variance = moments(x)
        (mean.sin().sum() + variance.log().sum()).backward()
        found.append([p.grad.clone() for p in latent.variational_parameters()])
        found[-1].append(model.prior.kernels[0].raw_lengthscale.grad.clone())
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_what_is_positive_has_a_constraint_and_the_state_keeps_its_keys() -> None:
    model, _ = _trained("gaussian")
    held = {name for name, _, held in model.named_parameters_and_constraints() if held is not None}
    assert {"likelihoods.0.log_noise", "prior.kernels.0.raw_lengthscale"} <= held
    own = {key for key in model.state_dict() if key.startswith("likelihoods.")}
    assert own == {"likelihoods.0.log_noise", "likelihoods.1.log_noise"}


@pytest.mark.parametrize(
    ("prior", "at", "below"),
    [(ShortLengthscale(3.0), 3.0, 0.5), (AlikeDeviations(1.5, 0.3), 1.5, 0.99)],
)
def test_densities_add_up_and_have_their_quantile(
    prior: torch.nn.Module, at: float, below: float
) -> None:
    log = torch.linspace(-12, 14, 2_601, dtype=torch.float64)
    each = torch.stack([prior.log_prob(one) for one in log.exp().unsqueeze(1)]).ravel()
    density = each.exp() * (log[1] - log[0])
    assert float(density.sum()) == pytest.approx(1, abs=1e-3)
    assert float(density[log.exp() < at].sum()) == pytest.approx(below, abs=5e-3)


def test_both_act_on_a_prior_and_pull_towards_a_flat_map() -> None:
    prior = Coregionalization(3, 2, (2,), n_isotropic=2)
    generator = torch.Generator().manual_seed(0)
    ones = torch.ones(2, dtype=torch.float64)
    wide = torch.tensor([4.0, 4.0, 7.0], dtype=torch.float64)
    prior.start(0 * ones, ones, wide, generator)
    assert log_hyperprior(prior) == 0
    favor_flat_maps(prior, 100.0, [0, 1])
    value = log_hyperprior(prior)
    spread = prior.matrices().sum(0).diagonal().sqrt()
    expected = ShortLengthscale(SHARE * 100).log_prob(torch.tensor(4.0))
    expected = expected + AlikeDeviations(LARGE, ALIKE).log_prob(spread)
    assert float(value.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    value.backward()
    assert float(prior.kernels[0].raw_lengthscale.grad[0, 0]) > 0  # longer than 4 of 100
    assert float(prior.kernels[0].raw_lengthscale.grad[0, 1]) == 0  # time has none
    assert float((prior.mixing * prior.mixing.grad).sum()) < 0  # smaller


def test_tasks_vary_alike() -> None:
    prior = AlikeDeviations(LARGE, ALIKE)
    same, other = (torch.tensor(pair) for pair in ([0.4, 0.4], [0.8, 0.2]))
    gap = np.log(2) / ALIKE  # of each, in deviations
    assert float(prior.log_prob(same) - prior.log_prob(other)) == pytest.approx(gap**2, rel=1e-5)


def test_dimensions_of_a_map_share_a_lengthscale() -> None:
    kernel = IntervalKernel(3, n_isotropic=2).double()
    kernel.lengthscale = torch.tensor([2.0, 8.0, 5.0])
    np.testing.assert_allclose(kernel.lengthscale.detach(), [[4.0, 4.0, 5.0]])
    assert kernel.raw_lengthscale.numel() == 2
    apart = IntervalKernel(3).double()
    apart.lengthscale = torch.tensor([4.0, 4.0, 5.0])
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(kernel.forward(x, x), apart.forward(x, x))
    turned = x[:, [1, 0, 2]]
    torch.testing.assert_close(kernel.forward(x, x), kernel.forward(turned, turned))
    kernel.forward(x, x)[0, 1].backward()
    assert kernel.raw_lengthscale.grad is not None


def test_inducing_points_inside_supports_are_their_own_points() -> None:
    generator = torch.Generator().manual_seed(2)
    points = torch.rand(6, 4, 2, generator=generator, dtype=torch.float64)
    points[:, 3] = points[:, 0]  # as padding lies
    supports = weighted_points(points)
    all_of_them = inducing_points(supports, 2, 50, "inside", generator)
    assert all_of_them.shape == (18, 2)
    apart = torch.cdist(points.flatten(0, 1), all_of_them).amin(1)
    assert float(apart.max()) == 0
    assert inducing_points(supports, 2, 5, "inside", generator).shape == (5, 2)
