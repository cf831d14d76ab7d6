"""Nodes of hyperparameters against dense quadrature, rows left out by hand, and simulation."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.hyperparameter_nodes import HYPERPRIOR_DEVIATION, NodesGP, _Posterior
from scant.models.mtgpa.mixture import Mixture
from scant.models.mtgpa.prior import Data
from scant.predictive.quantiles import quantiles
from tests.engine.models.mtgpa.test_exact import _data


def _quantiles(mixture, p):
    columns = (mixture.weights, mixture.mean, mixture.std)
    return quantiles(*(column.T.detach().numpy() for column in columns), p)


def _drawn(n, g, lengthscale=1.0, noise=0.05, test=20):
    """n noisy points of a function on [0, 6], and more of it elsewhere."""
    x = 6 * torch.rand(n + test, 1, generator=g, dtype=torch.float64)
    K = torch.exp(-0.5 * ((x - x.T) / lengthscale) ** 2) + 1e-8 * torch.eye(n + test)
    f = torch.linalg.cholesky(K) @ torch.randn(n + test, generator=g, dtype=torch.float64)
    y = f + math.sqrt(noise) * torch.randn(n + test, generator=g, dtype=torch.float64)
    return Data(x[:n], y[:n], torch.zeros(n, dtype=torch.long)), x[n:], y[n:]


def _fitted(data, tasks=1):
    model = ExactGP.build(data, tasks, 1, torch.Generator().manual_seed(0), finer=True)
    model.fit(60)
    return model


@pytest.mark.slow
def test_predictions_are_those_of_a_dense_grid_over_two_hyperparameters():
    data, _, _ = _drawn(24, torch.Generator().manual_seed(3))
    model = _fitted(data)
    model.prior.offset.requires_grad_(False)
    model.prior.mixing.requires_grad_(False)
    over_nodes = NodesGP.around(model)
    assert len(over_nodes.points) == 9  # optimum, two on each axis, four corners
    supports = torch.linspace(-1, 7, 9).double().unsqueeze(1)
    lengthscale = model.prior.kernels[0].raw_lengthscale
    noise = model.likelihoods[0].log_noise
    best = [p.detach().clone() for p in (lengthscale, noise)]
    log_weights, told = [], []
    side = torch.linspace(-3.6, 3.6, 25).double()
    with torch.no_grad():
        for a in side:
            for b in side:
                lengthscale.copy_(best[0] + a)
                noise.copy_(best[1] + b)
                log_weights.append(model.elbo() - 0.5 * (a**2 + b**2) / HYPERPRIOR_DEVIATION**2)
                told.append(model.predict(supports, 0))
    weights = torch.stack(log_weights).softmax(0)[:, None].expand(-1, len(supports))
    dense = Mixture(weights, *(torch.stack(column) for column in zip(*told)))
    for p, old in zip((lengthscale, noise), best):
        p.data.copy_(old)
    ours, theirs = over_nodes.predict(supports, 0), dense.moments()
    deviation = (theirs.variance + theirs.noise).sqrt()
    assert ((ours.mean - theirs.mean).abs() < 0.06 * deviation).all()
    torch.testing.assert_close((ours.variance + ours.noise).sqrt(), deviation, rtol=0.06, atol=0.0)
    p = np.array([0.025, 0.25, 0.75, 0.975])
    away = _quantiles(over_nodes.mixture(supports, 0), p) - _quantiles(dense, p)
    assert (np.abs(away) < 0.12 * deviation.numpy()).all()
    point = model.predict(supports, 0)  # which is further away
    narrow = (point.variance + point.noise).sqrt()
    ours_off = ((ours.variance + ours.noise).sqrt() / deviation).log().abs().mean()
    assert ours_off < 0.5 * (narrow / deviation).log().abs().mean()


@pytest.mark.slow
def test_intervals_of_few_rows_hold():
    g = torch.Generator().manual_seed(1)
    inside, density = {"point": [], "nodes": []}, {"point": [], "nodes": []}
    for _ in range(25):
        lengthscale = math.exp(0.4 * float(torch.randn(1, generator=g)))
        data, x, y = _drawn(16, g, lengthscale, noise=0.1, test=30)
        model = _fitted(data)
        for name, one in (("point", model), ("nodes", NodesGP.around(model))):
            lo, hi = torch.as_tensor(_quantiles(one.mixture(x, 0), np.array([0.025, 0.975])))
            inside[name].append(((y >= lo) & (y <= hi)).double().mean())
            density[name].append(one.mixture(x, 0).log_prob(y).mean())
    point, nodes = (float(torch.stack(inside[name]).mean()) for name in ("point", "nodes"))
    assert 0.9 < nodes < 0.985
    assert point < nodes - 0.015
    # As far from the rows as these tell nothing of, the optimum is far too sure.
    assert float(torch.stack(density["nodes"]).mean() - torch.stack(density["point"]).mean()) > 0.1


@pytest.mark.slow
def test_rows_left_out_are_predicted_by_the_others():
    data = _data(12)
    over_nodes = NodesGP.around(_fitted(data, tasks=2))
    told = over_nodes.left_out().log_prob(data.y)
    for i in (0, 7, 15):
        rest = data.at(torch.tensor([k for k in range(len(data.y)) if k != i]))
        alone = ExactGP(over_nodes.likelihoods, over_nodes.prior, rest)
        one, weights, density = data.at(torch.tensor([i])), [], []
        for node, weight in enumerate(over_nodes.weights):
            with over_nodes._at(node):
                weights.append(weight.log() + alone.elbo() - over_nodes.elbo())
                density.append(alone.log_predictive(one)[0])
        expected = (torch.stack(weights).log_softmax(0) + torch.stack(density)).logsumexp(0)
        assert told[i].item() == pytest.approx(expected.item(), abs=1e-6)


def test_parameters_are_left_at_the_optimum_and_the_state_holds_the_nodes():
    data = _data(12)
    model = _fitted(data, tasks=2)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    over_nodes = NodesGP.around(model)
    supports = torch.linspace(0, 4, 5).double().unsqueeze(1)
    told = over_nodes.predict(supports, 1)
    for name, value in before.items():
        torch.testing.assert_close(over_nodes.state_dict()[name], value, rtol=0, atol=0)
    assert over_nodes.weights.sum().item() == pytest.approx(1)
    again = NodesGP(
        ExactGP.build(data, 2, 1, torch.Generator().manual_seed(5), finer=True),
        torch.zeros_like(over_nodes.points),
        torch.zeros_like(over_nodes.weights),
    )
    again.load_state_dict(over_nodes.state_dict())
    for mine, theirs in zip(told, again.predict(supports, 1)):
        assert torch.equal(mine, theirs)


def test_a_hyperparameter_that_is_not_learned_has_no_nodes():
    model = _fitted(_data(12), tasks=2)
    model.prior.learn_lengthscales(False)
    over_nodes = NodesGP.around(model)
    names = [name for name, p in model.named_parameters() for _ in range(p.numel())]
    moved = (over_nodes.points != over_nodes.points[0]).any(0)
    assert not any(moved[i] for i, name in enumerate(names) if "lengthscale" in name)
    assert any(moved[i] for i, name in enumerate(names) if "noise" in name)


def test_a_mixture_has_the_density_of_its_components():
    columns = torch.tensor([[[0.7], [0.3]], [[0.0], [4.0]], [[1.0], [0.2]], [[0.1], [0.1]]])
    mixture = Mixture(*columns.double())
    std = mixture.std[:, 0].numpy()

    density = 0.7 * norm.pdf(1.0, 0, std[0]) + 0.3 * norm.pdf(1.0, 4, std[1])
    assert mixture.log_prob(torch.ones(1).double()).exp().item() == pytest.approx(density)


def test_a_node_that_the_data_exclude_has_no_weight(monkeypatch):
    # The posterior of strongly related hyperparameters falls steeply beside its axes.
    monkeypatch.setattr(_Posterior, "_fall", lambda posterior, point: 1000.0)
    over_nodes = NodesGP.around(_fitted(_data(12), tasks=2))
    assert over_nodes.weights[0].item() == pytest.approx(1)
    assert over_nodes.weights[1:].max() < 1e-300
