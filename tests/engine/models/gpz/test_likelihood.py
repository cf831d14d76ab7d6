"""GPz through GPyTorch's interface; targets and weights; its L-BFGS."""

from __future__ import annotations

import gpytorch
import pytest
import torch
from gpytorch.constraints import Positive
from torch import Tensor, nn

from scant.errors import BadInput
from scant.models.gpz.likelihood import GPzLikelihood
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.weights import (
    balanced_weights,
    log_targets,
    normal_weights,
    normalized_weights,
    positive_log_density,
    positive_moments,
)
from scant.optim.lbfgs import LBFGS


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
    incomplete = X.clone()
    incomplete[::7, 1] = torch.nan
    whole = [model.predict(rows) for rows in (X, incomplete)]
    monkeypatch.setattr("scant.models.gpz.model.PREDICTED_ROWS", 16)
    monkeypatch.setattr("scant.inference.expectations.CACHED", 64)
    for before, rows in zip(whole, (X, incomplete)):
        after = model.predict(rows)
        torch.testing.assert_close(after.mean, before.mean)
        torch.testing.assert_close(after.variance, before.variance)


def test_weights_of_section_6_3():
    z = torch.tensor([0.05, 0.06, 0.07, 0.15, 0.95], dtype=torch.float64)
    assert normal_weights(z).tolist() == [1] * 5
    torch.testing.assert_close(normalized_weights(z), (1 + z) ** -2.0)
    assert balanced_weights(z).tolist() == [1, 1, 1, 3, 3]
    with pytest.raises(BadInput, match="row 1"):
        normalized_weights(torch.tensor([0.1, -1.5]))
    with pytest.raises(BadInput, match="width"):
        balanced_weights(z, 0)


def test_positive_moments_are_those_of_samples():
    g = torch.Generator().manual_seed(0)
    mean, variance = torch.tensor([0.3, -1.0]).double(), torch.tensor([0.2, 0.5]).double()
    noise = torch.randn(400_000, 2, generator=g, dtype=torch.float64)
    samples = (mean + variance.sqrt() * noise).exp()
    got = positive_moments(mean, variance)
    torch.testing.assert_close(got.mean, samples.mean(0), rtol=0.01, atol=0)
    torch.testing.assert_close(got.median, samples.median(0).values, rtol=0.01, atol=0)
    torch.testing.assert_close(got.variance, samples.var(0), rtol=0.05, atol=0)


def test_positive_density_is_a_density():
    grid = torch.linspace(1e-4, 60, 400_000, dtype=torch.float64)
    one = torch.ones_like(grid)
    density = positive_log_density(grid, 0.3 * one, 0.4 * one).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1, abs=1e-4)


def test_the_mean_of_a_positive_output_beats_its_median():
    g = torch.Generator().manual_seed(0)
    X = torch.rand(3000, 1, generator=g, dtype=torch.float64) * 4 - 2
    spread = 0.3 + 0.3 * X[:, 0].abs()
    noise = torch.randn(3000, generator=g, dtype=torch.float64)
    y = (torch.sin(2 * X[:, 0]) + spread * noise).exp()
    model = GPz(1, 10, "VL")
    train, test = slice(0, 1500), slice(1500, 3000)
    model.init_from_data(X[train], log_targets(y[train]), g)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = -LogEvidence(model, X[train], log_targets(y[train]))()
        value.backward()
        return value

    optimizer.step(closure)
    model.fit_posterior(X[train], log_targets(y[train]))
    got = model.predict(X[test])
    moments = positive_moments(got.mean, got.variance)

    def rmse(guess):
        return (guess - y[test]).square().mean().sqrt()

    assert rmse(moments.mean) < rmse(moments.median)
    with pytest.raises(BadInput, match="above zero"):
        log_targets(torch.tensor([1.0, 0.0]))


def _rosenbrock(start=(-1.2, 1.0), history=10):
    x = nn.Parameter(torch.tensor(start, dtype=torch.float64))
    calls = []

    def objective():
        calls.append(x.detach().clone())
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    return x, LBFGS([x], objective, history), calls


def test_finds_the_minimum_and_says_so():
    x, optimizer, _ = _rosenbrock()
    for _ in range(200):
        value = optimizer.step()
        if optimizer.stalled:
            break
    assert optimizer.stalled
    assert value < 1e-12
    torch.testing.assert_close(x.detach(), torch.ones(2, dtype=torch.float64))


def test_no_point_is_evaluated_twice():
    _, optimizer, calls = _rosenbrock()
    values = [optimizer.step() for _ in range(25)]
    assert optimizer.evaluations == len(calls) == len({tuple(c.tolist()) for c in calls})
    assert values == sorted(values, reverse=True)


def test_turns_back_from_values_that_are_not_finite():
    x = nn.Parameter(torch.tensor([3.0], dtype=torch.float64))

    def objective():
        # ln of a negative number beyond the wall at zero; the minimum is at 0.01.
        return (x - 0.01 * x.log()).sum()

    optimizer = LBFGS([x], objective)
    for _ in range(60):
        assert optimizer.step() < 10
    torch.testing.assert_close(x.item(), 0.01, rtol=1e-5, atol=0)


def test_says_nan_where_the_start_is_hopeless():
    x = nn.Parameter(torch.tensor([-1.0], dtype=torch.float64))
    assert LBFGS([x], lambda: x.log().sum()).step() != 0
    assert torch.tensor(LBFGS([x], lambda: x.log().sum()).step()).isnan()
