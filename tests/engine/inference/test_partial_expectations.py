"""Expectations over few directions, against the expectations over all and Monte Carlo."""

import pytest
import torch

import scant.inference.partial_expectations as partial_expectations
from scant.inference.expectations import (
    expected_kernel,
    expected_product,
    kernel_forms,
    log_kernel,
    tilted_mean,
)
from scant.inference.partial_expectations import Partial

N, M, D, R, SAMPLES = 4, 7, 6, 3, 100_000
SHAPES = ["shared", "alike", "diagonal", "full", "alike, full"]


def _functions(shape: str) -> tuple:
    g = torch.Generator().manual_seed(0)
    draw = lambda *size: torch.randn(*size, generator=g, dtype=torch.float64)  # noqa: E731
    gamma = 0.4 * draw(M, D, D)
    precision = {
        "shared": 0.3 + draw(D).abs(),
        "alike": (0.3 + draw(D).abs()).expand(M, D),
        "diagonal": 0.3 + draw(M, D).abs(),
        "full": gamma.mT @ gamma,
        "alike, full": (gamma[0].T @ gamma[0]).expand(M, D, D),
    }[shape]
    weights = draw(3, M, M)
    return draw(M, D), precision, draw(N, D), 0.5 * draw(D, R), weights + weights.mT, g


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_the_expectations_over_all_inputs(shape: str) -> None:
    z, P, mean, root, weights, _ = _functions(shape)
    covariance = (root @ root.T).expand(N, D, D)
    partial = Partial.from_forms(kernel_forms(z, P), mean, root)
    phi, pulled = partial.singles()
    torch.testing.assert_close(phi, expected_kernel(mean, covariance, z, P))
    products = expected_product(mean, covariance, z, P)
    expected = torch.einsum("sij,nij->ns", weights, products)
    torch.testing.assert_close(partial.squares(weights), expected)
    tilted = mean[:, None] - pulled @ root.T
    torch.testing.assert_close(tilted, tilted_mean(kernel_forms(z, P), mean, covariance))


@pytest.mark.parametrize("shape", ["diagonal", "full"])
def test_agree_with_monte_carlo(shape: str) -> None:
    z, P, mean, root, weights, g = _functions(shape)
    e = torch.randn(SAMPLES, R, generator=g, dtype=torch.float64)
    partial = Partial.from_forms(kernel_forms(z, P), mean, root)
    for row in range(N):
        k = log_kernel(mean[row] + e @ root.T, z, P).exp()
        squares = torch.einsum("ni,sij,nj->ns", k, weights, k)
        for got, samples in (
            (partial.singles()[0][row], k),
            (partial.squares(weights)[row], squares),
        ):
            error = samples.std(0) / SAMPLES**0.5 + 1e-5
            assert float(((got - samples.mean(0)).abs() / error).max()) < 5


@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_do_not_change_the_sums(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    z, P, mean, root, weights, _ = _functions(shape)
    partial = Partial.from_forms(kernel_forms(z, P), mean, root)
    whole = partial.squares(weights)
    for block, rows in ((1, 1), (200, 3)):
        monkeypatch.setattr(partial_expectations, "BLOCK", block)
        monkeypatch.setattr(partial_expectations, "ROWS", rows)
        torch.testing.assert_close(partial.squares(weights), whole)
