"""Models beside HMOGP-LV, targets of outputs brought to one scale, and stacks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpytorch.distributions import MultivariateNormal

from scant.inference.exact import LogDensity
from scant.models.replicated.baselines import HLMC, LMC, Independent, Pooled, principal
from scant.models.replicated.data import NEW, Data, Scale
from scant.models.replicated.exact import merge
from scant.models.replicated.moderation import moderated, shrunk
from scant.models.replicated.stack import Stack
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


def data(mean: np.ndarray, width: np.ndarray, rows: int = 8) -> Data:
    """That many rows of each output."""
    rng = np.random.default_rng(0)
    output = np.repeat(np.arange(len(mean)), rows)
    y = mean[output] + width[output] * rng.normal(size=len(output))
    zeros = np.zeros_like(output)
    return Data.of(*map(torch.as_tensor, (output, zeros, zeros.astype(float), y)))


def test_outputs_that_are_alike_share_centre_and_width() -> None:
    alike = data(np.full(20, 5.0), np.ones(20))
    own = Scale.of(alike)
    made = moderated(own, alike)
    for name, truth in (("y_centre", 5.0), ("y_width", 1.0)):
        before, after = (getattr(scale, name).numpy() - truth for scale in (own, made))
        assert (after**2).mean() < 0.2 * (before**2).mean()
    assert made.x_centre == own.x_centre


def test_outputs_of_different_units_keep_theirs() -> None:
    units = 10.0 ** np.arange(8)
    several = data(3 * units, units, 24)
    own = Scale.of(several)
    made = moderated(own, several)
    assert made.y_width.numpy() == pytest.approx(own.y_width.numpy(), rel=0.06)


def test_few_outputs_or_constant_ones_are_left_as_they_are() -> None:
    two = data(np.array([1.0, 2.0]), np.ones(2))
    own = Scale.of(two)
    assert moderated(own, two) is own
    flat = data(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    made = moderated(Scale.of(flat), flat)
    assert made.y_centre[0] == 1.0
    assert made.y_width[0] == 1.0


def test_values_are_shrunk_as_far_as_they_are_uncertain() -> None:
    rng = np.random.default_rng(3)
    true, error = rng.normal(size=400), np.full(400, 1.0)
    found = true + rng.normal(size=400)
    made = shrunk(found, error)
    assert ((made - true) ** 2).mean() == pytest.approx(0.5, abs=0.08)  # of 1 and 1
    assert shrunk(true, 0 * error) == pytest.approx(true)


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


def test_a_stack_tells_the_moments_of_its_members_curves() -> None:
    data, generator = measured(), torch.Generator().manual_seed(0)
    members = [kind.build(data, generator) for kind in (Independent, Pooled)]
    output, _, x = asked()
    mean, variance = Stack(members, [0.25, 0.75]).shared(output, x)
    parts = [m.shared(output, x) for m in members]
    chosen = torch.rand(200_000, len(x), generator=generator, dtype=torch.float64) < 0.25
    normal = torch.randn(2, *chosen.shape, generator=generator, dtype=torch.float64)
    f = torch.where(chosen, *(m + v.sqrt() * z for (m, v), z in zip(parts, normal)))
    assert torch.allclose(mean, f.mean(0), atol=0.02)
    assert torch.allclose(variance, f.var(0), rtol=0.02)
    alone = Stack(members, [1.0, 0.0])
    for own, of_member in zip(alone.shared(output, x), parts[0]):
        assert torch.allclose(own, of_member)
    assert torch.allclose(alone.levels(output), members[0].levels(output))
    assert alone.latent() is None
