"""Speed of Laplace classification: `pytest -m benchmark tests/benchmarks/test_laplace_speed.py`."""

import pytest

from engine.bench.builders import laplace, laplace_step
from engine.bench.rows import two_classes

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("n", [100, 500, 1000])
def test_evidence_and_gradient(benchmark, n, ard):
    benchmark(laplace_step(laplace(n, ard)))


@pytest.mark.parametrize("ard", [False, True])
def test_a_whole_fit(benchmark, ard):
    benchmark.pedantic(lambda: laplace(500, ard).fit(), rounds=3)


@pytest.mark.parametrize("ard", [False, True])
def test_a_refit_with_ten_more_labels(benchmark, ard):
    first = laplace(500, ard)
    first.fit()
    more = two_classes(10)
    benchmark.pedantic(lambda: first.observe(*more).fit(5), rounds=5)
