"""Speed of Laplace classification: `pytest -m benchmark tests/benchmarks/test_laplace_speed.py`."""

import pytest
import torch

from engine.models.laplace import LaplaceGPC

pytestmark = pytest.mark.benchmark


def _rows(n, d=20, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=g, dtype=torch.float64)
    f = 2 * torch.sin(2 * x[:, 0]) + x[:, 1] + x[:, 2] * x[:, 3]
    y = (torch.rand(n, generator=g, dtype=torch.float64) < torch.sigmoid(3 * f)).long()
    return x, y


@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("n", [100, 500, 1000])
def test_evidence_and_gradient(benchmark, n, ard):
    model = LaplaceGPC.build(*_rows(n), ard=ard)
    model.log_evidence()

    def once():
        model.zero_grad()
        with torch.no_grad():
            model.kernel.raw_outputscale.mul_(1.001)
        model.log_evidence().backward()

    benchmark(once)


@pytest.mark.parametrize("ard", [False, True])
def test_a_whole_fit(benchmark, ard):
    x, y = _rows(500)
    benchmark.pedantic(lambda: LaplaceGPC.build(x, y, ard=ard).fit(), rounds=3)


@pytest.mark.parametrize("ard", [False, True])
def test_a_refit_with_ten_more_labels(benchmark, ard):
    x, y = _rows(510)
    first = LaplaceGPC.build(x[:500], y[:500], ard=ard)
    first.fit()
    benchmark.pedantic(lambda: first.observe(x[500:], y[500:]).fit(5), rounds=5)
