"""FITC against dense algebra."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import MultivariateNormal

from scant.errors import BadInput
from scant.models.fitc import FITC, JITTER
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import maximize


def rows(n: int = 30, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g, dtype=torch.float64)
    noise = 0.2 * torch.randn(n, generator=g, dtype=torch.float64)
    return x, 4 * torch.sin(1.5 * x[:, 0]) + x[:, 1] + noise + 3


def eq(model: FITC, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    lengthscale = model.covar_module.base_kernel.lengthscale.detach()
    distances = torch.cdist(a / lengthscale, b / lengthscale)
    return model.covar_module.outputscale.detach() * (-0.5 * distances.square()).exp()


def covariance(model: FITC, x: torch.Tensor) -> torch.Tensor:
    """Q with the variances of K, noise included, as a dense matrix."""
    z, Z = model.views([x])[0], model.inducing.detach()
    cross, eye = eq(model, z, Z), torch.eye(len(Z)).double()
    Q = cross @ torch.linalg.inv(eq(model, Z, Z) + JITTER * eye) @ cross.T
    K = Q - Q.diagonal().diag() + eq(model, z, z).diagonal().diag()
    return K + model.likelihood.noise.detach() * torch.eye(len(x)).double()


def trained(n: int, ard: bool = True) -> tuple[FITC, torch.Tensor, torch.Tensor]:
    x, y = rows(n)
    model = FITC.build(x, y, 5, ard=ard)
    maximize(AdamLBFGS(model, model.log_density, n, adam=None), 5)  # away from the start
    return model, x, y


# Up to 800 rows linear_operator factorizes dense matrices, beyond it iterates if it can.
@pytest.mark.parametrize("n", [30, 900])
def test_density_is_that_of_the_dense_covariance(n: int) -> None:
    model, x, y = trained(n)
    shape = covariance(model, x) * y.var()
    exact = MultivariateNormal(torch.full((n,), float(y.mean())).double(), shape).log_prob(y)
    assert torch.allclose(model.log_density(), exact, rtol=1e-8)


@pytest.mark.parametrize("ard", [True, False])
def test_prediction_is_the_conditional_of_the_dense_covariance(ard: bool) -> None:
    model, x, y = trained(30, ard)
    assert model.covar_module.base_kernel.lengthscale.numel() == (2 if ard else 1)
    new = rows(7, seed=4)[0]
    both = covariance(model, torch.cat([x, new]))
    weights = torch.linalg.solve(both[:30, :30], both[:30, 30:])
    mean = weights.T @ (y - y.mean()) + y.mean()
    variance = (both[30:, 30:].diagonal() - (weights * both[:30, 30:]).sum(0)) * y.var()
    found = model.predict(new)
    assert torch.allclose(found[0], mean, rtol=1e-8)
    assert torch.allclose(found[1], variance, rtol=1e-8)


def test_inducing_inputs_at_all_rows_give_the_gp() -> None:
    x, y = rows(12)
    model = FITC.build(x, y, 12)
    model.inducing.data.copy_(model.x)
    shape = eq(model, model.x, model.x) + model.likelihood.noise.detach() * torch.eye(12).double()
    exact = MultivariateNormal(torch.full((12,), float(y.mean())).double(), shape * y.var())
    assert torch.allclose(model.log_density(), exact.log_prob(y), rtol=1e-4)  # but for the jitter


def test_training_moves_the_inducing_inputs_and_learns() -> None:
    x, y = rows(200)
    model = FITC.build(x, y, 8)
    start = model.inducing.detach().clone()
    values = maximize(AdamLBFGS(model, model.log_density, len(y), adam=None, rate=0.05), 100)
    assert values[-1] > values[0]
    assert float((model.inducing.detach() - start).abs().min()) > 0
    new, truth = rows(100, seed=3)
    error = (model.predict(new)[0] - truth).square().mean() / truth.var()
    assert float(error) < 0.1


def test_a_constant_target_is_refused() -> None:
    with pytest.raises(BadInput, match="all are the same"):
        FITC.build(rows()[0], torch.ones(30))


def test_weights_of_the_pseudo_points_give_the_mean() -> None:
    g = torch.Generator().manual_seed(0)
    X = torch.randn(50, 1, generator=g, dtype=torch.float64)
    y = torch.sin(2 * X[:, 0]) + 5
    model = FITC.build(X, y, 8, g)
    cross = model.covar_module(model.views([X])[0], model.inducing).to_dense()
    mean = cross @ model.weights() * model.scale + model.centre
    torch.testing.assert_close(mean, model.predict(X)[0], rtol=1e-8, atol=1e-8)
