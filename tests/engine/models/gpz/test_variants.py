"""Tanh basis (4.22), Gamma of low rank (4.4.2), regression as prior mean (3.27), squared noise."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from scant.errors import BadInput
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.training import GPzTrainer

N, D, M = 60, 3, 7
VARIANTS: dict[str, dict[str, Any]] = {
    "tanh": {"basis": "tanh"},
    "low rank": {"rank": 2},
    "global low rank": {"covariance": "GC", "rank": 1},
    "regression": {"regression_mean": True},
    "squared link": {"noise_link": "squared"},
    "tanh, regression": {"basis": "tanh", "regression_mean": True},
}


def _model(**variant: Any) -> tuple[GPz, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    X = torch.randn(N, D, generator=g, dtype=torch.float64)
    y = 3 + 2 * X[:, 1] + torch.sin(X[:, 0]) + 0.1 * torch.randn(N, generator=g).double()
    model = GPz(D, M, **variant)
    model.init_from_data(X, y, g)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.3 * torch.randn(p.shape, generator=g, dtype=torch.float64)
    return model, X, y


def _dense(model: GPz, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """ln N(y; Phi' a, Phi' A^-1 Phi + B^-1) + ln p(v | tau) (3.29, 3.8); design, noise, prior."""
    if model.basis == "tanh":
        b = -torch.einsum("md,md->m", model.gamma, model.centres)
        phi = torch.tanh(X @ model.gamma.T + b)
    else:
        away = (
            torch.einsum("...qd,nmd->nmq", model.gamma, X.unsqueeze(1) - model.centres)
            if model.covariance[0] == "G"
            else torch.einsum("mqd,nmd->nmq", model.gamma, X.unsqueeze(1) - model.centres)
        )
        phi = torch.exp(-0.5 * away.square().sum(2))
    ones = torch.ones(len(X), 1, dtype=X.dtype)
    linear = torch.cat([X, ones], 1)
    design = torch.cat([phi, linear], 1)
    prior = torch.zeros(M + D + 1, dtype=X.dtype)
    if model.prior_mean is not None:
        prior[M:] = torch.linalg.solve(linear.T @ linear, linear.T @ torch.as_tensor(y))
    linear = phi @ model.v + model.b
    noise = linear.square() if model.noise_link == "squared" else (-linear).exp()
    S = (design / model.log_alpha.exp()) @ design.T + noise.diag()
    value = torch.distributions.MultivariateNormal(design @ prior, S).log_prob(y)
    scales = torch.distributions.Normal(torch.zeros_like(model.v), (-model.log_tau / 2).exp())
    return value + scales.log_prob(model.v).sum(), design, noise, prior


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_objective_gradient_and_posterior_equal_dense_algebra(variant: dict[str, Any]) -> None:
    model, X, y = _model(**variant)
    # The prior mean was fitted before the parameters were moved, to the same rows.
    ours = LogEvidence(model, X, y)
    dense, design, noise, prior = _dense(model, X, y)
    torch.testing.assert_close(ours(), dense, rtol=1e-9, atol=1e-8)
    parameters = list(model.parameters())
    pairs = zip(torch.autograd.grad(ours(), parameters), torch.autograd.grad(dense, parameters))
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)
    A = model.log_alpha.exp().diag()
    precision = design.T @ (design / noise[:, None]) + A  # (3.34)
    mean = torch.linalg.solve(precision, A @ prior + design.T @ (y / noise))  # (3.33)
    for fill in (
        lambda: model.fit_posterior(X, y),
        lambda: model.take_posterior(ours.posterior()),
    ):
        fill()
        torch.testing.assert_close(model.weight_mean, mean, rtol=1e-7, atol=1e-8)
        torch.testing.assert_close(model.predict(X).mean, design @ mean, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_training_raises_the_evidence_and_a_state_predicts_alike(variant: dict[str, Any]) -> None:
    model, X, y = _model(**variant)
    trainer = GPzTrainer(model, X, y)
    before = trainer.log_evidence().item()
    for _ in range(10):
        trainer.step()
    assert trainer.log_evidence().item() > before + 1
    model.fit_posterior(X, y)
    again = GPz(D, M, **variant)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.predict(X).mean, model.predict(X).mean)


@pytest.mark.slow
@pytest.mark.parametrize("noise_link", ["exp", "squared"])
def test_both_links_find_the_deviation_of_the_noise(noise_link: str) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.linspace(-3, 3, 2000, dtype=torch.float64)
    truth = 0.3 + 0.2 * torch.sin(x)
    y = torch.cos(x) + truth * torch.randn(len(x), generator=g, dtype=torch.float64)
    model = GPz(1, 8, noise_link=noise_link)
    model.init_from_data(x[:, None], y, g)
    trainer = GPzTrainer(model, x[:, None], y)
    for _ in range(40):
        trainer.step()
    model.fit_posterior(x[:, None], y)
    ratio = model.predict(x[:, None]).noise_variance.sqrt() / truth
    # The deviation of 2000 / 8 draws has a standard error of 4.5%; constant noise has .61.
    assert ratio.log().square().mean().sqrt() < 0.1


def test_far_from_the_data_a_regression_decides() -> None:
    model, X, y = _model(regression_mean=True)
    with torch.no_grad():
        model.log_alpha += 20.0  # precise priors: all weights stay at their prior means
    model.fit_posterior(X, y)
    far = 100 * torch.eye(D, dtype=X.dtype)
    linear = torch.cat([X, torch.ones(N, 1).double()], 1)
    a = torch.linalg.solve(linear.T @ linear, linear.T @ y)
    torch.testing.assert_close(model.predict(far).mean, far @ a[:D] + a[D], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("variant", [{"basis": "tanh"}, {"rank": 1}])
def test_missing_and_noisy_inputs_are_refused(variant: dict[str, Any]) -> None:
    model, X, y = _model(**variant)
    model.fit_posterior(X, y)
    gap = X.clone()
    gap[4, 1] = torch.nan
    for call in (
        lambda: model.predict(gap),
        lambda: model.predict(X, torch.ones_like(X)),
        lambda: model.fit_posterior(gap, y),
        lambda: LogEvidence(model, gap, y),
        lambda: LogEvidence(model, X, y, noise_variance=torch.ones_like(X)),
    ):
        with pytest.raises(BadInput, match="without missing values"):
            call()


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ({"basis": "sigmoid"}, "Basis 'sigmoid' is unknown"),
        ({"rank": 4}, "rank from 1 to 3"),
        ({"rank": 1, "covariance": "VD"}, "full covariance"),
        ({"regression_mean": True, "joint_mean": False}, "needs the linear mean"),
        ({"noise_link": "log"}, "Noise link 'log' is unknown"),
    ],
)
def test_impossible_variants_are_refused(variant: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        GPz(D, M, **variant)
