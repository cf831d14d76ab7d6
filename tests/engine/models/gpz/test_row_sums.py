"""Sums over blocks of rows against autograd through the whole design matrix."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from scant.models.gpz.evidence import negative_log_evidence
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.row_sums import BLOCK

N = 2 * BLOCK + 77


def rows(missing: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs of 3 columns, targets and weights; of more rows than two blocks hold."""
    g = torch.Generator().manual_seed(3)
    X = torch.randn(N, 3, generator=g, dtype=torch.float64)
    y = X[:, 0].sin() + 0.1 * torch.randn(N, generator=g, dtype=torch.float64)
    omega = torch.rand(N, generator=g, dtype=torch.float64)
    omega[::50] = 0.0
    if missing:
        X[::3, 1] = torch.nan
        X[1::7, 2] = torch.nan
    return X, y, omega


def perturbed(X: Tensor, y: Tensor, covariance: str, heteroscedastic: bool, joint: bool) -> GPz:
    """A model away from its start, where no gradient is zero."""
    model = GPz(3, 12, covariance, heteroscedastic, joint)
    g = torch.Generator().manual_seed(5)
    model.init_from_data(X, y, g)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=g, dtype=p.dtype))
    return model


def dense(model: GPz, X: Tensor, y: Tensor, omega: Tensor) -> Tensor:
    """The same value through the n x p design matrix."""
    phi, design = model.design(X)
    value = -negative_log_evidence(design, y, omega, model.log_alpha, model.log_beta(phi))
    if model.heteroscedastic:
        prior = torch.distributions.Normal(0.0, (-0.5 * model.log_tau).exp())
        value = value + prior.log_prob(model.v).sum()
    return value


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("covariance", "heteroscedastic", "joint"),
    [("VC", True, True), ("GL", True, False), ("VD", False, True), ("GC", True, True)],
)
def test_value_gradient_and_posterior_equal_those_of_the_design_matrix(
    covariance: str, heteroscedastic: bool, joint: bool, missing: bool
) -> None:
    X, y, omega = rows(missing)
    model = perturbed(X, y, covariance, heteroscedastic, joint)
    log_evidence = LogEvidence(model, X, y, omega)
    ours, theirs = log_evidence(), dense(model, X, y, omega)
    assert math.isclose(ours.item(), theirs.item(), rel_tol=1e-12)
    parameters = list(model.parameters())
    found = torch.autograd.grad(ours, parameters)
    for name, a, b in zip(
        dict(model.named_parameters()), found, torch.autograd.grad(theirs, parameters)
    ):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9 * float(b.abs().max()), msg=name)
    expected = model.weight_posterior(X, y, omega)
    for posterior in (log_evidence.posterior(), LogEvidence(model, X, y, omega).posterior()):
        torch.testing.assert_close(posterior.mean, expected.mean, rtol=1e-8, atol=1e-10)


def test_the_posterior_follows_the_parameters() -> None:
    X, y, omega = rows(False)
    model = perturbed(X, y, "VC", True, True)
    log_evidence = LogEvidence(model, X, y, omega)
    log_evidence()
    with torch.no_grad():
        model.log_alpha.add_(1.0)
    expected = model.weight_posterior(X, y, omega)
    torch.testing.assert_close(log_evidence.posterior().mean, expected.mean, rtol=1e-8, atol=1e-10)
