"""DGPLVM against the densities it is made of, and what its prior does to classes."""

import math

import pytest
import torch

from scant.errors import BadInput
from scant.models.gplvm.dgplvm import DGPLVM, discrimination
from scant.models.gplvm.training import GPLVMTrainer


def rows(n=80, d=10, seed=0):
    """Two classes that differ in a direction of little variance."""
    g = torch.Generator().manual_seed(seed)
    label = (torch.arange(n) % 4 == 0).long()
    x = torch.randn(n, 3, generator=g, dtype=torch.float64)
    x[:, 2] = 0.3 * x[:, 2] + 0.8 * label
    w = torch.randn(3, d, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return torch.sin(x @ w) + 0.1 * torch.randn(n, d, generator=g, dtype=torch.float64), label


def trained(scale, steps=30):
    model = DGPLVM.build(*rows(), 3, scale)
    trainer = GPLVMTrainer(model, adam=0)
    values = [trainer.step() for _ in range(steps)]
    assert values[-1] > values[0]
    return model


def test_likelihood_is_that_of_gaussian_processes():
    Y, label = rows(12, 20)
    model = DGPLVM.build(Y, label, 2)
    s2 = model.targets.scale.square()
    with torch.no_grad():
        K = model.kernel.forward(model.position, model.position) + model.noise * torch.eye(12)
        process = torch.distributions.MultivariateNormal(torch.zeros(12).double(), s2 * K)
        expected = process.log_prob((Y - Y.mean(0)).T).sum()
    torch.testing.assert_close(model.log_likelihood().detach(), expected)


def test_discrimination_is_that_of_two_classes_and_of_no_scale():
    g = torch.Generator().manual_seed(0)
    X = torch.randn(40, 2, generator=g, dtype=torch.float64)
    label = (torch.arange(40) < 10).long()
    X[label == 1] += 2
    a, b = X[label == 0], X[label == 1]
    within = (a.T.cov(correction=0) * 30 + b.T.cov(correction=0) * 10) / 40
    apart = a.mean(0) - b.mean(0)
    expected = 0.25 * 0.75 * apart @ torch.linalg.inv(within) @ apart
    J = discrimination(X, label)
    torch.testing.assert_close(J, expected)
    turn = torch.randn(2, 2, generator=g, dtype=torch.float64)
    torch.testing.assert_close(discrimination(X @ turn + 3, label), J)


def test_gradients_are_those_of_finite_differences():
    X, label = rows(8, 2)
    assert torch.autograd.gradcheck(discrimination, (X.requires_grad_(), label))


def test_the_smaller_the_scale_the_further_apart():
    J = [float(discrimination(trained(scale).latent()[0], rows()[1])) for scale in (1e3, 1e-3)]
    assert J[1] > 2 * J[0]


def test_more_dimensions_than_outputs_have_components():
    Y, label = rows(60, 4)
    model = DGPLVM.build(Y, label, 6)
    trainer = GPLVMTrainer(model, adam=0)
    values = [trainer.step() for _ in range(10)]
    assert math.isfinite(values[-1])
    assert values[-1] > values[0]
    few = DGPLVM.build(Y[:6], label[:6], 6)  # six rows of two classes scatter in four directions
    assert not few.elbo().isinf()


def test_new_rows_are_placed_with_their_class():
    model = trained(1e-2, 60)
    Y, label = rows(60, seed=1)
    X, x = model.latent()[0], model.infer(Y)
    assert x.shape == (60, 3)
    within = X[model.label == 0].T.cov() + X[model.label == 1].T.cov()
    direction = torch.linalg.solve(
        within, X[model.label == 1].mean(0) - X[model.label == 0].mean(0)
    )
    along = x @ direction
    right = (along[label == 1].unsqueeze(1) > along[label == 0]).double().mean()  # its AUC
    assert float(right) > 0.75
    assert torch.equal(model.infer(Y), x)


def test_decoding_is_the_prediction_of_gaussian_processes():
    Y, label = rows(12, 20)
    model = DGPLVM.build(Y, label, 2)
    x = torch.randn(3, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    X, std = model.latent()
    assert not std.any()
    assert torch.equal(model.covariance(), model.kernel.forward(X, X).detach())
    some = model.covariance(torch.tensor([3, 5]))
    torch.testing.assert_close(some, model.covariance()[[3, 5]][:, [3, 5]])
    assert torch.equal(model.relevance(), model.kernel.precision.detach())
    with torch.no_grad():
        inverse = torch.linalg.inv(model.covariance() + model.noise * torch.eye(12))
        cross = model.kernel.forward(x, X)
        mean = cross @ inverse @ (Y - Y.mean(0)) + Y.mean(0)
        own = model.kernel.variance - (cross @ inverse * cross).sum(1) + model.noise
    found, variance = model.decode(x)
    torch.testing.assert_close(found, mean)
    torch.testing.assert_close(variance, own[:, None].expand(3, 20) * Y.var(0, correction=0).mean())
    there = model.decode(X)[1]  # surer where rows are than far from all of them
    assert bool((there < model.decode(x + 100)[1][:1]).all())


def test_bad_input_is_said():
    Y, label = rows(20)
    with pytest.raises(BadInput, match="at most 1000 rows"):
        DGPLVM.build(Y.repeat(60, 1), label.repeat(60), 2)
    with pytest.raises(BadInput, match="two classes"):
        DGPLVM.build(Y, label * 0, 2)
    with pytest.raises(BadInput, match="positive"):
        DGPLVM.build(Y, label, 2, 0.0)
    holes = Y.clone()
    holes[0, 0] = math.nan
    with pytest.raises(BadInput, match="missing"):
        DGPLVM.build(holes, label, 2)
    with pytest.raises(BadInput, match="missing"):
        DGPLVM.build(Y, label, 2).infer(holes[:1])
