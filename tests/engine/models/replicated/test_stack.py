"""Stacks of models of replicas, and the linear mixture that knows replicas."""

from __future__ import annotations

import pytest
import torch
from gpytorch.distributions import MultivariateNormal

from scant.models.replicated.baselines import HLMC, Independent, Pooled
from scant.models.replicated.data import NEW
from scant.models.replicated.stack import Stack
from tests.engine.models.replicated.test_hgp import asked, measured


@pytest.mark.parametrize("grid", [False, True])
def test_a_mixture_with_samplings_is_the_sum_of_its_products(grid: bool) -> None:
    data = measured(grid=grid)
    model = HLMC.build(data, torch.Generator().manual_seed(2), functions=2, noise="each output")
    sampling, x = data.sampling(data.output, data.replica), data.x.unsqueeze(1)
    same = sampling.unsqueeze(0) == sampling.unsqueeze(1)
    K = model.noise[data.output].diag()
    for part in model.kernel.kernels:
        mixture, curve = part.kernels
        B = mixture.covar_factor @ mixture.covar_factor.T + mixture.var.diag()
        shared, own = (level(x).to_dense() for level in curve.levels)
        K = K + B[data.output][:, data.output] * (shared + own * same)
    value = MultivariateNormal(torch.zeros(len(K)).double(), K).log_prob(data.y).item()
    assert model.elbo().item() == pytest.approx(value, abs=1e-6)
    levels = model.levels(data.output)
    assert torch.allclose(levels.sum(1), K.diagonal())
    output, replica, x = asked()
    known, new = (model.predict(output, r, x) for r in (replica, torch.full_like(replica, NEW)))
    assert (known.variance <= new.variance + 1e-9).all()


def test_a_stack_tells_the_moments_of_the_mixture() -> None:
    data, generator = measured(), torch.Generator().manual_seed(0)
    members = [kind.build(data, generator) for kind in (Independent, Pooled)]
    stack = Stack(members, [0.25, 0.75])
    output, replica, x = asked()
    told, parts = (
        stack.predict(output, replica, x),
        [m.predict(output, replica, x) for m in members],
    )
    chosen = torch.rand(200_000, len(x), generator=generator, dtype=torch.float64) < 0.25
    drawn = [
        p.mean
        + (p.variance + p.noise).sqrt()
        * torch.randn(chosen.shape, generator=generator, dtype=torch.float64)
        for p in parts
    ]
    y = torch.where(chosen, *drawn)
    assert torch.allclose(told.mean, y.mean(0), atol=0.02)
    assert torch.allclose(told.variance + told.noise, y.var(0), rtol=0.02)
    alone = Stack(members, [1.0, 0.0])
    for own, of_member in zip(alone.predict(output, replica, x), parts[0]):
        assert torch.allclose(own, of_member)
    assert torch.allclose(alone.levels(output), members[0].levels(output))
    assert alone.latent() is None
