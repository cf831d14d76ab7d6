"""Speed of GPz: `pytest -m benchmark tests/benchmarks/test_gpz_speed.py`."""

import math

import pytest
import torch

from engine.bench import builders, rows
from engine.models.gpz_evidence import negative_log_evidence

pytestmark = pytest.mark.benchmark


def _by_autograd(phi, y, omega, log_alpha, log_beta):
    """The same evidence with every derivative left to autograd, for comparison."""
    precision, shrink = omega * log_beta.exp(), (-0.5 * log_alpha).exp()
    rows = phi * precision.sqrt()[:, None] * shrink
    inner = rows.T @ rows + torch.eye(len(shrink), dtype=phi.dtype)
    lower = torch.linalg.cholesky(inner)
    right = (shrink * (phi.T @ (precision * y)))[:, None]
    w = shrink * torch.cholesky_solve(right, lower)[:, 0]
    residual = y - phi @ w
    squares = (precision * residual**2).sum() + (log_alpha.exp() * w**2).sum()
    return (
        0.5 * (squares - (omega * log_beta).sum() + math.log(2 * math.pi) * omega.sum())
        + lower.diagonal().log().sum()
    )


@pytest.mark.parametrize("way", [negative_log_evidence, _by_autograd])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("covariance", ["VL", "VD", "VC"])
@pytest.mark.parametrize(("n", "m"), [(4000, 25), (4000, 100), (10_000, 100)])
def test_objective_and_gradient(benchmark, monkeypatch, n, m, covariance, threads, way):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    monkeypatch.setattr("engine.models.gpz.negative_log_evidence", way)
    x, y = rows.galaxies(n)
    model = builders.gpz(x, y, m, covariance)
    step = builders.gradient_of(model, lambda: model.objective(x, y))
    benchmark.pedantic(step, rounds=10, warmup_rounds=2)
    torch.set_num_threads(before)


def test_two_hundred_iterations(benchmark):
    x, y = rows.galaxies(10_000)

    def run():
        optimiser = builders.gpz_training(builders.gpz(x, y, 100), x, y)
        for _ in range(200):
            optimiser.step()

    benchmark.pedantic(run, rounds=1)


def test_ten_thousand_rows_with_two_bands_missing(benchmark):
    g, y = rows.seeded(), rows.galaxies(10_000)[1]
    # Bands of a galaxy go together, as do a magnitude and its error: three causes, ten columns.
    causes = torch.randn(10_000, 3, generator=g, dtype=torch.float64)
    x = causes @ torch.randn(3, 10, generator=g, dtype=torch.float64) / 3**0.5
    x = x + 0.2 * torch.randn(x.shape, generator=g, dtype=torch.float64)
    y = torch.sin(causes[:, 0]) + 0.1 * y
    model = builders.gpz(x, y, 100)
    optimiser = builders.gpz_training(model, x, y)
    for _ in range(20):
        optimiser.step()
    model.fit_posterior(x, y)
    holes = x.clone()
    holes[:, [1, 3, 6, 8]] = torch.nan
    benchmark.pedantic(model.predict, (holes,), rounds=3)
