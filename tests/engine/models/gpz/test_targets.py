"""Sample weights and positive outputs."""

import pytest
import torch

from scant.errors import BadInput
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
