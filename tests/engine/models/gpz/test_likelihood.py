"""GPz through GPyTorch's interface."""

from __future__ import annotations

import gpytorch
import torch
from gpytorch.constraints import Positive
from torch import Tensor

from scant.models.gpz.likelihood import GPzLikelihood
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz


def fitted() -> tuple[GPz, Tensor, Tensor]:
    """A model with weights, and noise that depends on the input."""
    g = torch.Generator().manual_seed(0)
    X = torch.randn(60, 2, generator=g, dtype=torch.float64)
    y = X[:, 0].sin() + 0.1 * torch.randn(60, generator=g, dtype=torch.float64)
    model = GPz(2, 7)
    model.init_from_data(X, y, g)
    with torch.no_grad():
        model.v.add_(torch.randn(7, generator=g, dtype=torch.float64))
    model.fit_posterior(X, y)
    return model, X, y


def test_model_and_likelihood_give_the_moments_of_predict() -> None:
    model, X, _ = fitted()
    found = model.predict(X)
    latent = model(X)
    torch.testing.assert_close(latent.mean, found.mean)
    torch.testing.assert_close(latent.variance, found.model_variance)
    whole = GPzLikelihood(model)(latent, X)
    torch.testing.assert_close(whole.variance, found.variance)
    dense = model.design(X)[1] @ model.weight_factor
    torch.testing.assert_close(latent.covariance_matrix, dense @ dense.T)


def test_expected_log_prob_equals_monte_carlo() -> None:
    model, X, y = fitted()
    likelihood = GPzLikelihood(model)
    torch.manual_seed(0)
    samples = model(X).sample(torch.Size([40_000]))
    each = likelihood(samples, X).log_prob(y)
    exact = likelihood.expected_log_prob(y, model(X), X)
    deviation = each.std(0) / len(each) ** 0.5
    assert bool(((each.mean(0) - exact).abs() < 5 * deviation).all())


def test_positive_parameters_have_constraints_and_states_hold_what_is_learned() -> None:
    model, X, y = fitted()
    assert isinstance(model, gpytorch.Module)
    assert isinstance(model.log_alpha_constraint, Positive)
    assert isinstance(model.log_tau_constraint, Positive)
    model.initialize(log_alpha=torch.zeros_like(model.log_alpha))
    assert bool((model.alpha == 1).all())
    assert not [name for name in model.state_dict() if "constraint" in name]
    LogEvidence(model, X, y)().backward()
    assert all(p.grad is not None for p in model.hyperparameters())


def test_blocks_of_rows_are_predicted_as_one(monkeypatch) -> None:
    model, X, _ = fitted()
    X[::7, 1] = torch.nan
    whole = model.predict(X)
    monkeypatch.setattr("scant.models.gpz.model.PREDICTED_ROWS", 16)
    parts = model.predict(X)
    torch.testing.assert_close(parts.mean, whole.mean)
    torch.testing.assert_close(parts.variance, whole.variance)
