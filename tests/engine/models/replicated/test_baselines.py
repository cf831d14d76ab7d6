"""Pooled, independent and linearly mixed processes on outputs with replicas."""

from __future__ import annotations

import pytest
import torch
from gpytorch.distributions import MultivariateNormal

from scant.inference.exact import LogDensity
from scant.models.replicated.baselines import LMC, Independent, Pooled, principal
from scant.models.replicated.data import NEW, Data
from scant.models.replicated.exact import merge
from scant.optim.lbfgs import LBFGS
from tests.engine.models.replicated.test_hgp import asked, measured


@pytest.mark.parametrize("grid", [False, True])
def test_independent_is_a_process_of_each_output_that_knows_no_replicas(grid: bool) -> None:
    data = measured(grid=grid)  # on a grid, rows at one x are averaged
    model = Independent.build(data, torch.Generator().manual_seed(2))
    total = 0.0
    for d in (0, 1):
        mine = data.output == d
        K = model.kernel.levels[0][d](data.x[mine].unsqueeze(1)).to_dense()
        K = K + model.noise[d] * torch.eye(len(K))
        total += MultivariateNormal(torch.zeros(len(K)).double(), K).log_prob(data.y[mine]).item()
    assert model.elbo().item() == pytest.approx(total, abs=1e-6)
    output, replica, x = asked()
    found = model.predict(output, replica, x)
    assert torch.equal(found.mean, model.predict(output, torch.full_like(output, NEW), x).mean)
    fewer = model.on(data.without(1, 0).without(1, 1)).predict(output, replica, x)
    assert torch.allclose(found.mean[output == 0], fewer.mean[output == 0])
    assert (fewer.mean[output == 1] == 0).all()
    shared = model.shared(output, x)
    assert torch.equal(shared[0], found.mean)
    assert (model.levels(output)[:, 1] == 0).all()


@pytest.mark.parametrize("noise", ["shared", "each output"])
def test_pooled_is_one_process_of_all_rows(noise: str) -> None:
    data = measured(grid=True)
    model = Pooled.build(data, torch.Generator().manual_seed(2), noise=noise)
    with torch.no_grad():
        model.log_noise += 0.5 * torch.arange(len(model.log_noise))
    K = model.kernel.levels[0](data.x.unsqueeze(1)).to_dense() + model.noise[data.output].diag()
    value = MultivariateNormal(torch.zeros(len(K)).double(), K).log_prob(data.y).item()
    assert model.elbo().item() == pytest.approx(value, abs=1e-6)
    output, replica, x = asked()
    found = model.predict(output, replica, x)
    assert torch.allclose(
        found.mean, model.predict(1 - output, torch.full_like(output, NEW), x).mean
    )
    correlation = model.outputs_covariance() / model.levels(torch.tensor([0]))[0, 0]
    assert torch.allclose(correlation, torch.ones(2, 2).double())


@pytest.mark.parametrize("grid", [False, True])
def test_a_linear_mixture_is_the_sum_of_its_kronecker_products(grid: bool) -> None:
    data = measured(grid=grid)
    assert len(merge(data, outputs=True, replicas=False).y) == (11 if grid else 22)
    model = LMC.build(data, torch.Generator().manual_seed(2))
    K, x, o = 0.0, data.x.unsqueeze(1), data.output
    for part in model.kernel.kernels:
        mixing, base = part.kernels
        B = mixing.covar_factor @ mixing.covar_factor.T + mixing.var.diag()
        base.active_dims = None
        K = K + B[o][:, o] * base(x).to_dense()
        base.active_dims = torch.tensor([0])
    K = K + model.noise[0] * torch.eye(len(o))
    value = MultivariateNormal(torch.zeros(len(o)).double(), K).log_prob(data.y)
    assert model.elbo().item() == pytest.approx(value.item(), abs=1e-6)
    covariance = model.outputs_covariance()
    assert torch.allclose(covariance.diagonal(), model.levels(torch.arange(2))[:, 0])
    assert torch.linalg.eigvalsh(covariance).min() > 0


def test_mixtures_start_from_how_outputs_vary_together() -> None:
    x = torch.linspace(-1.5, 1.5, 60).double().repeat(3)
    output = torch.arange(3).repeat_interleave(60)
    y = torch.tensor([1.0, -1.0, 0.0]).double()[output] * torch.sin(2 * x)
    data = Data.of(output, torch.zeros_like(output), x, y)
    loadings = principal(data, 2)
    similar = loadings @ loadings.T
    assert similar[0, 1] < -0.3
    assert abs(similar[0, 2].item()) < 0.02
    model = LMC.build(data)
    optimizer = LBFGS(model.parameters(), lambda: -model.elbo())
    before = model.elbo().item()
    for _ in range(30):
        optimizer.step()
    assert model.elbo().item() > before + 50
    covariance = model.outputs_covariance()
    assert covariance[0, 1] < -0.9 * (covariance[0, 0] * covariance[1, 1]).sqrt()


def test_the_log_density_has_the_gradient_that_it_says() -> None:
    made = torch.Generator().manual_seed(0)
    root = torch.randn(2, 4, 4, generator=made, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 4, generator=made, dtype=torch.float64, requires_grad=True)

    def density(root: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return LogDensity.apply(root @ root.mT + torch.eye(4).double(), y)

    assert torch.autograd.gradcheck(density, (root, y))
