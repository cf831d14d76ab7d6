"""BGPLVM against sampling, against its own uncollapsed bound, and with missing outputs."""

import math

import pytest
import torch

from scant.errors import BadInput
from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.collapsed_bound import Targets, posterior
from scant.models.gplvm.latent_inference import RowBound, divergence, maximize
from scant.models.gplvm.training import GPLVMTrainer


def curves(n=30, d=6, seed=0, noise=0.1):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, generator=g, dtype=torch.float64)
    w, b = torch.randn(2, 1, d, generator=g, dtype=torch.float64)
    clean = 3 * torch.sin(1.5 * x * w + b) + 2
    return clean + noise * torch.randn(n, d, generator=g, dtype=torch.float64)


def built(Y, q=2, m=8, seed=0, **other):
    return BGPLVM.build(Y, q, m, torch.Generator().manual_seed(seed), **other)


def trained(Y, steps=40, **other):
    model = built(Y, **other)
    training = GPLVMTrainer(model, adam=steps // 2)
    for _ in range(steps):
        training.step()
    return model


def kl_of_inducing(model):
    """KL(q(U) || p(U)) at the optimum, from psi statistics and dense matrices."""
    s, t = model.statistics(), model.targets
    K = s.lower @ s.lower.mT
    total = torch.zeros(())
    weights = posterior(s, t).weights @ t.rotation
    for p in range(len(s.psi2)):
        S = K @ torch.linalg.inv(K + s.psi2[p] / s.noise) @ K
        alike = (torch.linalg.solve(K, S).trace() - len(K) + K.logdet() - S.logdet()) / 2
        total = total + alike * t.columns[p]
    return total + 0.5 * torch.einsum("ir,ij,jr->", weights, K, weights)


@pytest.mark.parametrize("missing", [False, True])
def test_collapsed_bound_is_the_uncollapsed_one_at_the_optimal_q(missing):
    Y = curves()
    if missing:
        Y[:10, 2], Y[5:12, 4], Y[3, 2] = math.nan, math.nan, math.nan
    model = trained(Y, 10)
    assert len(model.statistics().psi2) == (3 if missing else 1)
    y, seen = model.targets.standardize(Y)
    variance = (2 * model.log_std).exp()
    total = -kl_of_inducing(model)
    for n in range(len(Y)):
        bound = RowBound(model, model.posterior(), 0, seen[n])
        one = slice(n, n + 1)
        total = total + bound(bound.fixed(y[one]), model.mean[one], variance[one]).sum()
    torch.testing.assert_close(model.bound(), total)


def test_bound_is_below_importance_sampling_and_near_it():
    Y = curves(n=4, d=3)
    model = trained(Y, 60, q=1, m=4)
    g = torch.Generator().manual_seed(1)
    mean, std = (t.detach() for t in (model.mean, 1.3 * model.log_std.exp()))
    draws, log_weights = 40_000, []
    x = mean + std * torch.randn(draws, *mean.shape, generator=g, dtype=torch.float64)
    ratio = (-0.5 * x.square() + 0.5 * ((x - mean) / std).square() + std.log()).sum((1, 2))
    with torch.no_grad():
        distance = (x - x.mT).square() * model.relevance()
        K = model.kernel.psi0() * torch.exp(-0.5 * distance)
        K = (K + model.noise * torch.eye(len(Y))) * model.targets.scale.square()
    y = Y - Y.mean(0)
    likelihood = torch.distributions.MultivariateNormal(torch.zeros(4).double(), K)
    log_weights = sum(likelihood.log_prob(y[:, d]) for d in range(3)) + ratio
    evidence = float(log_weights.logsumexp(0)) - math.log(draws)
    error = float((log_weights - log_weights.max()).exp().std()) * math.exp(
        float(log_weights.max()) - evidence
    )
    assert error / draws**0.5 < 0.1  # the estimate is worth comparing with
    assert evidence - 4 < float(model.bound().detach()) < evidence + 0.1


def test_outputs_matter_through_their_products_alone():
    Y = curves(n=10, d=40)
    model = built(Y)
    assert model.targets.y.shape[1] <= 10
    turn = torch.linalg.qr(torch.randn(40, 40, generator=torch.Generator().manual_seed(2)).double())
    same = built((Y - Y.mean(0)) @ turn.Q)
    torch.testing.assert_close(
        same.targets.y @ same.targets.y.T, model.targets.y @ model.targets.y.T
    )
    same.load_state_dict(
        {k: v for k, v in model.state_dict().items() if not k.startswith("targets")}, strict=False
    )
    torch.testing.assert_close(same.bound(), model.bound())
    # The columns as they are, and not their principal components.
    plain = model.targets._replace(
        y=(Y - Y.mean(0)) / model.targets.scale, rotation=torch.eye(40).double()
    )
    before = model.bound().detach()
    for name, values in plain._asdict().items():
        setattr(model, f"targets_{name}", values)
    torch.testing.assert_close(model.bound().detach(), before)


def test_fewer_components_never_raise_the_bound():
    Y = curves(n=20, d=15)
    full = trained(Y, 10)
    parameters = {k: v for k, v in full.state_dict().items() if not k.startswith("targets")}
    bounds = []
    for rank in (2, 5, 15):
        model = built(Y, rank=rank)
        model.load_state_dict(parameters, strict=False)
        bounds.append(float(model.bound().detach()))
    assert bounds[0] < bounds[1] < bounds[2]
    assert bounds[2] == pytest.approx(float(full.bound().detach()))


@pytest.mark.parametrize("missing", [False, True])
def test_gradients_are_those_of_finite_differences(missing):
    Y = curves(n=5, d=3)
    if missing:
        Y[0, 1] = math.nan
    model = built(Y, m=3)
    names = [name for name, _ in model.named_parameters()]

    def bound(*values):
        return torch.func.functional_call(_Bound(model), dict(zip(names, values)))

    values = [p.detach().clone().requires_grad_() for p in model.parameters()]
    names = [f"model.{name}" for name in names]
    assert torch.autograd.gradcheck(bound, values, rtol=1e-4, atol=1e-5)


class _Bound(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self):
        return self.model.bound()


@pytest.mark.slow
def test_training_finds_one_dimension_and_places_new_rows():
    Y = curves(n=80, d=10)
    model = trained(Y[:60], 300, q=2, m=10)
    relevance = model.relevance().sort().values
    assert relevance[0] < 0.5 * relevance[1]
    placed = model.infer(Y[60:])
    mean, variance = model.decode(placed.mean, placed.std)
    error = (mean - Y[60:]).square()
    assert float(error.mean()) < 0.05 * float(Y.var(0).mean())
    assert 0.5 < float((error < 4 * variance).double().mean()) <= 1
    far = model.infer(Y[60:] + 5)
    assert bool((far.bound < placed.bound).all())


def test_missing_outputs_are_filled_in():
    Y = curves(n=60, d=10)
    hidden = torch.rand(Y.shape, generator=torch.Generator().manual_seed(3)) < 0.15
    model = trained(torch.where(hidden, math.nan, Y), 80, q=2, m=10)
    mean, _ = model.decode(*model.latent())
    error = (mean - Y)[hidden].square().mean()
    assert float(error) < 0.2 * float((Y - Y.mean(0))[hidden].square().mean())
    new = Y[:5].clone()
    new[:, :3] = math.nan
    assert torch.isfinite(model.infer(new).bound).all()


def test_decoded_moments_are_those_of_samples():
    model = trained(curves(), 30)
    g = torch.Generator().manual_seed(4)
    mean, std = (t[:2] for t in model.latent())
    std = std + 0.3
    x = mean + std * torch.randn(20_000, 2, 2, generator=g, dtype=torch.float64)
    y, v = model.decode(x.view(-1, 2))
    y, v = y.view(-1, 2, 6), v.view(-1, 2, 6)
    got = model.decode(mean, std)
    torch.testing.assert_close(got[0], y.mean(0), rtol=0.03, atol=0.05)
    torch.testing.assert_close(got[1], v.mean(0) + y.var(0), rtol=0.05, atol=0.02)


def test_placing_is_a_bound_that_agrees_with_the_row_of_training():
    Y = curves()
    model = trained(Y, 60)
    placed = model.infer(Y[:5])
    y, seen = model.targets.standardize(Y[:5])
    bound = RowBound(model, model.posterior(), 0, seen[0])
    at_training = bound(bound.fixed(y), model.mean[:5], (2 * model.log_std[:5]).exp())
    assert bool((placed.bound >= at_training - 1e-3).all())
    assert bool((divergence(placed.mean, placed.std.square()) >= 0).all())
    torch.testing.assert_close(bound(bound.fixed(y), placed.mean, placed.std**2), placed.bound)


@pytest.mark.slow
@torch.no_grad()
def test_rows_are_placed_where_their_bound_has_no_slope():
    """Also from far away, and each as if it were alone."""
    model = trained(curves(n=60, d=10), 100)
    y, seen = model.targets.standardize(curves(n=20, d=10, seed=1)[:, :10])
    bound = RowBound(model, model.posterior(), 0, seen[0])
    far = 2 * torch.ones(20, 2).double(), 0.01 * torch.ones(20, 2).double()
    mean, variance, value = maximize(bound, y, *far, steps=200)
    slopes = bound.slopes(bound.fixed(y), mean, variance)
    torch.testing.assert_close(slopes.value, value)
    assert float((slopes.mean.square() * variance).sum(1).max()) < 1e-2
    assert float((slopes.variance * variance).abs().max()) < 5e-2
    assert bool((value > bound(bound.fixed(y), *far)).all())
    alone = maximize(bound, y[3:4], far[0][:1], far[1][:1], steps=200)
    torch.testing.assert_close(alone[0], mean[3:4])


@pytest.mark.parametrize(
    ("Y", "said"),
    [
        (torch.full((4, 2), math.nan).double(), "no value"),
        (torch.ones(4, 2).double(), "same in all rows"),
        (torch.ones(1, 2).double(), "two rows"),
    ],
)
def test_bad_outputs_are_said(Y, said):
    with pytest.raises(BadInput, match=said):
        built(Y)


def test_bad_questions_are_said():
    model = built(curves())
    with pytest.raises(BadInput, match="6 outputs"):
        model.infer(torch.zeros(2, 5).double())
    with pytest.raises(BadInput, match="class 3"):
        model.infer(curves()[:2], label=3)
    with pytest.raises(BadInput, match="at least one"):
        built(curves(), q=0)


def test_targets_on_their_scale_have_unit_variance():
    t = Targets.from_outputs(curves())
    assert float(t.squares) == pytest.approx(30 * 6)
