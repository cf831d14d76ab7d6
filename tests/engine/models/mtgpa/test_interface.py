"""GPyTorch's interface of MTGPA: `model(x, task)`, `likelihood(model(x, task))`, expectations."""

from __future__ import annotations

import gpytorch
import pytest
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from torch import Tensor

from scant.kernels.box_average.support import boxes
from scant.models.mtgpa.likelihoods import LIKELIHOODS, Moments
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data
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
