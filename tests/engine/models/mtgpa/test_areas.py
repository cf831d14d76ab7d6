"""Laplace's approximation of counts of areas, against another implementation and samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from scant.errors import BadInput
from scant.inference.quadrature import log_expected
from scant.kernels.box_average.support import weighted_points
from scant.models.mtgpa.area_nodes import AreaNodes
from scant.models.mtgpa.areas import FLAT, AreaGP, fits
from scant.models.mtgpa.exact import ExactTrainer
from scant.models.mtgpa.hyperpriors import favor_flat_maps
from scant.models.mtgpa.prior import Data
from scant.predictive import CountsPredictive
from scripts.areal_models import FLAT as RIVALS_FLAT
from scripts.areal_models import Problem, _laplace


def _rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _data(tasks: int = 2, large: float = 30.0) -> Data:
    """Six groups of three units each, whose rates differ by factors."""
    n = 6 * tasks
    corner = 4 * _rand(n // tasks, 1, 2).repeat(tasks, 1, 1)
    at = corner + _rand(n // tasks, 3, 2, seed=1).repeat(tasks, 1, 1)
    weight = torch.softmax(_rand(n, 3, seed=2), 1)
    g = torch.Generator().manual_seed(3)
    y = torch.poisson(large * torch.exp(2 * _rand(n, seed=4) - 1), generator=g)
    return Data(weighted_points(at, weight), y, torch.arange(n) // (n // tasks), large + 0 * y)


def _model(kind: str = "poisson", tasks: int = 2, **other: object) -> AreaGP:
    g = torch.Generator().manual_seed(0)
    return AreaGP.build(_data(tasks), [kind] * tasks, 2, g, ranks=(tasks,), **other)  # type: ignore[arg-type]


@torch.no_grad()
def test_evidence_and_posterior_are_those_of_the_rivals_dense_algebra() -> None:
    model = _model(tasks=1)
    K = model._covariance().numpy()
    problem = Problem(model.y.numpy(), model.weight.numpy(), np.ones((len(K), 1)))
    offset = float(model.prior.offset[0])
    evidence, mean, variance, _ = _laplace(problem, offset, K, np.zeros(len(K)))
    assert float(model.elbo()) == pytest.approx(evidence, abs=1e-5)
    told = model.moments(model.places, 0)
    np.testing.assert_allclose(told.mean[0].numpy(), mean, atol=1e-4)
    np.testing.assert_allclose(told.covariance[0, 0].numpy(), variance, rtol=1e-4)
    assert FLAT < RIVALS_FLAT


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial"])
def test_gradients_count_that_the_mode_moves(kind: str) -> None:
    model = _model(kind)
    model.elbo().backward()
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        assert p.grad is not None, name
        with torch.no_grad():
            place, step = p.view(-1), 1e-4
            place[0] += step
            above = float(model.elbo())
            place[0] -= 2 * step
            below = float(model.elbo())
            place[0] += step
        slope = (above - below) / (2 * step)
        # A step of Gauss and Newton tells how the mode moves but for terms of second order.
        assert float(p.grad.view(-1)[0]) == pytest.approx(slope, rel=0.1, abs=0.05), name


@pytest.mark.slow
@torch.no_grad()
def test_parts_add_up_to_what_is_known_and_are_as_uncertain_as_samples_say() -> None:
    model = _model(tasks=1)
    told = model.predict(model.places, 0)
    sums = model.weight @ told.mean
    assert float(sums.sum()) == pytest.approx(float(model.y.sum()), rel=0.01)
    # A random walk through the posterior of the field, by elliptical slices.
    K = model._covariance()
    root = torch.linalg.cholesky(K + 1e-9 * torch.eye(len(K)))
    g = torch.Generator().manual_seed(1)

    def likelihood(f: Tensor) -> float:
        rate = model.weight @ (model.prior.offset[0] + f).exp()
        return float((model.y * rate.log() - rate).sum())

    f = K @ model._mode(K, model.weight)
    draws = []
    for turn in range(6_000):
        other = root @ torch.randn(len(K), generator=g, dtype=torch.float64)
        least = likelihood(f) + float(torch.rand((), generator=g).log())
        angle = float(torch.rand((), generator=g)) * 2 * np.pi
        low, high = angle - 2 * np.pi, angle
        while likelihood(new := f * np.cos(angle) + other * np.sin(angle)) < least:
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + float(torch.rand((), generator=g)) * (high - low)
        f = new
        if turn > 1000:
            draws.append(f)
    spread = torch.stack(draws).std(0)
    own = model.moments(model.places, 0).covariance[0, 0].sqrt()
    assert float((own / spread).log().abs().mean()) < 0.15


@torch.no_grad()
def test_a_known_sum_is_known_however_little_is_of_its_parts() -> None:
    model = _model(tasks=1, lengthscale=0.3)
    whole = model.moments(model.supports, 0).covariance[0, 0].sqrt()
    parts = model.moments(model.places, 0).covariance[0, 0].sqrt()
    assert float((whole * model.y.sqrt()).max()) < 1.1
    assert float(parts.mean()) > 1.5 * float(whole.mean())


def test_a_model_over_nodes_predicts_the_mixture_and_is_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scant.models.mtgpa.area_nodes.LENGTHS", (0.5, 1.0))
    monkeypatch.setattr("scant.models.mtgpa.area_nodes.DEVIATIONS", (0.7, 1.0))
    model = _model()
    favor_flat_maps(model.prior, 4.0, [0, 1])
    trainer = ExactTrainer(model)
    first = trainer.step()
    for _ in range(4):
        last = trainer.step()
    assert last > first
    over = AreaNodes.around(model)
    assert float(over.weights.sum()) == pytest.approx(1)
    assert len(over.weights) > 3
    at, task, exposure = model.supports[:4], 1, model.exposure[:4]
    told = over.predict(at, task, exposure)
    nodes = [
        (w, q.mean[0] + exposure.log(), q.covariance[0, 0]) for w, q in over.log_rates(at, task)
    ]
    weights, means, variances = (
        torch.stack([torch.as_tensor(v).expand(4) for v in column], 1).numpy()
        for column in zip(*nodes)
    )
    of_counts = CountsPredictive(weights, means, variances, np.ones(4))
    ends = of_counts.quantile(np.array([0.1, 0.5, 0.9]))
    counts = torch.arange(400).double()
    rows = Data(at[:1].expand(400, -1), counts, torch.ones(400).long(), exposure[:1].expand(400))
    p = over.log_predictive(rows).exp()
    assert float(p.sum()) == pytest.approx(1, abs=1e-4)
    assert float((p * counts).sum()) == pytest.approx(float(told.mean[0]), rel=1e-3)
    spread = float((p * (counts - told.mean[0]).square()).sum())
    assert spread == pytest.approx(float(told.variance[0] + told.noise[0]), rel=0.02)
    for q, end in zip((0.1, 0.5, 0.9), ends[:, 0]):
        below = p.cumsum(0)
        assert float(below[int(end) + 2]) > q > float(below[int(end) - 3])
    again = AreaNodes(_model(), over.points, over.weights)
    again.load_state_dict(over.state_dict())
    torch.testing.assert_close(again.predict(at, task, exposure).mean, told.mean)


def test_covariates_and_what_is_no_count() -> None:
    data = _data(1)
    z = _rand(6, 1, seed=9) - 0.5
    y = torch.poisson(200 * torch.exp(2 * z[:, 0]), generator=torch.Generator().manual_seed(0))
    data = data._replace(supports=torch.cat([data.supports, z], 1), y=y, exposure=200 + 0 * y)
    g = torch.Generator().manual_seed(0)
    model = AreaGP.build(data, ["poisson"], 2, g, covariates=1)
    with torch.no_grad():
        model.prior.mixing *= 0.1
    far = data.supports[:2].clone()
    far[:, -1] = torch.tensor([-0.5, 0.5])
    far[1, :-1] = far[0, :-1]
    low, high = model.predict(far, 0).mean.tolist()
    assert np.log(high / low) == pytest.approx(2, abs=0.5)
    with pytest.raises(BadInput, match="of counts only"):
        AreaGP.build(_data(1), ["gaussian"], 2, g)
    assert fits(120, 1000)
    assert not fits(3000, 27_000)


def test_a_likelihood_far_narrower_than_its_prior_is_not_missed() -> None:
    mean, variance = torch.tensor([0.0, 1.0]).double(), torch.tensor([0.5, 2.0]).double()
    width, center = 0.004, torch.tensor([0.9, -1.3]).double()
    got = log_expected(
        lambda f: -0.5 * ((f - center) / width).square(),
        lambda f: ((center - f) / width**2, torch.full_like(f, width**-2)),
        mean,
        variance,
        mean,
    )
    total = variance + width**2
    expected = -0.5 * (center - mean).square() / total + np.log(width) - 0.5 * total.log()
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6)
