"""NIGP: slopes against differences, density against dense algebra, input noise of drawn data."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from scant.models.fitc import FITC
from scant.models.nigp import NIGP
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import maximize
from tests.engine.models.test_fitc import covariance

PSI = 0.09, 0.0  # of the columns


def drawn(n: int = 500) -> tuple[Tensor, Tensor]:
    """Rows of a function of two inputs, of which the first is noisy."""
    g = torch.Generator().manual_seed(0)
    true = 6 * torch.rand(n, 2, generator=g, dtype=torch.float64) - 3
    y = 4 * torch.sin(true[:, 0]) + true[:, 1] ** 2 / 4
    noise = torch.randn(n, 3, generator=g, dtype=torch.float64)
    return true + noise[:, :2] * torch.tensor(PSI).sqrt(), y + 0.1 * noise[:, 2]


@pytest.fixture(scope="module")
def learned() -> NIGP:
    model = NIGP.build(*drawn(), inducing=25)
    model.learn(4, 50)
    return model


def test_slopes_are_those_of_the_mean(learned: NIGP) -> None:
    x, _ = drawn()
    slopes = learned.slopes_of_mean() * learned.scale / learned.views.scale
    for d in range(2):
        step = torch.zeros(2).double()
        step[d] = 1e-4
        up, down = (learned.predict(x + sign * step)[0] for sign in (1, -1))
        assert torch.allclose(slopes[:, d], (up - down) / 2e-4, atol=1e-5)


def test_density_has_the_noise_of_the_slopes(learned: NIGP) -> None:
    x, y = drawn()
    slopes = learned.slopes / learned.views.scale  # by the columns' unit
    extra = slopes.square() @ learned.input_variance
    shape = (covariance(learned, x) + extra.diag()) * y.var()
    exact = MultivariateNormal(torch.full_like(y, float(y.mean())), shape).log_prob(y)
    # 25 inducing inputs have a nearly singular covariance.
    assert learned.log_density().item() == pytest.approx(exact.item(), abs=1e-3)


def test_the_variances_of_the_inputs_are_found(learned: NIGP) -> None:
    psi = learned.input_variance
    assert psi[0].item() == pytest.approx(PSI[0], rel=0.2)  # three standard errors: sqrt(2 / n)
    assert psi[1].item() < 0.1 * PSI[0]
    noise = (learned.likelihood.noise * learned.scale.square()).item()
    # 0.01 of the targets, and what curvature adds, some 4 psi^2; a GP without psi needs 8 psi more.
    assert 0.01 < noise < 0.01 + 2 * 4 * PSI[0] ** 2


@pytest.mark.slow
def test_slopes_of_inputs_with_noise_raise_the_density(learned: NIGP) -> None:
    plain = FITC.build(*drawn(), inducing=25)
    plain.inducing.requires_grad_(False)
    maximize(AdamLBFGS(plain, plain.log_density, 500, adam=0), 100)
    assert learned.log_density() > plain.log_density() + 10
