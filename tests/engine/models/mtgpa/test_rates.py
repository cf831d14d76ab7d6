"""Rates that are sums over supports: moments, bound and predictions against samples."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import Poisson

from scant.kernels.box_average.averaged import grid
from scant.kernels.box_average.kernel import SHAPES, IntervalKernel
from scant.kernels.box_average.support import Pieces, boxes, join, pieces, weighted_points
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data
from scant.models.mtgpa.rates import log_rate, points, points_each
from scant.models.mtgpa.training import MTGPATrainer

DRAWS = 100_000


def _rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _data(supports: Tensor, tasks: int = 2) -> Data:
    n = len(supports)
    y = torch.poisson(3 + 4 * _rand(n, seed=3), generator=torch.Generator().manual_seed(1))
    return Data(supports, y, torch.arange(n) % tasks, 0.5 + _rand(n, seed=4))


@torch.enable_grad()
def _model(data: Data, steps: int = 15, **other: object) -> MTGPA:
    g = torch.Generator().manual_seed(0)
    own = {"inducing": 7, "ranks": (2, 1), "lengthscale": 0.8, "summed": True} | other
    model = MTGPA.build(data, ["poisson"] * 2, 2, g, **own)  # type: ignore[arg-type]
    trainer = MTGPATrainer(model, data, g)
    for _ in range(steps):
        trainer.step()
    return model.eval()


def _polygons() -> Tensor:
    weight = torch.softmax(_rand(12, 5, seed=2), 1)
    weight[3, 2:] = 0  # padding
    corner = 3 * _rand(12, 1, 2)
    return weighted_points(corner + _rand(12, 5, 2, seed=1), weight / weight.sum(1, keepdim=True))


def _sampled(model: MTGPA, at: Tensor, task: int) -> Tensor:
    """Draws of f at all points, from GPyTorch's joint posterior."""
    f = model(at, task)
    root = torch.linalg.cholesky(f.covariance_matrix + 1e-9 * torch.eye(len(at)))
    g = torch.Generator().manual_seed(5)
    return f.mean + torch.randn(DRAWS, len(at), generator=g, dtype=torch.float64) @ root.T


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_the_log_normal_has_the_moments_of_the_sum(scale: float) -> None:
    at, weight = _rand(25, 2), torch.softmax(_rand(25, seed=1), 0)
    mean = at[:, 0]
    covariance = scale**2 * torch.exp(-0.5 * torch.cdist(at, at).square() / 0.5**2)
    root = torch.linalg.cholesky(covariance + 1e-9 * torch.eye(25))
    g = torch.Generator().manual_seed(0)
    f = mean + torch.randn(400_000, 25, generator=g, dtype=torch.float64) @ root.T
    rate = (f.exp() * weight).sum(1)
    told = log_rate(weight[None], mean[None], covariance[None])
    m, v = told.mean[0, 0], told.covariance[0, 0, 0]
    torch.testing.assert_close((m + v / 2).exp(), rate.mean(), rtol=0.01, atol=0)
    square = (2 * m + 2 * v).exp()
    torch.testing.assert_close(square, rate.square().mean(), rtol=0.03, atol=0)
    assert abs(float(rate.log().mean() - m)) < 0.02
    jensen = (weight.log() + mean).logsumexp(0)
    assert float(jensen - rate.log().mean()) < -4 * abs(float(rate.log().mean() - m))


@pytest.mark.parametrize("natural", [True, False])
@torch.enable_grad()
def test_covariances_within_supports_and_gradients_are_those_of_gpytorch(
    natural: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _data(_polygons())
    model = _model(data, steps=3, natural=natural) if not natural else _natural(data)
    model.train()
    found = []
    for turn in range(2):
        if turn:
            monkeypatch.setattr("scant.models.mtgpa.variational.Latent.blocks", _lazily)
        model.zero_grad()
        bound = model.elbo(data)
        bound.backward()
        grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        found.append([bound.detach(), *grads])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def _natural(data: Data) -> MTGPA:
    g = torch.Generator().manual_seed(0)
    model = MTGPA.build(
        data, ["poisson"] * 2, 2, g, inducing=7, ranks=(2, 1), natural=True, summed=True
    )
    trainer = MTGPATrainer(model, data, g, "natural")
    for _ in range(3):
        trainer.step()
    return model


def _lazily(latent: object, at: Tensor) -> tuple[Tensor, Tensor]:
    each = [latent(x) for x in at]  # type: ignore[operator]
    means = torch.stack([e.mean for e in each], -2)
    blocks = torch.stack([e.covariance_matrix for e in each], -3)
    return (means, blocks) if means.dim() > 2 else (means[None], blocks[None])


@torch.no_grad()
def test_bound_and_predictions_of_polygons_are_those_of_samples() -> None:
    data = _data(_polygons())
    model = _model(data)
    rows = (data.task == 1).nonzero().squeeze(1)
    own = data.at(rows)
    at = points(own.supports, 2)
    f = _sampled(model, at.lower.flatten(0, 1), 1).unflatten(1, (len(rows), -1))
    assert at.weight is not None
    rate = own.exposures() * (at.weight * f.exp()).sum(2)
    expected = Poisson(rate).log_prob(own.y)
    got = model.expected_log_likelihood(data)[rows]
    error, over = 5 * expected.std(0) / DRAWS**0.5, got - expected.mean(0)
    assert bool((over < error).all())  # no bound in all rigor, but from below
    assert bool((over > -error - 0.02 * own.y).all())  # E log lambda within .02
    density = model.log_predictive(data)[rows].exp()
    torch.testing.assert_close(density, expected.exp().mean(0), rtol=0.06, atol=1e-3)
    told = model.predict(own.supports, 1, own.exposures())
    torch.testing.assert_close(told.mean, rate.mean(0), rtol=0.02, atol=0)
    torch.testing.assert_close(told.noise, rate.mean(0), rtol=0.02, atol=0)
    torch.testing.assert_close(told.variance, rate.var(0), rtol=0.1, atol=1e-3)


@torch.no_grad()
def test_the_rate_of_a_box_is_the_integral_over_it_and_that_of_parts_adds_up() -> None:
    data = _data(_polygons())
    model = _model(data)
    low, high = torch.tensor([[0.5, 0.5]]).double(), torch.tensor([[2.1, 1.7]]).double()
    whole = model.predict(boxes(low, high), 0).mean
    steps = 24
    side = [torch.linspace(float(a), float(b), steps + 1) for a, b in zip(low[0], high[0])]
    middle = torch.cartesian_prod(*[((s[1:] + s[:-1]) / 2).double() for s in side])
    fine = model.predict(middle, 0).mean
    torch.testing.assert_close(whole[0], fine.mean(), rtol=2e-3, atol=0)
    x = float(low[0, 0] + high[0, 0]) / 2
    left, right = torch.cat([low, high]).clone(), torch.cat([low, high]).clone()
    left[1, 0] = right[0, 0] = x
    parts = torch.stack([left.flatten(), right.flatten()])
    torch.testing.assert_close(whole[0], model.predict(parts, 0).mean.mean(), rtol=2e-3, atol=0)


@torch.no_grad()
def test_at_points_nothing_is_summed_and_averages_stay_those_of_gaussian_tasks() -> None:
    data = _data(3 * _rand(20, 2))
    one, other = (_model(data, summed=summed) for summed in (True, False))
    torch.testing.assert_close(one.predict(data.supports, 0), other.predict(data.supports, 0))
    mixed = _data(_polygons())
    g = torch.Generator().manual_seed(0)
    model = MTGPA.build(mixed, ["gaussian", "poisson"], 2, g, inducing=7, summed=True)
    plain = MTGPA(["gaussian", "poisson"], model.latents[0].inducing_points, 2)
    plain.load_state_dict(model.state_dict())
    first, second = (m.expected_log_likelihood(mixed) for m in (model, plain))
    rows = mixed.task == 0
    torch.testing.assert_close(first[rows], second[rows])
    assert bool((first[~rows] - second[~rows]).abs().min() > 1e-4)


def test_polygons_that_last_some_time_are_wide_in_time_alone() -> None:
    corner = _rand(6, 4, 2)
    time = _rand(6, 1, 1, seed=1).expand(6, 4, 1)
    weight = torch.full((6, 4, 1), 0.25, dtype=torch.float64)
    rows = torch.cat([corner, time, corner, time + 0.5, weight], 2).flatten(1)
    at = points(rows, 3)
    assert at.lower.shape == (6, 32, 3)
    assert points_each(rows, 3) == 32
    torch.testing.assert_close(at.weight.sum(1), torch.ones(6).double())
    mean = (at.weight * at.lower[..., 2].square()).sum(1)
    a, b = time[:, 0, 0], time[:, 0, 0] + 0.5
    torch.testing.assert_close(mean, (b**3 - a**3) / (3 * (b - a)))


def test_a_grid_spares_dimensions_without_extent() -> None:
    parts = pieces(boxes(_rand(5, 2), torch.cat([_rand(5, 1) + 1, _rand(5, 2)[:, 1:]], 1)), 2)
    assert bool((parts.lower[..., 1] == parts.upper[..., 1]).all())
    made = grid(parts, 6)
    assert made.lower.shape == (5, 6, 2)
    assert isinstance(made, Pieces)


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_covariances_within_a_set_are_those_of_its_points(shape: str) -> None:
    at = join([3 * _rand(8, 2)], 2).view(2, 4, 2)
    kernel = IntervalKernel(2, shape).double()
    kernel.lengthscale = torch.tensor([0.7, 1.3])
    torch.testing.assert_close(kernel.within(at), torch.stack([kernel.forward(x, x) for x in at]))
    each = super(IntervalKernel, kernel).within(at)
    torch.testing.assert_close(kernel.within(at), each)
